#include "textflag.h"

// func findFirst(missed *[batch]missedBlock, n int, blocks []uint64, slots *[batch]*uint32, recent *[numRecent]recentSlot) int
TEXT ·findFirst(SB), NOSPLIT, $16-64
	MOVQ missed+0(FP), SI
	MOVQ n+8(FP), R8
	MOVQ blocks_base+16(FP), DI
	MOVQ slots+40(FP), R9
	MOVQ recent+48(FP), R10
	MOVQ SI, R11 // the next one that is left
	LEAQ (R8)(R8*2), R8
	LEAQ (SI)(R8*8), R8 // behind the last
	CMPQ SI, R8
	JGE found

each:
	MOVQ (SI), AX    // i
	MOVQ 8(SI), R12  // hash
	MOVQ 16(SI), BX  // bucket
	MOVQ (DI)(AX*8), R13
	VPBROADCASTQ R13, Z0
	VPCMPEQQ (BX), Z0, K1
	KMOVW K1, CX
	ORL $0x100, CX
	BSFL CX, CX

	// If it is not there, it is left, and what is recent is written to the frame.
	MOVQ AX, (R11)
	MOVQ R12, 8(R11)
	MOVQ BX, 16(R11)
	ANDL $4095, R12
	SHLQ $4, R12
	ADDQ R10, R12
	CMPL CX, 60(BX)
	LEAQ 40(BX)(CX*4), DX // its slot
	LEAQ 40(BX), CX       // what points behind the bucket is no pointer for the collector
	CMOVQCC CX, DX
	LEAQ 24(R11), CX
	CMOVQCC CX, R11
	LEAQ room-16(SP), CX
	CMOVQCC CX, R12
	LEAQ 64(BX), CX
	CMOVQCS BX, CX
	PREFETCHT0 (CX) // the next bucket, where those may be that are left
	MOVQ DX, (R9)(AX*8)
	MOVQ R13, (R12)
	MOVQ DX, 8(R12)
	ADDQ $24, SI
	CMPQ SI, R8
	JLT each

found:
	SUBQ missed+0(FP), R11
	MOVQ R11, AX
	XORL DX, DX
	MOVL $24, CX
	DIVL CX
	MOVQ AX, ret+56(FP)
	VZEROUPPER
	RET
