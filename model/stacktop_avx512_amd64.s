// Z0 to Z3 are the tags and Z4 the ages; Z5 is the tag looked for, K1 the place found.

#define TOUCHTOP ·touchTop512
#define COUNTTOP ·countTop512
#define FINDNEAR ·findNear512
#define FINDFIRST ·findFirst512
#define REMOVERUN ·removeRun512
#define TAKESLOTS ·takeSlots512

#define LOADTOP \
	VMOVDQU32 stackTop_tags(R12), Z0 \
	VMOVDQU32 (stackTop_tags+64)(R12), Z1 \
	VMOVDQU32 (stackTop_tags+128)(R12), Z2 \
	VMOVDQU32 (stackTop_tags+192)(R12), Z3 \
	VMOVDQU8 stackTop_ages(R12), Z4 \
	MOVQ stackTop_age(R12), R15

#define FIND \
	XORL AX, AX \
	CRC32Q BX, AX \
	ORL $1, AX \
	VPBROADCASTD AX, Z5 \
	VPCMPEQD Z5, Z0, K1 \
	VPCMPEQD Z5, Z1, K2 \
	VPCMPEQD Z5, Z2, K3 \
	VPCMPEQD Z5, Z3, K4 \
	KUNPCKWD K1, K2, K1 \
	KUNPCKWD K3, K4, K3 \
	KUNPCKDQ K1, K3, K1 \
	KMOVQ K1, CX \
	TZCNTQ CX, CX

// Two blocks of one tag are not kept.
#define SEVERAL

#define CLASH(found, absent) \
	JMP unready

#define COUNTYOUNGER \
	VPBROADCASTB stackTop_ages(R12)(CX*1), Z6 \
	VPCMPUB $6, Z6, Z4, K2 \
	KMOVQ K2, AX \
	POPCNTQ AX, AX

#define MAKEYOUNGEST \
	VPBROADCASTB R15, Z7 \
	VMOVDQU8 Z7, K1, Z4

#define ENTERPLACE \
	MOVL $1, AX \
	SHLQ CX, AX \
	KMOVQ AX, K1 \
	KSHIFTRQ $16, K1, K2 \
	KSHIFTRQ $32, K1, K3 \
	KSHIFTRQ $48, K1, K4 \
	VMOVDQA32 Z5, K1, Z0 \
	VMOVDQA32 Z5, K2, Z1 \
	VMOVDQA32 Z5, K3, Z2 \
	VMOVDQA32 Z5, K4, Z3 \
	MAKEYOUNGEST

#define MATCH(block, bucket, bits, spare) \
	VPBROADCASTQ block, Z0 \
	VPCMPEQQ (bucket), Z0, K1 \
	KMOVB K1, bits \
	ORL $0x20, bits \
	TZCNTL bits, bits

#define TAKEONE \
	VMOVDQU32 (R15), Z0 \
	VPSUBD (R14)(R13*1), Z0, Z0 \
	VMOVDQU32 Z0, (R15)

#include "stacktop_amd64.h"

// func sortTop512(t *stackTop, keep int)
TEXT ·sortTop512(SB), NOSPLIT, $0-16
	MOVQ t+0(FP), R12
	MOVQ keep+8(FP), R8
	MOVQ stackTop_held(R12), R9
	VMOVDQU8 stackTop_ages(R12), Z4
	XORL DX, DX
	XORL DI, DI
	CMPQ DX, R9
	JGE sorted

place:
	MOVBLZX stackTop_order(R12)(DX*1), CX
	COUNTYOUNGER
	MOVB CX, stackTop_sorted(R12)(AX*1)
	MOVQ R8, BX
	SUBQ AX, BX
	CMOVQLT DI, BX // 0 for those given back
	MOVB BX, stackTop_ages(R12)(CX*1)
	INCQ DX
	CMPQ DX, R9
	JLT place

sorted:
	VZEROUPPER
	RET
