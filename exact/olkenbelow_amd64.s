#include "bucket_amd64.h"

// MATCH sets bits to which of the bucket's blocks is block, to 5 if none is.
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

// TAKEONE takes one from those children of node R15 that (R14)(R13*1) tells.
#define TAKEONE \
	VMOVDQU (R15), Y0 \
	VMOVDQU 32(R15), Y1 \
	VPSUBD (R14)(R13*1), Y0, Y0 \
	VPSUBD 32(R14)(R13*1), Y1, Y1 \
	VMOVDQU Y0, (R15) \
	VMOVDQU Y1, 32(R15)

// func findNear(x *blockIndex, blocks, hashes []uint64, slots *[batch]*uint32, left *[batch]uint32) int
TEXT ·findNear(SB), NOSPLIT, $0-80
	MOVQ x+0(FP), R12
	MOVQ blocks_base+8(FP), SI
	MOVQ blocks_len+16(FP), R8
	MOVQ hashes_base+32(FP), DI
	MOVQ slots+56(FP), R10
	MOVQ left+64(FP), R11
	XORL R13, R13
	XORL CX, CX
	CMPQ CX, R8
	JGE looked

look:
	MOVQ (DI)(CX*8), BX
	BUCKET(R12)
	MOVQ (SI)(CX*8), BX
	MATCH(BX, DX, AX, R9)
	LEAQ indexBucket_pos(DX), BX // what points behind the bucket is no pointer for the collector
	LEAQ indexBucket_pos(DX)(AX*4), R9
	XORL R15, R15
	LEAQ 64(DX), R14
	CMPL AX, indexBucket_n(DX)
	CMOVQCC BX, R9
	CMOVQCS DX, R14
	SETCC R15
	PREFETCHT0 (R14) // the next bucket, where those may be that are left
	MOVQ R9, (R10)(CX*8)
	MOVL CX, (R11)(R13*4)
	ADDQ R15, R13
	INCQ CX
	CMPQ CX, R8
	JLT look

looked:
	MOVQ R13, ret+72(FP)
	VZEROUPPER
	RET

// LEVEL adds to CX what the node says that is child BX's of the level whose first AX points to, and takes one from
// those before it; BX becomes the child of the level above. R11 is the nodes, R14 childrenBefore. See runTree.remove.
#define LEVEL \
	MOVL BX, R13 \
	ANDL $15, R13 \
	SHRL $4, BX \
	MOVQ (AX), R15 \
	ADDQ BX, R15 \
	SHLQ $6, R15 \
	ADDQ R11, R15 \
	ADDL (R15)(R13*4), CX \
	SHLQ $6, R13 \
	TAKEONE

// func removeRun(t *runTree, run uint32) uint32
TEXT ·removeRun(SB), NOSPLIT, $0-20
	MOVQ t+0(FP), R12
	MOVL run+8(FP), BX
	MOVQ runTree_nodes(R12), R11
	LEAQ runTree_base(R12), AX
	MOVQ runTree_levels(R12), DX
	LEAQ (AX)(DX*8), DX
	LEAQ ·childrenBefore(SB), R14
	XORL CX, CX

up:
	LEVEL
	ADDQ $8, AX
	CMPQ AX, DX
	JLT up
	MOVL CX, ret+16(FP)
	VZEROUPPER
	RET

// func takeSlots(o *timedOrder, slots []*uint32, above []uint8, dist []uint64) (cold int)
TEXT ·takeSlots(SB), NOSPLIT, $24-88
	MOVQ o+0(FP), R12
	MOVQ slots_base+8(FP), SI
	MOVQ slots_len+16(FP), DX
	MOVQ above_base+32(FP), R8
	MOVQ dist_base+56(FP), DI
	MOVQ (timedOrder_recency+recency_bitmap)(R12), R9
	MOVQ (timedOrder_recency+recency_later)(R12), R10
	MOVQ (timedOrder_recency+recency_closed+runTree_nodes)(R12), R11
	MOVQ $0, cold+80(FP)
	MOVL (timedOrder_recency+recency_now)(R12), AX
	SHRL $const_runShift, AX
	MOVQ AX, open-8(SP)
	MOVQ (timedOrder_recency+recency_closed+runTree_levels)(R12), AX
	LEAQ (timedOrder_recency+recency_closed+runTree_base)(R12)(AX*8), AX
	MOVQ AX, levels-16(SP)

	// From -n to 0.
	LEAQ (SI)(DX*8), SI
	LEAQ (DI)(DX*8), DI
	ADDQ DX, R8
	NEGQ DX
	JGE taken

take:
	MOVQ (SI)(DX*8), AX
	MOVL (AX), AX
	CMPL AX, $-1
	JEQ cold

	// The bits of its word that are above it, and its own. See recency.take.
	MOVL AX, BX
	SHRL $6, BX
	MOVQ (R9)(BX*8), R13
	SHRXQ AX, R13, CX
	SHRQ $1, CX
	POPCNTQ CX, CX
	BTRQ AX, R13
	MOVQ R13, (R9)(BX*8)

	// Those of later words of the run.
	MOVL BX, R15
	ANDL $7, R15
	SHRL $3, BX
	MOVQ (R10)(BX*8), R13
	LEAL (R15)(R15*8), AX
	SHRXQ AX, R13, AX
	ANDL $511, AX
	ADDL AX, CX
	LEAQ ·before(SB), AX
	SUBQ (AX)(R15*8), R13
	MOVQ R13, (R10)(BX*8)
	CMPL BX, open-8(SP)
	JEQ near
	ADDL (timedOrder_recency+recency_openLive)(R12), CX

	// Those of later runs. See runTree.remove.
	LEAQ ·childrenBefore(SB), R14
	LEAQ (timedOrder_recency+recency_closed+runTree_base)(R12), AX

level:
	LEVEL
	ADDQ $8, AX
	CMPQ AX, levels-16(SP)
	JLT level

next:
	MOVBLZX (R8)(DX*1), AX
	ADDQ AX, CX
	MOVQ CX, (DI)(DX*8)
	INCQ DX
	JLT take

taken:
	VZEROUPPER
	RET

near:
	DECL (timedOrder_recency+recency_openLive)(R12)
	JMP next

cold:
	MOVQ $-1, (DI)(DX*8)
	INCQ cold+80(FP)
	INCQ DX
	JLT take
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
	MATCH(R13, BX, CX, DX)

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
