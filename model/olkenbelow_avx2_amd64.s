#define FINDNEAR ·findNear256
#define FINDFIRST ·findFirst256
#define REMOVERUN ·removeRun256
#define TAKESLOTS ·takeSlots256

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

#include "olkenbelow_amd64.h"

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
