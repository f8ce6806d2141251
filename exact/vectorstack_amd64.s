// The top of the stack by AVX2.
//
// In touchVector and countVector R12 is t, R13 the misses, R8 the age of the next touch less 128, by which all that has an element for each touch is
// indexed, R15 where the free lane is that is next when there are no misses. Y0 and Y1 are the ages, Y2 is the age of the next touch
// in each byte, Y3 all ones, Y7 and Y8 are the numbers of the lanes.

#include "bucket_amd64.h"

// LOADAGES loads the vector registers.
#define LOADAGES \
	VMOVDQU vectorStack_ages(R12), Y0 \
	VMOVDQU (vectorStack_ages+32)(R12), Y1 \
	VMOVD R8, X2 \
	VPBROADCASTB X2, Y2 \
	VPCMPEQB Y3, Y3, Y3 \
	VMOVDQU ·lanes(SB), Y7 \
	VMOVDQU ·lanes+32(SB), Y8

// COUNTYOUNGER sets DX to the number of blocks younger than that at lane CX.
#define COUNTYOUNGER \
	VPBROADCASTB vectorStack_ages(R12)(CX*1), Y4 \
	VPCMPGTB Y4, Y0, Y5 \
	VPCMPGTB Y4, Y1, Y6 \
	VPMOVMSKB Y5, DX \
	VPMOVMSKB Y6, R14 \
	POPCNTL DX, DX \
	POPCNTL R14, R14 \
	ADDL R14, DX

// MAKEYOUNGEST evictions the lane CX the age of the next touch.
#define MAKEYOUNGEST \
	VMOVD CX, X5 \
	VPBROADCASTB X5, Y5 \
	VPCMPEQB Y8, Y5, Y6 \
	VPCMPEQB Y7, Y5, Y5 \
	VPBLENDVB Y5, Y2, Y0, Y0 \
	VPBLENDVB Y6, Y2, Y1, Y1 \
	VPSUBB Y3, Y2, Y2

// START makes ready for what goes from touch AX on, R14 in all, and goes on to nothing if no touch can be done. AX becomes what is added to R8 for the
// index of a touch, SI where the blocks are by R8.
#define START(nothing) \
	MOVQ vectorStack_misses(R12), R13 \
	MOVQ vectorStack_age(R12), R8 \
	SUBQ $128, R8 \
	SUBQ R8, AX \
	MOVQ AX, before-24(SP) \
	SUBQ AX, R14 \
	MOVL $128, CX \
	CMPQ R14, CX \
	CMOVQGT CX, R14 \
	MOVQ R14, end-8(SP) \
	MOVQ R13, R15 \
	SUBQ vectorStack_held(R12), R15 \
	LEAQ const_vectorBlocks(R15), CX \
	MOVQ CX, full-16(SP) \
	NEGQ R15 \
	LEAQ vectorStack_order(R12)(R15*1), R15 \
	LOADAGES \
	CMPQ R8, R14 \
	JGE nothing \
	CMPQ R13, CX \
	JGE nothing \
	MOVQ blocks_base+8(FP), SI \
	LEAQ (SI)(AX*8), SI

// TOUCH touches block BX. The touch is listed as a miss in any case, and the next free lane made ready: whether a block is there cannot be
// foretold. CX is the lane, DX the index in byHash. It goes on to clash if the block there is another one.
#define TOUCH(clash) \
	MOVL R8, vectorStack_missed(R12)(R13*4) \
	MOVQ $const_vectorFactor, DX \
	IMULQ BX, DX \
	SHRQ $const_vectorShift, DX \
	MOVBLZX (R15)(R13*1), CX \
	MOVQ BX, vectorStack_keys(R12)(CX*8) \
	MOVBLZX vectorStack_byHash(R12)(DX*1), R14 \
	CMPL R14, $const_vectorBlocks \
	CMOVLCS R14, CX \
	SBBQ $-1, R13 \
	CMPQ BX, vectorStack_keys(R12)(CX*8) \
	JNE clash

// AGE counts the younger ones, and makes the block that was touched the youngest.
#define AGE \
	MOVB CX, vectorStack_byHash(R12)(DX*1) \
	COUNTYOUNGER \
	MAKEYOUNGEST \
	MOVB R8, vectorStack_ages(R12)(CX*1)

// NEXT goes on with the next touch while there is one that can be done.
#define NEXT(loop) \
	INCQ R8 \
	CMPQ R8, end-8(SP) \
	JGE 3(PC) \
	CMPQ R13, full-16(SP) \
	JLT loop

// SEARCH looks for block BX among all, as another one is where byHash says, and goes on to found with its lane, or the next free one.
#define SEARCH(found) \
	XORL CX, CX \
	CMPQ BX, vectorStack_keys(R12)(CX*8) \
	JNE 3(PC) \
	CMPB vectorStack_ages(R12)(CX*1), $-128 \
	JNE found \
	INCL CX \
	CMPL CX, $const_vectorBlocks \
	JLT -6(PC) \
	MOVBLZX (R15)(R13*1), CX \
	INCQ R13 \
	JMP found

// DONE writes down what has been done, sets R8 to the index of the next touch, and makes ready to LIST the misses from R9 to R13.
#define DONE \
	LEAQ 128(R8), CX \
	MOVQ CX, vectorStack_age(R12) \
	MOVQ R13, CX \
	SUBQ vectorStack_misses(R12), CX \
	ADDQ CX, vectorStack_held(R12) \
	ADDQ before-24(SP), R8 \
	MOVQ blocks_base+8(FP), SI \
	MOVQ vectorStack_index(R12), R10 \
	MOVQ vectorStack_misses(R12), R9 \
	MOVQ R13, vectorStack_misses(R12) \
	VZEROUPPER

// LIST writes down what t says of miss R9, for its hash see hashBlock, and has the bucket read that it belongs to. SI is the blocks, R10 the index.
#define LIST \
	MOVL vectorStack_missed(R12)(R9*4), AX \
	ADDL before-24(SP), AX \
	MOVL AX, vectorStack_missed(R12)(R9*4) \
	MOVQ (SI)(AX*8), BX \
	MOVQ BX, vectorStack_blocks(R12)(R9*8) \
	MOVBLZX (R15)(R9*1), CX \
	MOVB CX, vectorStack_lanes(R12)(R9*1) \
	LEAQ (R15)(R9*1), CX \
	SUBQ R12, CX \
	SUBQ $vectorStack_order, CX \
	MOVB CX, vectorStack_above(R12)(R9*1) \
	MOVQ $0x9e3779b97f4a7c15, DX \
	XORQ BX, DX \
	MOVQ $0xd6e8feb86659fd93, BX \
	MULXQ BX, AX, BX \
	XORQ AX, BX \
	MOVQ BX, vectorStack_hashes(R12)(R9*8) \
	BUCKET(R10) \
	PREFETCHT0 (DX)

// func touchVector(t *vectorStack, blocks []uint64, runs []uint8, dist, time []uint64, from int) int
TEXT ·touchVector(SB), NOSPLIT, $24-120
	MOVQ t+0(FP), R12
	MOVQ blocks_len+16(FP), R14
	MOVQ from+104(FP), AX
	START(done)
	MOVQ runs_base+32(FP), DI
	ADDQ AX, DI
	MOVQ dist_base+56(FP), R10
	LEAQ (R10)(AX*8), R10
	MOVQ time_base+80(FP), R11
	LEAQ (R11)(AX*8), R11
	MOVQ vectorStack_next(R12), R9

loop:
	MOVQ (SI)(R8*8), BX
	TOUCH(clash)

placed:
	AGE
	MOVQ DX, (R10)(R8*8)
	MOVQ R9, AX
	SUBQ vectorStack_pos(R12)(CX*8), AX // 0 where it was free
	MOVQ AX, (R11)(R8*8)
	MOVBLZX (DI)(R8*1), AX
	SHRL $1, AX
	ADDQ AX, R9
	MOVQ R9, vectorStack_pos(R12)(CX*8)
	INCQ R9
	NEXT(loop)
	MOVQ R9, vectorStack_next(R12)

done:
	DONE
	MOVQ R8, ret+112(FP)
	JMP all

list:
	LIST
	INCQ R9

all:
	CMPQ R9, R13
	JLT list
	RET

clash:
	SEARCH(placed)

// func countVector(t *vectorStack, blocks []uint64, dist []uint8, from int) int
TEXT ·countVector(SB), NOSPLIT, $24-72
	MOVQ t+0(FP), R12
	MOVQ blocks_len+16(FP), R14
	MOVQ from+56(FP), AX
	START(end)
	MOVQ dist_base+32(FP), R10
	ADDQ AX, R10

next:
	MOVQ (SI)(R8*8), BX
	TOUCH(other)

there:
	AGE
	MOVB DX, (R10)(R8*1)
	NEXT(next)

end:
	DONE
	MOVQ R8, ret+64(FP)
	JMP all

list:
	LIST
	MOVL R9, vectorStack_missed(R12)(R9*4)
	INCQ R9

all:
	CMPQ R9, R13
	JLT list
	RET

other:
	SEARCH(there)

// The numbers of the lanes.
DATA ·lanes+0(SB)/8, $0x0706050403020100
DATA ·lanes+8(SB)/8, $0x0f0e0d0c0b0a0908
DATA ·lanes+16(SB)/8, $0x1716151413121110
DATA ·lanes+24(SB)/8, $0x1f1e1d1c1b1a1918
DATA ·lanes+32(SB)/8, $0x2726252423222120
DATA ·lanes+40(SB)/8, $0x2f2e2d2c2b2a2928
DATA ·lanes+48(SB)/8, $0x3736353433323130
DATA ·lanes+56(SB)/8, $0x3f3e3d3c3b3a3938
GLOBL ·lanes(SB), RODATA|NOPTR, $64

// ADDABOVE takes the sum of the bytes, which are not above 0, from those below an octave and adds it to those from it on. Y8 is 0.
#define ADDABOVE(y, at) \
	VPSUBB y, Y8, y \
	VPSADBW y, Y8, y \
	VEXTRACTI128 $1, y, X6 \
	VPADDQ Y6, y, Y6 \
	VPSRLDQ $8, X6, X7 \
	VPADDQ X6, X7, X6 \
	VMOVQ X6, AX \
	SUBQ AX, at(DI) \
	ADDQ AX, (at+8)(DI)

// func addOctaves(dist *[vectorChunk]uint8, counts *[vectorOctaves]uint64)
TEXT ·addOctaves(SB), NOSPLIT, $0-16
	MOVQ dist+0(FP), SI
	MOVQ counts+8(FP), DI
	LEAQ const_vectorChunk(SI), R8
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPCMPEQB Y15, Y15, Y15
	VPABSB Y15, Y9 // 1
	VPADDB Y9, Y9, Y10
	VPADDB Y10, Y9, Y10 // 3
	VPADDB Y10, Y10, Y11
	VPADDB Y11, Y9, Y11 // 7
	VPADDB Y11, Y11, Y12
	VPADDB Y12, Y9, Y12 // 15
	VPADDB Y12, Y12, Y13
	VPADDB Y13, Y9, Y13 // 31
	VPXOR Y8, Y8, Y8

	// How many are above each, less, in each byte.
part:
	VMOVDQU (SI), Y6
	VPCMPGTB Y8, Y6, Y7
	VPADDB Y7, Y0, Y0
	VPCMPGTB Y9, Y6, Y7
	VPADDB Y7, Y1, Y1
	VPCMPGTB Y10, Y6, Y7
	VPADDB Y7, Y2, Y2
	VPCMPGTB Y11, Y6, Y7
	VPADDB Y7, Y3, Y3
	VPCMPGTB Y12, Y6, Y7
	VPADDB Y7, Y4, Y4
	VPCMPGTB Y13, Y6, Y7
	VPADDB Y7, Y5, Y5
	ADDQ $32, SI
	CMPQ SI, R8
	JLT part

	ADDABOVE(Y0, 0)
	ADDABOVE(Y1, 8)
	ADDABOVE(Y2, 16)
	ADDABOVE(Y3, 24)
	ADDABOVE(Y4, 32)
	ADDABOVE(Y5, 40)
	VZEROUPPER
	RET

// EIGHT appends those of eight lanes from at on that R10 has a bit for, of which there are DX, to the list R13. R11 is eachOf.
#define EIGHT(at) \
	MOVBLZX R10, CX \
	VMOVQ at(SI), X1 \
	VMOVQ (R11)(CX*8), X2 \
	VPSHUFB X2, X1, X1 \
	VMOVQ X1, (R13)(DX*1) \
	POPCNTL CX, CX \
	ADDQ CX, DX \
	SHRL $8, R10

// func sortVector(t *vectorStack, keep int)
TEXT ·sortVector(SB), NOSPLIT, $256-16
	MOVQ t+0(FP), R12
	MOVQ keep+8(FP), R8
	MOVQ vectorStack_held(R12), R9

	// The lanes by age, the youngest first; where none is it is -1.
	VPCMPEQB Y15, Y15, Y15
	VMOVDQU Y15, lanes-256(SP)
	VMOVDQU Y15, lanes-224(SP)
	VMOVDQU Y15, lanes-192(SP)
	VMOVDQU Y15, lanes-160(SP)
	VMOVDQU Y15, lanes-128(SP)
	VMOVDQU Y15, lanes-96(SP)
	VMOVDQU Y15, lanes-64(SP)
	VMOVDQU Y15, lanes-32(SP)
	LEAQ lanes-256(SP), SI
	XORL CX, CX

lane:
	MOVBLZX vectorStack_ages(R12)(CX*1), AX
	XORL $127, AX // 255 less the age of which it is the byte
	MOVB CX, (SI)(AX*1)
	INCL CX
	CMPL CX, $const_vectorBlocks
	JLT lane

	// From the youngest on. A free one is behind the oldest, if it gets into the list at all.
	MOVL $const_vectorAges, AX
	SUBQ vectorStack_age(R12), AX
	ANDL $-32, AX
	ADDQ AX, SI
	LEAQ ·eachOf(SB), R11
	LEAQ vectorStack_sorted(R12), R13
	XORL DX, DX
	CMPQ DX, R9
	JGE sorted

part:
	VPCMPEQB (SI), Y15, Y0
	VPMOVMSKB Y0, R10
	NOTL R10
	EIGHT(0)
	EIGHT(8)
	EIGHT(16)
	EIGHT(24)
	ADDQ $32, SI
	CMPQ DX, R9
	JLT part

sorted:
	VPABSB Y15, Y0
	VPSLLW $7, Y0, Y0 // freeAge
	VMOVDQU Y0, vectorStack_ages(R12)
	VMOVDQU Y0, (vectorStack_ages+32)(R12)
	LEAL -128(R8), AX
	XORL DX, DX
	CMPQ DX, R8
	JGE aged

youngest:
	MOVBLZX (R13)(DX*1), CX
	MOVB AX, vectorStack_ages(R12)(CX*1)
	DECL AX
	INCQ DX
	CMPQ DX, R8
	JLT youngest

aged:
	VZEROUPPER
	RET
