// Y0 to Y3 are the tags, 16 bits of each: in an order such that the bytes that comparisons are packed to are in that of the
// places, as packing goes by halves. Several blocks may have one tag. Y4 and Y5 are the ages, Y6 is the tag looked for, Y7 is
// the age of the next touch in each byte. Y8 and Y9 have the bytes of the places found set.

#define TOUCHTOP ·touchTop256
#define COUNTTOP ·countTop256
#define FINDNEAR ·findNear256
#define FINDFIRST ·findFirst256
#define REMOVERUN ·removeRun256
#define TAKESLOTS ·takeSlots256

#define LOADTOP \
	VMOVDQU stackTop_tags(R12), X0 \
	VINSERTI128 $1, (stackTop_tags+64)(R12), Y0, Y0 \
	VMOVDQU (stackTop_tags+16)(R12), X10 \
	VINSERTI128 $1, (stackTop_tags+80)(R12), Y10, Y10 \
	VPACKUSDW Y10, Y0, Y0 \
	VMOVDQU (stackTop_tags+32)(R12), X1 \
	VINSERTI128 $1, (stackTop_tags+96)(R12), Y1, Y1 \
	VMOVDQU (stackTop_tags+48)(R12), X10 \
	VINSERTI128 $1, (stackTop_tags+112)(R12), Y10, Y10 \
	VPACKUSDW Y10, Y1, Y1 \
	VMOVDQU (stackTop_tags+128)(R12), X2 \
	VINSERTI128 $1, (stackTop_tags+192)(R12), Y2, Y2 \
	VMOVDQU (stackTop_tags+144)(R12), X10 \
	VINSERTI128 $1, (stackTop_tags+208)(R12), Y10, Y10 \
	VPACKUSDW Y10, Y2, Y2 \
	VMOVDQU (stackTop_tags+160)(R12), X3 \
	VINSERTI128 $1, (stackTop_tags+224)(R12), Y3, Y3 \
	VMOVDQU (stackTop_tags+176)(R12), X10 \
	VINSERTI128 $1, (stackTop_tags+240)(R12), Y10, Y10 \
	VPACKUSDW Y10, Y3, Y3 \
	VMOVDQU stackTop_ages(R12), Y4 \
	VMOVDQU (stackTop_ages+32)(R12), Y5 \
	MOVQ stackTop_age(R12), R15 \
	VMOVD R15, X7 \
	VPBROADCASTB X7, Y7

#define TAG \
	XORL AX, AX \
	CRC32Q BX, AX \
	ORL $1, AX \
	MOVWLZX AX, AX

#define FIND \
	TAG \
	VMOVD AX, X6 \
	VPBROADCASTW X6, Y6 \
	VPCMPEQW Y6, Y0, Y8 \
	VPCMPEQW Y6, Y1, Y10 \
	VPACKSSWB Y10, Y8, Y8 \
	VPCMPEQW Y6, Y2, Y9 \
	VPCMPEQW Y6, Y3, Y10 \
	VPACKSSWB Y10, Y9, Y9 \
	VPMOVMSKB Y8, CX \
	VPMOVMSKB Y9, R14 \
	SHLQ $32, R14 \
	ORQ CX, R14 \
	TZCNTQ R14, CX \
	BLSRQ R14, R14

// SEVERAL goes on where several blocks have the tag.
#define SEVERAL \
	JNE clash

#define ONLYPLACE \
	LEAQ ·onePlace+64(SB), R14 \
	SUBQ CX, R14 \
	VMOVDQU (R14), Y8 \
	VMOVDQU 32(R14), Y9

#define CLASH(found, absent) \
	VPMOVMSKB Y8, AX \
	VPMOVMSKB Y9, R14 \
	SHLQ $32, R14 \
	ORQ R14, AX \
further: \
	TESTQ AX, AX \
	JEQ none \
	TZCNTQ AX, CX \
	BLSRQ AX, AX \
	CMPQ BX, stackTop_keys(R12)(CX*8) \
	JNE further \
	ONLYPLACE \
	JMP found \
none: \
	TAG \
	JMP absent

#define COUNTYOUNGER \
	VPBROADCASTB stackTop_ages(R12)(CX*1), Y11 \
	VPMAXUB Y11, Y4, Y10 \
	VPCMPEQB Y11, Y10, Y10 \
	VPMOVMSKB Y10, AX \
	VPMAXUB Y11, Y5, Y10 \
	VPCMPEQB Y11, Y10, Y10 \
	VPMOVMSKB Y10, R14 \
	SHLQ $32, R14 \
	ORQ R14, AX \
	NOTQ AX \
	POPCNTQ AX, AX

// Ages only grow.
#define MAKEYOUNGEST \
	VPAND Y7, Y8, Y10 \
	VPMAXUB Y10, Y4, Y4 \
	VPAND Y7, Y9, Y10 \
	VPMAXUB Y10, Y5, Y5 \
	VPSUBB ·allOnes(SB), Y7, Y7

// The place is free: its tag is 0. Unpacking undoes what packing does to the order.
#define ENTERPLACE \
	ONLYPLACE \
	VPUNPCKLBW Y8, Y8, Y10 \
	VPAND Y6, Y10, Y10 \
	VPOR Y10, Y0, Y0 \
	VPUNPCKHBW Y8, Y8, Y10 \
	VPAND Y6, Y10, Y10 \
	VPOR Y10, Y1, Y1 \
	VPUNPCKLBW Y9, Y9, Y10 \
	VPAND Y6, Y10, Y10 \
	VPOR Y10, Y2, Y2 \
	VPUNPCKHBW Y9, Y9, Y10 \
	VPAND Y6, Y10, Y10 \
	VPOR Y10, Y3, Y3 \
	MAKEYOUNGEST

#define MATCH(block, bucket, bits, spare) \
	VMOVQ block, X0 \
	VPBROADCASTQ X0, Y0 \
	VPCMPEQQ (bucket), Y0, Y0 \
	VMOVMSKPD Y0, bits \
	XORL spare, spare \
	CMPQ block, 32(bucket) \
	SETEQ spare \
	SHLL $4, spare \
	ORL spare, bits \
	ORL $0x20, bits \
	TZCNTL bits, bits

#define TAKEONE \
	VMOVDQU (R15), Y0 \
	VMOVDQU 32(R15), Y1 \
	VPSUBD (R14)(R13*1), Y0, Y0 \
	VPSUBD 32(R14)(R13*1), Y1, Y1 \
	VMOVDQU Y0, (R15) \
	VMOVDQU Y1, 32(R15)

#include "stacktop_amd64.h"

DATA ·allOnes+0(SB)/8, $-1
DATA ·allOnes+8(SB)/8, $-1
DATA ·allOnes+16(SB)/8, $-1
DATA ·allOnes+24(SB)/8, $-1
GLOBL ·allOnes(SB), RODATA|NOPTR, $32

// One byte that is set, 64 before it and 63 behind it that are not.
DATA ·onePlace+64(SB)/1, $0xff
GLOBL ·onePlace(SB), RODATA|NOPTR, $128

// func sortTop256(t *stackTop, keep int)
TEXT ·sortTop256(SB), NOSPLIT, $256-16
	MOVQ t+0(FP), R12
	MOVQ keep+8(FP), R8
	MOVQ stackTop_held(R12), R9
	XORL DI, DI
	XORL DX, DX

	// The places by age, the youngest first; where none is it is -1.
	VPCMPEQB Y15, Y15, Y15
	VMOVDQU Y15, places-256(SP)
	VMOVDQU Y15, places-224(SP)
	VMOVDQU Y15, places-192(SP)
	VMOVDQU Y15, places-160(SP)
	VMOVDQU Y15, places-128(SP)
	VMOVDQU Y15, places-96(SP)
	VMOVDQU Y15, places-64(SP)
	VMOVDQU Y15, places-32(SP)
	LEAQ places-256(SP), SI
	CMPQ DX, R9
	JGE sorted

place:
	MOVBLZX stackTop_order(R12)(DX*1), CX
	MOVBLZX stackTop_ages(R12)(CX*1), AX
	XORL $255, AX
	MOVB CX, (SI)(AX*1)
	INCQ DX
	CMPQ DX, R9
	JLT place
	XORL DX, DX

word:
	VPCMPEQB (SI), Y15, Y0
	VPCMPEQB 32(SI), Y15, Y1
	VPMOVMSKB Y0, AX
	VPMOVMSKB Y1, R10
	SHLQ $32, R10
	ORQ AX, R10
	NOTQ R10
	JMP more

youngest:
	TZCNTQ R10, AX
	MOVBLZX (SI)(AX*1), CX
	MOVB CX, stackTop_sorted(R12)(DX*1)
	MOVQ R8, BX
	SUBQ DX, BX
	CMOVQLT DI, BX // 0 for those given back
	MOVB BX, stackTop_ages(R12)(CX*1)
	INCQ DX
	BLSRQ R10, R10

more:
	TESTQ R10, R10
	JNE youngest
	ADDQ $64, SI
	CMPQ DX, R9
	JLT word

sorted:
	VZEROUPPER
	RET

// func readBuckets(x *blockIndex, hashes []uint64)
TEXT ·readBuckets(SB), NOSPLIT, $0-32
	MOVQ x+0(FP), R12
	MOVQ hashes_base+8(FP), DI
	MOVQ hashes_len+16(FP), R8
	XORL CX, CX
	CMPQ CX, R8
	JGE ahead

bucket:
	MOVQ (DI)(CX*8), BX
	BUCKET(R12)
	PREFETCHT0 (DX)
	INCQ CX
	CMPQ CX, R8
	JLT bucket

ahead:
	RET

// func readOrder(o *timedOrder, slots *[batch]*uint32, n int)
TEXT ·readOrder(SB), NOSPLIT, $0-24
	MOVQ o+0(FP), R12
	MOVQ slots+8(FP), SI
	MOVQ n+16(FP), R8
	MOVQ (timedOrder_recency+recency_bitmap)(R12), R9
	MOVQ (timedOrder_recency+recency_later)(R12), R10
	MOVQ (timedOrder_clock+clock_old+timeList_low)(R12), R11
	MOVL (timedOrder_clock+clock_base)(R12), R13
	XORL DX, DX
	TESTQ R11, R11
	CMOVQEQ DX, R13 // no times
	CMPQ DX, R8
	JGE read

slot:
	MOVQ (SI)(DX*8), AX
	MOVL (AX), AX
	MOVL AX, BX
	SHRL $6, BX
	LEAQ (R9)(BX*8), CX
	PREFETCHT0 (CX)
	SHRL $3, BX
	PREFETCHT0 (R10)(BX*8)
	LEAQ -4(R11)(AX*4), DI
	CMPL AX, R13
	CMOVQCC CX, DI
	PREFETCHT0 (DI)
	INCQ DX
	CMPQ DX, R8
	JLT slot

read:
	RET
