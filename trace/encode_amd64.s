#include "go_asm.h"
#include "textflag.h"

// BX becomes the bytes that are kept of the difference BX, from 1 to 8, or 0 if AX is.
// DX is used.
#define SIZE \
	ORQ  $1, BX \
	BSRQ BX, BX \
	SHRL $3, BX \
	INCL BX \
	XORL DX, DX \
	TESTQ AX, AX \
	CMOVLEQ DX, BX

// Of the word AX, whose state DX points to: AX becomes 0 if it is as expected, BX its
// zigzag difference.
#define DIFFERENCE \
	MOVQ AX, BX \
	SUBQ wordState_last(DX), BX \
	MOVQ AX, wordState_last(DX) \
	MOVQ wordState_stride(DX), AX \
	MOVQ BX, wordState_stride(DX) \
	XORQ BX, AX \
	LEAQ (BX)(BX*1), DX \
	SARQ $63, BX \
	XORQ DX, BX

// func encodeEntries(x *entryBatch)
//
// As entryBatch.entries, which see. What is needed of x is held in registers:
//
//	SI  word of the next entry    DI  the words
//	R8  the table                 R9  the segment before, in it
//	R10 codes, R11 ids, R12 firsts, R13 list: where the next one goes
//	R15 accesses
//
// and of an entry AX has its first word, BX its number, CX that in the
// dictionary, DX its place in the table.
TEXT ·encodeEntries(SB), NOSPLIT, $56-8
	MOVQ x+0(FP), AX
	MOVQ (entryBatch_words+8)(AX), BX
	MOVQ BX, words-8(SP)
	MOVQ (entryBatch_table+8)(AX), BX
	MOVQ BX, segments-16(SP)
	MOVQ $const_nextWord, BX
	MOVQ BX, nextWord-24(SP)
	MOVQ $const_longDifference, BX
	MOVQ BX, longest-32(SP)
	MOVQ entryBatch_codes(AX), R10
	MOVQ (entryBatch_codes+8)(AX), BX
	ADDQ R10, BX
	MOVQ BX, codesEnd-40(SP)
	MOVQ entryBatch_list(AX), R13
	MOVQ (entryBatch_list+8)(AX), BX
	LEAQ (-8*const_shortList)(R13)(BX*8), BX
	MOVQ BX, longEnd-48(SP)
	MOVQ entryBatch_at(AX), SI
	MOVQ entryBatch_words(AX), DI
	MOVQ entryBatch_table(AX), R8
	MOVL entryBatch_previous(AX), R9
	SHLQ $5, R9
	ADDQ R8, R9
	MOVQ entryBatch_ids(AX), R11
	MOVQ entryBatch_firsts(AX), R12
	XORL R15, R15

entry:
	CMPQ SI, words-8(SP)
	JGE  done
	CMPQ R10, codesEnd-40(SP)
	JAE  done
	MOVQ (DI)(SI*8), AX
	MOVWLZX AX, BX
	CMPQ BX, segments-16(SP)
	JAE  long
	MOVQ BX, DX
	SHLQ $5, DX
	ADDQ R8, DX
	MOVWLZX writtenSegment_short(DX), CX
	TESTL CX, CX
	JZ   long
	MOVL writtenSegment_states(DX), R14
	SHLQ $32, R14
	LEAQ 1(R14)(SI*1), R14
	MOVQ R14, (R13)
	ADDQ nextWord-24(SP), R14
	MOVQ R14, 8(R13)
	MOVL AX, R14
	ANDL $const_shortWords, R14
	ADDQ R14, SI
	LEAQ -8(R13)(R14*8), R13
	SARQ $const_shortAddress, AX

enter:
	MOVW CX, (R11)
	XORL CX, CX
	CMPL BX, writtenSegment_next(R9)
	SETNE CX
	MOVL BX, writtenSegment_next(R9)
	LEAQ (R11)(CX*2), R11
	MOVQ DX, R9
	MOVWLZX writtenSegment_most(DX), BX
	ADDQ BX, R15
	DIFFERENCE // the state of the first word is a segment's first field
	MOVQ BX, (R12)
	SIZE
	CMPL BX, $const_longDifference
	CMOVLGT longest-32(SP), BX
	ADDQ BX, R12
	LEAL 1(BX), DX // seven bytes are stored as eight
	SHRL $3, DX
	ADDQ DX, R12
	LEAL (BX)(CX*const_anotherSegment), BX
	MOVB BX, (R10)
	INCQ R10
	JMP  entry

long:
	TESTQ $const_shortWords, AX
	JNZ  done
	MOVL AX, BX
	CMPQ BX, segments-16(SP)
	JAE  done
	MOVQ BX, DX
	SHLQ $5, DX
	ADDQ R8, DX
	MOVWLZX writtenSegment_local(DX), CX
	TESTL CX, CX
	JZ   done
	SHRQ $32, AX
	INCQ AX
	MOVWLZX writtenSegment_length(DX), R14
	CMPQ AX, R14
	JNE  done
	LEAQ (SI)(R14*1), AX
	CMPQ AX, words-8(SP)
	JGT  done
	LEAQ (R13)(R14*8), AX
	CMPQ AX, longEnd-48(SP)
	JA   done
	XORL AX, AX
	CMPQ R14, $1
	JEQ  none
	MOVQ 8(DI)(SI*8), AX

none:
	MOVQ AX, first-56(SP)
	MOVL writtenSegment_states(DX), AX
	SHLQ $32, AX
	LEAQ 2(AX)(SI*1), AX
	ADDQ R14, SI
	SUBQ $2, R14
	JLE  last

further:
	MOVQ AX, (R13)
	ADDQ $8, R13
	ADDQ nextWord-24(SP), AX
	DECQ R14
	JNZ  further

last:
	MOVQ first-56(SP), AX
	JMP  enter

done:
	MOVQ x+0(FP), AX
	MOVQ SI, entryBatch_at(AX)
	SUBQ R8, R9
	SHRQ $5, R9
	MOVL R9, entryBatch_previous(AX)
	SUBQ entryBatch_codes(AX), R10
	MOVQ R10, entryBatch_n(AX)
	SUBQ entryBatch_ids(AX), R11
	SHRQ $1, R11
	MOVQ R11, entryBatch_nids(AX)
	SUBQ entryBatch_firsts(AX), R12
	MOVQ R12, entryBatch_nfirsts(AX)
	SUBQ entryBatch_list(AX), R13
	SHRQ $3, R13
	MOVQ R13, entryBatch_nlist(AX)
	MOVQ R15, entryBatch_accesses(AX)
	RET

// func encodeListed(words, list []uint64, states []wordState, sizes, values []byte) int
TEXT ·encodeListed(SB), NOSPLIT, $0-128
	MOVQ words_base+0(FP), DI
	MOVQ list_base+24(FP), SI
	MOVQ list_len+32(FP), R8
	LEAQ (SI)(R8*8), R8
	MOVQ states_base+48(FP), R9
	MOVQ sizes_base+72(FP), R10
	MOVQ values_base+96(FP), R11
	JMP  more

word:
	MOVQ (SI), DX
	ADDQ $8, SI
	MOVL DX, BX
	MOVQ (DI)(BX*8), AX
	SHRQ $32, DX
	SHLQ $4, DX
	ADDQ R9, DX
	DIFFERENCE
	MOVQ BX, (R11)
	SIZE
	MOVB BX, (R10)
	INCQ R10
	ADDQ BX, R11

more:
	CMPQ SI, R8
	JB   word
	SUBQ values_base+96(FP), R11
	MOVQ R11, ret+120(FP)
	RET
