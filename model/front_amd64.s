#include "textflag.h"

// func touchFront(f *front, blocks []uint64, runs []uint8, dist, time []uint64)
//
// Z0 and Z1 are the blocks, the last touched first; Z2 and Z3 their positions.
TEXT ·touchFront(SB), NOSPLIT, $0-104
	MOVQ f+0(FP), R12
	MOVQ blocks_base+8(FP), SI
	MOVQ blocks_len+16(FP), R8
	MOVQ runs_base+32(FP), DI
	MOVQ dist_base+56(FP), R10
	MOVQ time_base+80(FP), R11
	VMOVDQU64 (R12), Z0
	VMOVDQU64 64(R12), Z1
	VMOVDQU64 128(R12), Z2
	VMOVDQU64 192(R12), Z3
	MOVQ 256(R12), R9 // position of the next touch
	XORL R13, R13     // misses
	XORL DX, DX
	KXNORW K7, K7, K7
	TESTQ R8, R8
	JEQ done

loop:
	VPBROADCASTQ (SI)(DX*8), Z4
	VPCMPEQQ Z4, Z0, K1
	VPCMPEQQ Z4, Z1, K2
	KUNPCKBW K1, K2, K3

	// K4, K5: those up to the block itself make room for it; all if it is not there.
	KADDW K7, K3, K4
	KXORW K3, K4, K4
	KSHIFTRW $8, K4, K5

	// The distance, 16 if it is not there.
	KMOVW K3, AX
	ORL $0x10000, AX
	BSFL AX, CX
	MOVQ CX, (R10)(DX*8)

	// The time; the position of the touch if it is not there.
	VPBROADCASTQ CX, Z6
	VPERMI2Q Z3, Z2, Z6
	VMOVQ X6, BX
	MOVL CX, AX
	SHRL $4, AX // 1 if it is not there
	LEAQ -1(AX), R15
	ANDQ R15, BX
	MOVQ R9, R15
	SUBQ BX, R15
	MOVQ R15, (R11)(DX*8)

	// What it displaces if it is not there.
	VALIGNQ $7, Z1, Z1, Z7
	VALIGNQ $7, Z3, Z3, Z8
	VMOVQ X7, 264(R12)(R13*8)
	VMOVQ X8, 2312(R12)(R13*8)
	MOVL DX, 4360(R12)(R13*4)
	ADDQ AX, R13

	MOVBLZX (DI)(DX*1), BX
	SHRL $1, BX
	ADDQ BX, R9
	VPBROADCASTQ R9, Z5
	INCQ R9
	VALIGNQ $7, Z0, Z1, K5, Z1
	VALIGNQ $7, Z4, Z0, K4, Z0
	VALIGNQ $7, Z2, Z3, K5, Z3
	VALIGNQ $7, Z5, Z2, K4, Z2
	INCQ DX
	CMPQ DX, R8
	JLT loop

done:
	VMOVDQU64 Z0, (R12)
	VMOVDQU64 Z1, 64(R12)
	VMOVDQU64 Z2, 128(R12)
	VMOVDQU64 Z3, 192(R12)
	MOVQ R9, 256(R12)
	MOVQ R13, 5384(R12)
	VZEROUPPER
	RET

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
