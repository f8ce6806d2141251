#include "go_asm.h"
#include "textflag.h"

// In both, Z0 to Z3 are the tags and Z4 the ages; R12 is t, R15 the age of the next
// touch, R13 the misses, DX the index of the touch, R8 how many are to be done.

#define START \
	VMOVDQU32 stackTop_tags(R12), Z0 \
	VMOVDQU32 (stackTop_tags+64)(R12), Z1 \
	VMOVDQU32 (stackTop_tags+128)(R12), Z2 \
	VMOVDQU32 (stackTop_tags+192)(R12), Z3 \
	VMOVDQU8 stackTop_ages(R12), Z4 \
	MOVQ stackTop_age(R12), R15 \
	MOVL $256, AX \
	SUBQ R15, AX \
	ADDQ DX, AX \
	CMPQ AX, R8 \
	CMOVQLT AX, R8 \
	MOVQ stackTop_misses(R12), R13 \
	CMPQ DX, R8

// FIND sets CX to the place of block BX and K1 to its bit; carry if it is not there. AX
// and Z5 are its tag.
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

// YOUNGER sets AX to the number of blocks younger than that at CX, which becomes the youngest.
#define YOUNGER \
	VPBROADCASTB stackTop_ages(R12)(CX*1), Z6 \
	VPBROADCASTB R15, Z7 \
	VPCMPUB $6, Z6, Z4, K2 \
	KMOVQ K2, AX \
	POPCNTQ AX, AX \
	VMOVDQU8 Z7, K1, Z4 \
	MOVB R15, stackTop_ages(R12)(CX*1) \
	INCL R15

// ENTER gives block BX the place order[CX].
#define ENTER \
	MOVQ BX, stackTop_blocks(R12)(R13*8) \
	MOVB CX, stackTop_above(R12)(R13*1) \
	INCQ stackTop_held(R12) \
	MOVBLZX stackTop_order(R12)(CX*1), CX \
	MOVB CX, stackTop_places(R12)(R13*1) \
	INCQ R13 \
	MOVQ BX, stackTop_keys(R12)(CX*8) \
	MOVL AX, stackTop_tags(R12)(CX*4) \
	MOVB R15, stackTop_ages(R12)(CX*1) \
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
	VPBROADCASTB R15, Z7 \
	VMOVDQU8 Z7, K1, Z4 \
	INCL R15

// BUCKET sets DX to the bucket that hash BX belongs to in the index. See indexShard.first.
#define BUCKET(index) \
	MOVQ BX, DX \
	SHLQ $6, DX \
	SHRQ $58, BX \
	LEAQ (BX)(BX*4), BX \
	SHLQ $3, BX \
	ADDQ index, BX \
	MULXQ (blockIndex_shards+8)(BX), AX, DX \
	SHLQ $6, DX \
	ADDQ blockIndex_shards(BX), DX

// AHEAD keeps the hash of block BX, which was entered last, and has the bucket that it belongs to read. It
// leaves CX and DX. See hashBlock.
#define AHEAD \
	MOVQ DX, R14 \
	MOVQ $0x9e3779b97f4a7c15, DX \
	XORQ BX, DX \
	MOVQ $0xd6e8feb86659fd93, AX \
	MULXQ AX, AX, BX \
	XORQ AX, BX \
	MOVQ BX, (stackTop_hashes-8)(R12)(R13*8) \
	BUCKET(stackTop_index(R12)) \
	PREFETCHT0 (DX) \
	MOVQ R14, DX

#define END \
	MOVQ R15, stackTop_age(R12) \
	MOVQ R13, stackTop_misses(R12) \
	VZEROUPPER

// func touchTop(t *stackTop, blocks []uint64, runs []uint8, dist, time []uint64, from int) int
TEXT ·touchTop(SB), NOSPLIT, $0-120
	MOVQ t+0(FP), R12
	MOVQ blocks_base+8(FP), SI
	MOVQ blocks_len+16(FP), R8
	MOVQ runs_base+32(FP), DI
	MOVQ dist_base+56(FP), R10
	MOVQ time_base+80(FP), R11
	MOVQ stackTop_next(R12), R9
	MOVQ from+104(FP), DX
	START
	JGE done

loop:
	MOVQ (SI)(DX*8), BX
	FIND
	JCS miss
	CMPQ BX, stackTop_keys(R12)(CX*8)
	JNE done
	YOUNGER
	MOVQ AX, (R10)(DX*8)
	MOVQ R9, AX
	SUBQ stackTop_pos(R12)(CX*8), AX
	MOVQ AX, (R11)(DX*8)

last:
	MOVBLZX (DI)(DX*1), AX
	SHRL $1, AX
	ADDQ AX, R9
	MOVQ R9, stackTop_pos(R12)(CX*8)
	INCQ R9
	INCQ DX
	CMPQ DX, R8
	JLT loop

done:
	MOVQ R9, stackTop_next(R12)
	END
	MOVQ DX, ret+112(FP)
	RET

miss:
	MOVQ stackTop_held(R12), CX
	CMPQ CX, $64
	JEQ done
	MOVQ R9, (R11)(DX*8)
	MOVL DX, stackTop_missed(R12)(R13*4)
	ENTER
	AHEAD
	JMP last

// func countTop(t *stackTop, blocks []uint64, found *[topBlocks]uint64, from int) int
TEXT ·countTop(SB), NOSPLIT, $0-56
	MOVQ t+0(FP), R12
	MOVQ blocks_base+8(FP), SI
	MOVQ blocks_len+16(FP), R8
	MOVQ found+32(FP), R10
	MOVQ from+40(FP), DX
	START
	JGE end

next:
	MOVQ (SI)(DX*8), BX
	FIND
	JCS absent
	CMPQ BX, stackTop_keys(R12)(CX*8)
	JNE end
	YOUNGER
	INCQ (R10)(AX*8)
	INCQ DX
	CMPQ DX, R8
	JLT next
	JMP end

absent:
	MOVQ stackTop_held(R12), CX
	CMPQ CX, $64
	JEQ end
	MOVL R13, stackTop_missed(R12)(R13*4)
	ENTER
	AHEAD
	INCQ DX
	CMPQ DX, R8
	JLT next

end:
	END
	MOVQ DX, ret+48(FP)
	RET

// func sortTop(t *stackTop, keep int)
TEXT ·sortTop(SB), NOSPLIT, $0-16
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
	VPBROADCASTB stackTop_ages(R12)(CX*1), Z6
	VPCMPUB $6, Z6, Z4, K2
	KMOVQ K2, AX
	POPCNTQ AX, AX
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
	VPBROADCASTQ (SI)(CX*8), Z0
	VPCMPEQQ (DX), Z0, K1
	KMOVB K1, AX
	ORL $0x20, AX // what is behind the blocks is none
	TZCNTL AX, AX
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
	VMOVDQU32 (R15), Z0 \
	SHLQ $6, R13 \
	VPSUBD (R14)(R13*1), Z0, Z0 \
	VMOVDQU32 Z0, (R15)

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
