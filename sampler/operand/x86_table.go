package operand

// The opcode tables for 64-bit mode: one line per encoding, from the opcode
// maps of Intel's SDM volume 2 (appendix A and the instruction pages) and AMD's
// APM volumes 3 to 5.
//
//	OPCODES CONDITIONS PROPERTIES
//
// Opcodes are hexadecimal: "58", "58,5c-5f". Conditions (absent means any):
//
//	np 66 f3 f2   mandatory prefix (none of them, ...); several may be given
//	S V E         legacy SSE, VEX, EVEX encodings; absent means legacy only
//	/2 /4-7       ModRM.reg          rm=1   ModRM.rm of a register form
//	W0 W1         REX.W, VEX.W       L0 L1 L2  vector length 16, 32, 64
//	mem reg       memory or register form only
//
// Properties:
//
//	r:N w:N rw:N  the ModRM memory operand is read, written, both; m: has an
//	              address but no access (lea, prefetch, nop). Without one of these
//	              only the register form exists.
//	              N is bytes or: v operand size, q 8 or 2, y 4 or 8 by W, x vector length,
//	              x/2 x/4 x/8, dup (movddup), env and sav (x87 state), cx (cmpxchg8b/16b)
//	eN            element size under an EVEX mask, N bytes, or w: 4 or 8 by W; 4 and 8
//	              also fix EVEX.W, unless W is given
//	bN            the same, and the operand may be broadcast from one element
//	nf            a mask does not suppress the access: the whole operand is read
//	part          some processors fetch or store only part of the operand
//	nm            no ModRM byte
//	ib iw iz iv id  immediate: 1, 2, 2 or 4, 2, 4 or 8, 4 bytes
//	>LETTERS      registers written: g ModRM.reg, b ModRM.rm, v VEX.vvvv, o opcode;
//	              G B O the same as byte registers; a c d n s p S D 1 are rax, rcx,
//	              rdx, rbx, rsp, rbp, rsi, rdi, r11; f flags, X vector, K mask,
//	              F segment base. Vector encodings without > write a vector.
//	=name         a shape (x86Shapes) or a kind of branch (x86Branches)
const (
	x86Map1 = `
00,08,10,18,20,28,30 rw:1 >Bf
01,09,11,19,21,29,31 rw:v >bf
02,0a,12,1a,22,2a,32 r:1 >Gf
03,0b,13,1b,23,2b,33 r:v >gf
04,0c,14,1c,24,2c,34 nm ib >af
05,0d,15,1d,25,2d,35 nm iz >af
38,3a r:1 >f
39,3b r:v >f
3c nm ib >f
3d nm iz >f
50-57 nm =push >s
58-5f nm =pop >so
63 W1 r:4 >g
63 W0 np r:4 >g
63 W0 f3 f2 r:4 part >g
68 nm iz =push >s
69 r:v iz >gf
6a nm ib =push >s
6b r:v ib >gf
70-7f nm =cond
80 /0-6 rw:1 ib >Bf
80 /7 r:1 ib >f
81 /0-6 rw:v iz >bf
81 /7 r:v iz >f
83 /0-6 rw:v ib >bf
83 /7 r:v ib >f
84 r:1 >f
85 r:v >f
86 rw:1 >GB
87 rw:v >gb
88 w:1 >B
89 w:v >b
8a r:1 >G
8b r:v >g
8c /0-5 w:2 >b
8d mem m >g
8e /0,2-5 r:2 >F
8f /0 w:q =popm >sb
90-97 nm >ao
98 nm >a
99 nm >d
9b nm
9c nm =push >s
9d nm =pop >sf
9e nm >f
9f nm >a
a0 nm =moffsload >a
a1 nm =moffsloadv >a
a2 nm =moffsstore
a3 nm =moffsstorev
a4 nm =movsb >SD
a5 nm =movsv >SD
a6 nm =cmpsb >SDf
a7 nm =cmpsv >SDf
a8 nm ib >f
a9 nm iz >f
aa nm =stosb >D
ab nm =stosv >D
ac nm =lodsb >aS
ad nm =lodsv >aS
ae nm =scasb >Df
af nm =scasv >Df
b0-b7 nm ib >O
b8-bf nm iv >o
c0 /0-5,7 rw:1 ib >Bf
c1 /0-5,7 rw:v ib >bf
c2 nm iw =return >s
c3 nm =return >s
c6 /0 w:1 ib >B
c7 /0 w:v iz >b
c6 /7 rm=0 reg ib >a =trap
c7 /7 rm=0 reg id >a =trap
c8 nm iw ib =enter >sp
c9 nm =leave >sp
cc,f1 nm =trap
cd nm ib =trap
cf nm =trap
d0,d2 /0-5,7 rw:1 >Bf
d1,d3 /0-5,7 rw:v >bf
d7 nm =xlat >a
d8 r:4
d9 /0 r:4
d9 /2,3 mem w:4
d9 /4 mem r:env
d9 /5 mem r:2
d9 /6 mem w:env
d9 /7 mem w:2
d9 /1 reg
d9 /2 rm=0 reg
d9 /4 rm=0,1,4,5 reg
d9 /5 rm=0-6 reg
d9 /6,7 reg
da mem r:4
da /0-3 reg
da /5 rm=1 reg
db /0 mem r:4
db /1-3 mem w:4
db /5 mem r:10
db /7 mem w:10
db /0-3 reg
db /4 rm=2,3 reg
db /5,6 reg >f
dc r:8
dd /0 r:8
dd /1-3 mem w:8
dd /4 mem r:sav
dd /6 mem w:sav
dd /7 mem w:2
dd /2-5 reg
de mem r:2
de /0,1,4-7 reg
de /3 rm=1 reg
df /0 r:2
df /1-3 mem w:2
df /4 mem r:10
df /5 mem r:8
df /6 mem w:10
df /7 mem w:8
df /4 rm=0 reg >a
df /5,6 reg >f
e0-e2 nm =cond >c
e3 nm =cond
e4,e5 nm ib >a =trap
e6,e7 nm ib =trap
ec,ed nm >a =trap
ee,ef nm =trap
e8 nm =call >s
e9,eb nm =jump
f4 nm =trap
fa,fb nm >f =trap
f5,f8,f9,fc,fd nm >f
f6 /0,1 r:1 ib >f
f6 /2 rw:1 >B
f6 /3 rw:1 >Bf
f6 /4-7 r:1 >af
f7 /0,1 r:v iz >f
f7 /2 rw:v >b
f7 /3 rw:v >bf
f7 /4-7 r:v >adf
fe /0,1 rw:1 >Bf
ff /0,1 rw:v >bf
ff /2 r:8 =callm >s
ff /4 r:8 =indirect
ff /6 r:q =pushm >s
`

	x86Map0F = `
00 /4,5 r:2 >f
01 np /2 rm=0 reg >ad
01 np /2 rm=5 reg =trap
01 np /2 rm=6 reg >f
01 np /5 rm=0 reg
01 np /5 rm=6 reg >ad
01 np /5 rm=7 reg
01 /7 rm=1 reg >acd
01 /7 rm=5 reg >ad
02,03 r:2 >gf
05 nm =syscall >ac1
34 nm =syscall >ac1
06-09,0b,30,35 nm =trap
32 nm >ad =trap
0d mem m
10 np SVE r:x e4
10 66 SVE r:x e8
10 f3 SVE r:4 e4
10 f2 SVE r:8 e8
11 np SVE w:x e4
11 66 SVE w:x e8
11 f3 SVE w:4 e4
11 f2 SVE w:8 e8
12,16 np SVE L0 r:8
12,16 66 SVE L0 mem r:8
12,16 f3 SVE r:x
12 f2 SV L0 r:dup
12 f2 V L1 r:dup part
12 f2 E r:dup
13,17 np SVE L0 mem w:8
13,17 66 SVE L0 mem w:8
14 np SVE r:x b4 nf part
14 66 SVE r:x b8 nf part
15 np SVE r:x b4 nf
15 66 SVE r:x b8 nf
18,19,1c,1d,1f m
1e np 66 f2 m
1e f3 /0,2-7 m
1e f3 /1 mem m
1e f3 /1 reg >b
28 np SVE r:x e4
28 66 SVE r:x e8
29 np SVE w:x e4
29 66 SVE w:x e8
2a np 66 S r:8
2a f3 f2 SVE r:y
2b np 66 SVE mem w:x
2b f3 S mem w:4
2b f2 S mem w:8
2c,2d np S r:8
2c,2d 66 S r:x
2c,2d f3 SVE r:4 >g
2c,2d f2 SVE r:8 >g
2e,2f np SVE r:4 >f
2e,2f 66 SVE r:8 >f
31,33 nm >ad
40-4f r:v >g
41,42,45-47,4a np 66 V L1 reg >K
4b np 66 V L1 reg >K
44 np 66 V L0 reg >K
50 np 66 SV reg >g
51,58,59,5c-5f np SVE r:x b4
51,58,59,5c-5f 66 SVE r:x b8
51,58,59,5c-5f f3 SVE r:4 e4
51,58,59,5c-5f f2 SVE r:8 e8
52,53 np SV r:x
52,53 f3 SV r:4
54-57 np SVE r:x b4
54-57 66 SVE r:x b8
5a np SVE r:x/2 b4
5a 66 SVE r:x b8
5a f3 SVE r:4 e4
5a f2 SVE r:8 e8
5b np SV r:x
5b np E r:x bw
5b 66 f3 SVE r:x b4
60-62 np S r:4
63-6b np S r:8
60,61 66 SVE r:x part
62 66 SVE r:x b4 nf part
63,67-69 66 SVE r:x
6a,6b 66 SVE r:x b4 nf
64-66 66 SV r:x
64 66 E r:x e1 >K
65 66 E r:x e2 >K
66 66 E r:x b4 >K
6c 66 SVE r:x b8 nf part
6d 66 SVE r:x b8 nf
6e np S r:y
6e 66 SVE L0 r:y
6f np S r:8
6f 66 f3 SVE r:x ew
6f f2 E W0 r:x e1
6f f2 E W1 r:x e2
70 np S r:8 ib
70 66 SVE r:x b4 nf ib
70 f3 f2 SVE r:x ib
71 np 66 S /2,4,6 reg ib
72 np 66 S /2,4,6 reg ib
73 np S /2,6 reg ib
73 66 S /2,3,6,7 reg ib
71,72 66 V /2,4,6 reg ib
73 66 V /2,3,6,7 reg ib
71 66 E /2,4,6 r:x e2 ib
72 66 E /0,1,4 r:x bw ib
72 66 E W0 /2,6 r:x b4 ib
73 66 E W1 /2,6 r:x b8 ib
73 66 E /3,7 r:x ib
74-76 np S r:8
74-76 66 SV r:x
74 66 E r:x e1 >K
75 66 E r:x e2 >K
76 66 E r:x b4 >K
77 np SV nm
78 66 S /0 reg iw
78 f2 S reg iw
79 66 f2 S reg
78,79 np E r:x bw
78,79 66 E W0 r:x/2 b4
78,79 66 E W1 r:x b8
78,79 f3 E r:4 >g
78,79 f2 E r:8 >g
7a,7b 66 E W0 r:x/2 b4
7a,7b 66 E W1 r:x b8
7a f3 E W0 r:x/2 b4
7a f3 E W1 r:x b8
7a f2 E r:x bw
7b f3 f2 E r:y
7c,7d 66 f2 SV r:x
7e np S w:y >b
7e 66 SVE L0 w:y >b
7e f3 SVE L0 r:8
7f np S w:8
7f 66 f3 SVE w:x ew
7f f2 E W0 w:x e1
7f f2 E W1 w:x e2
80-8f nm =cond
90-9f w:1 >B
90 np V L0 W0 r:2 >K
90 np V L0 W1 r:8 >K
90 66 V L0 W0 r:1 >K
90 66 V L0 W1 r:4 >K
91 np V L0 W0 mem w:2
91 np V L0 W1 mem w:8
91 66 V L0 W0 mem w:1
91 66 V L0 W1 mem w:4
92 np 66 f2 V L0 reg >K
93 np 66 f2 V L0 reg >g
98,99 np 66 V L0 reg >f
a0,a8 nm =push >s
a1,a9 nm =pop part >sF
a2 nm >acdn
a3 r:v =bit >f
ab,b3,bb rw:v =bit >bf
a4,ac rw:v ib >bf
a5,ad rw:v >bf
ae np /0 mem w:512 part
ae np /1 mem r:512 part >X
ae np SV L0 /2 mem r:4 >
ae np SV L0 /3 mem w:4
ae np /7 mem m
ae 66 /6,7 mem m
ae np /5-7 reg
ae f3 /0,1 reg >b
ae f3 /2,3 reg >F
ae f3 /6 reg
ae 66 f2 /6 reg >f
af r:v >gf
b0 rw:1 >Baf
b1 rw:v >baf
b6,be r:1 >g
b7,bf r:2 >g
b8 f3 r:v >gf
b9,ff m =trap
ba /4 r:v ib >f
ba /5-7 rw:v ib >bf
bc,bd r:v >gf
c0 rw:1 >GBf
c1 rw:v >gbf
c2 np SV r:x ib
c2 66 SV r:x ib
c2 f3 SV r:4 ib
c2 f2 SV r:8 ib
c2 np E r:x b4 ib >K
c2 66 E r:x b8 ib >K
c2 f3 E r:4 e4 ib >K
c2 f2 E r:8 e8 ib >K
c3 np mem w:y
c4 np S r:2 ib
c4 66 SVE L0 r:2 ib
c5 np S reg ib >g
c5 66 SVE L0 reg ib >g
c6 np SVE r:x b4 nf ib
c6 66 SVE r:x b8 nf ib
c7 np 66 f3 f2 /1 mem rw:cx >adf
c7 np 66 /6,7 reg >bf
c7 f3 /7 reg >b
c8-cf nm >o
d0 66 f2 SV r:x
d1-d5,d8-df np S r:8
d1-d3 66 SVE r:16 part
d4 66 SVE r:x b8
d8,da,dc,de 66 SVE r:x e1
d5,d9,dd 66 SVE r:x e2
db,df 66 SV r:x
db,df 66 E r:x bw
d6 66 SVE L0 w:8
d6 f3 f2 S reg
d7 np S reg >g
d7 66 SV reg >g
e0-e5,e8-ef np S r:8
e0,e8,ec 66 SVE r:x e1
e3-e5,e9,ea,ed,ee 66 SVE r:x e2
e1,e2 66 SVE r:16 part
e6 66 f2 SVE r:x b8
e6 f3 SV r:x/2
e6 f3 E W0 r:x/2 b4
e6 f3 E W1 r:x b8
e7 np S mem w:8
e7 66 SVE mem w:x
eb,ef 66 SV r:x
eb,ef 66 E r:x bw
f0 f2 SV mem r:x
f1-f6,f8-fe np S r:8
f1-f3 66 SVE r:16 part
f4 66 SVE r:x b8
f5,f6 66 SVE r:x
f7 np S reg > =maskmovq
f7 66 SV L0 reg > =maskmovdqu
f8,fc 66 SVE r:x e1
f9,fd 66 SVE r:x e2
fa,fe 66 SVE r:x b4
fb 66 SVE r:x b8
`

	x86Map38 = `
00-0b,1c-1e np S r:8
00 66 SVE r:x
01-03,05-0a 66 SV r:x
04,0b 66 SVE r:x e2
0c 66 V W0 r:x
0c 66 E W0 r:x b4
0d 66 V W0 r:x
0d 66 E W1 r:x b8
0e,0f 66 V W0 r:x >f
10,14,15 66 S r:x
10-12 66 E W1 r:x e2
10 f3 E w:x/2 e1
13 f3 E w:x/2 e2
15 f3 E w:x/2 e4
11 f3 E w:x/4 e1
14 f3 E w:x/4 e2
12 f3 E w:x/8 e1
13 66 V W0 r:x/2
13 66 E W0 r:x/2 e2
14,15 66 E r:x bw
16 66 V L1 W0 r:x
16 66 E r:x bw nf
17 66 SV r:x >f
18 66 VE W0 r:4 e4 =splat
19 66 V L1 W0 r:8
19 66 E r:8 ew =splat
1a 66 V L1 W0 mem r:16
1a 66 E mem r:16 ew =splat
1b 66 E mem r:32 ew =splat
1c 66 SVE r:x e1
1d 66 SVE r:x e2
1e 66 SVE r:x b4
1f 66 E W1 r:x b8
20,30 66 SVE r:x/2 e1
21,31 66 SVE r:x/4 e1
22,32 66 SVE r:x/8 e1
23,33 66 SVE r:x/2 e2
24,34 66 SVE r:x/4 e2
25,35 66 SVE W0 r:x/2 e4
25,35 66 SV W1 r:x/2
20,30 f3 E w:x/2 e1
21,31 f3 E w:x/4 e1
22,32 f3 E w:x/8 e1
23,33 f3 E w:x/2 e2
24,34 f3 E w:x/4 e2
25,35 f3 E w:x/2 e4
26 66 f3 E W0 r:x e1 >K
26 66 f3 E W1 r:x e2 >K
27 66 f3 E r:x bw >K
28 66 SVE r:x b8
28,38 f3 E reg
29,39 f3 E reg >K
29,37 66 SV r:x
29,37 66 E r:x b8 >K
2a 66 SVE mem r:x
2a f3 E W1 reg
3a f3 E W0 reg
2b 66 SVE r:x b4 nf
2c 66 V W0 mem r:x =vmask4
2d 66 V W0 mem r:x =vmask8
2e 66 V W0 mem w:x =vmask4
2f 66 V W0 mem w:x =vmask8
2c 66 E r:x bw
2d 66 E W0 r:4 e4
2d 66 E W1 r:8 e8
36 66 V L1 W0 r:x
36 66 E r:x bw nf
38,3c 66 SVE r:x e1
3a,3e 66 SVE r:x e2
39,3b,3d,3f,40 66 SV r:x
39,3b,3d,3f,40 66 E r:x bw
41 66 SV L0 r:x
42,44,4c,4e 66 E r:x bw
43,4d,4f 66 E W0 r:4 e4
43,4d,4f 66 E W1 r:8 e8
45,47 66 V r:x
46 66 V W0 r:x
45-47 66 E r:x bw
50-53 66 V W0 r:x
50-53 66 E W0 r:x b4
52 f3 E W0 r:x b4
52,53 f2 E W0 L2 mem r:16 e4 =splat
54 66 E W0 r:x e1
54 66 E W1 r:x e2
55 66 E r:x bw
58 66 VE W0 r:4 e4 =splat
59 66 V W0 r:8
59 66 E r:8 ew =splat
5a 66 V L1 W0 mem r:16
5a 66 E mem r:16 ew =splat
5b 66 E mem r:32 ew =splat
62 66 E W0 r:x e1 =pack
62 66 E W1 r:x e2 =pack
63 66 E W0 w:x e1 =pack
63 66 E W1 w:x e2 =pack
64,65 66 E r:x bw
66 66 E W0 r:x e1
66 66 E W1 r:x e2
68 f2 E r:x bw >K
70,72 66 E W1 r:x e2
71,73 66 E r:x bw
72 f3 E W0 r:x b4
72 f2 E W0 r:x b4 nf
75,7d 66 E r:x
76,77,7e,7f 66 E r:x bw nf
78 66 VE W0 r:1 e1 =splat
79 66 VE W0 r:2 e2 =splat
7a-7c 66 E reg
83 66 E W1 r:x b8 nf
88,89 66 E r:x ew =pack
8a,8b 66 E w:x ew =pack
8c 66 V W0 mem r:x =vmask4
8c 66 V W1 mem r:x =vmask8
8e 66 V W0 mem w:x =vmask4
8e 66 V W1 mem w:x =vmask8
8d 66 E r:x
8f 66 E W0 r:x e1 >K
90,92 66 VE mem r:x ew =gatherd
91,93 66 VE mem r:x ew =gatherq
a0,a2 66 E mem w:x ew =gatherd
a1,a3 66 E mem w:x ew =gatherq
96-98,9a,9c,9e,a6-a8,aa,ac,ae,b6-b8,ba,bc,be 66 V r:x
96-98,9a,9c,9e,a6-a8,aa,ac,ae,b6-b8,ba,bc,be 66 E r:x bw
99,9b,9d,9f,a9,ab,ad,af,b9,bb,bd,bf 66 VE W0 r:4 e4
99,9b,9d,9f,a9,ab,ad,af,b9,bb,bd,bf 66 VE W1 r:8 e8
9a,9b,aa,ab f2 E W0 mem r:16 e4 =splat
b4,b5 66 V W1 r:x
b4,b5 66 E W1 r:x b8
c4 66 E r:x bw nf
c8-cd np S r:16
c8,ca,cc 66 E L2 r:x bw
cb,cd 66 E W0 r:4 e4
cb,cd 66 E W1 r:8 e8
cf 66 SVE W0 r:x e1
db 66 SV L0 r:x
dc-df 66 SVE r:x
f0 np 66 mem r:v >g
f1 np 66 mem w:v
f0 f2 r:1 >g
f1 f2 r:v >g
f2 np V L0 r:y >gf
f3 np V L0 /1-3 r:y >vf
f5 np V L0 r:y >gf
f5 f3 f2 V L0 r:y >g
f6 66 f3 r:y >gf
f6 f2 V L0 r:y >gv
f7 np V L0 r:y >gf
f7 66 f3 f2 V L0 r:y >g
f8 66 mem r:64 =movdir64b
f9 np mem w:y
`

	x86Map3A = `
00,01 66 V L1 W1 r:x ib
00,01 66 E W1 r:x b8 nf ib
02 66 V W0 r:x ib
03 66 E r:x bw nf ib
04 66 V W0 r:x ib
04 66 E W0 r:x b4 nf ib
05 66 V W0 r:x ib
05 66 E W1 r:x b8 nf ib
06,46 66 V L1 W0 r:x ib
08 66 SV r:x ib
08 66 E W0 r:x b4 ib
09 66 SV r:x ib
09 66 E W1 r:x b8 ib
08 np E W0 r:x b2 ib
0a np E W0 r:2 e2 ib
0a 66 SVE r:4 e4 ib
0b 66 SVE r:8 e8 ib
0c-0e 66 SV r:x ib
0f np S r:8 ib
0f 66 SVE r:x ib
14 66 SVE L0 w:1 ib >b
15 66 SVE L0 w:2 ib >b
16 66 SVE L0 w:y ib >b
17 66 SVE L0 w:4 ib >b
18,38 66 V L1 W0 r:16 ib
18,38 66 E r:16 ib
19,39 66 V L1 W0 w:16 ib
19,39 66 E w:16 ew ib
1a,3a 66 E L2 r:32 ib
1b,3b 66 E L2 w:32 ew ib
1d 66 V W0 w:x/2 ib
1d 66 E W0 w:x/2 e2 ib
1e,1f 66 E r:x bw ib >K
20 66 SVE L0 r:1 ib
21 66 SVE L0 r:4 ib
22 66 SVE L0 r:y ib
23,43 66 E r:x bw nf ib
25 66 E r:x bw ib
26,50,54,56 66 E r:x bw ib
26,56 np E W0 r:x b2 ib
27,51,55,57 66 E W0 r:4 e4 ib
27,51,55,57 66 E W1 r:8 e8 ib
27,57 np E W0 r:2 e2 ib
30-33 66 V L0 reg ib >K
3e,3f 66 E W0 r:x e1 ib >K
3e,3f 66 E W1 r:x e2 ib >K
40 66 SV r:x ib
41 66 SV L0 r:x ib
42 66 SV r:x ib
42 66 E W0 r:x ib
44 66 SVE r:x ib
4a,4b,4c 66 V W0 r:x ib
5c-5f,68,69,6c,6d,78,79,7c,7d 66 V r:x ib
6a,6e,7a,7e 66 V r:4 ib
6b,6f,7b,7f 66 V r:8 ib
60,62 66 SV L0 r:x ib >Xf
61,63 66 SV L0 r:x ib >cf
66 66 E r:x bw ib >K
66 np E W0 r:x b2 ib >K
67 66 E W0 r:4 e4 ib >K
67 66 E W1 r:8 e8 ib >K
67 np E W0 r:2 e2 ib >K
70,72 66 E W1 r:x e2 ib
71,73 66 E r:x bw ib
c2 np E W0 r:x b2 ib >K
c2 f3 E W0 r:2 e2 ib >K
cc np S r:16 ib
ce,cf 66 S r:x ib
ce,cf 66 V W1 r:x ib
ce,cf 66 E W1 r:x b8 nf ib
df 66 SV L0 r:x ib
f0 f2 V L0 r:y ib >g
f0 f3 S /0 rm=0 reg ib
`

	x86Map5 = `
10 f3 E W0 r:2 e2
11 f3 E W0 w:2 e2
1d np E W0 r:4 e4
1d 66 E W0 r:x b4
2a f3 E r:y
2c,2d f3 E r:2 >g
2e,2f np E W0 r:2 >f
51,58,59,5c-5f np E W0 r:x b2
51,58,59,5c-5f f3 E W0 r:2 e2
5a np E W0 r:x/4 b2
5a 66 E W1 r:x b8
5a f3 E W0 r:2 e2
5a f2 E W1 r:8 e8
5b np E r:x bw
5b 66 f3 E W0 r:x/2 b2
6e 66 E L0 r:2
7e 66 E L0 w:2 >b
78,79 np E W0 r:x/2 b2
78,79 66 E W0 r:x/4 b2
78,79 f3 E r:2 >g
7a,7b 66 E W0 r:x/4 b2
7a f2 E r:x bw
7b f3 E r:y
7c np 66 E W0 r:x b2
7d np 66 f3 f2 E W0 r:x b2
`

	x86Map6 = `
13 np E W0 r:2 e2
13 66 E W0 r:x/2 b2
2c,42,4c,4e 66 E W0 r:x b2
2d,43,4d,4f 66 E W0 r:2 e2
56,d6 f3 f2 E W0 r:x b4
57,d7 f3 f2 E W0 r:4 e4
96-98,9a,9c,9e,a6-a8,aa,ac,ae,b6-b8,ba,bc,be 66 E W0 r:x b2
99,9b,9d,9f,a9,ab,ad,af,b9,bb,bd,bf 66 E W0 r:2 e2
`
)
