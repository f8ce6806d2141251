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
TEXT ·encodeEntries(SB), NOSPLIT, $48-8
	MOVQ x+0(FP), AX
	MOVQ (entryBatch_words+8)(AX), BX
	MOVQ BX, words-8(SP)
	MOVQ (entryBatch_table+8)(AX), BX
	MOVQ BX, segments-16(SP)
	MOVQ $const_nextWord, BX
	MOVQ BX, nextWord-24(SP)
	MOVQ BX, X1
	PSLLO $8, X1
	MOVQ entryBatch_codes(AX), R10
	MOVQ entryBatch_list(AX), R13
	MOVQ (entryBatch_list+8)(AX), BX
	LEAQ (-8*const_shortList)(R13)(BX*8), BX
	MOVQ BX, longEnd-40(SP)
	MOVQ entryBatch_at(AX), SI
	MOVQ (entryBatch_codes+8)(AX), BX
	ADDQ SI, BX
	CMPQ BX, words-8(SP)
	CMOVQGT words-8(SP), BX
	MOVQ BX, end-32(SP)
	MOVQ entryBatch_words(AX), DI
	MOVQ entryBatch_table(AX), R8
	MOVL entryBatch_previous(AX), R9
	SHLQ $5, R9
	ADDQ R8, R9
	MOVQ entryBatch_ids(AX), R11
	MOVQ entryBatch_firsts(AX), R12
	XORL R15, R15

entry:
	CMPQ SI, end-32(SP)
	JGE  done
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
	MOVQ R14, X0 // twice, the second time the next word
	PUNPCKLQDQ X0, X0
	PADDQ X1, X0
	MOVOU X0, (R13)
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
	JGE  wide
	ADDQ BX, R12

code:
	LEAL (BX)(CX*const_anotherSegment), BX
	MOVB BX, (R10)
	INCQ R10
	JMP  entry

wide: // seven bytes, too, are stored as eight
	MOVL $const_longDifference, BX
	ADDQ $const_valueRoom, R12
	JMP  code

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
	CMPQ AX, longEnd-40(SP)
	JA   done
	XORL AX, AX
	CMPQ R14, $1
	JEQ  none
	MOVQ 8(DI)(SI*8), AX

none:
	MOVQ AX, first-48(SP)
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
	MOVQ first-48(SP), AX
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

// func packMost(b []byte) int
TEXT ·packMost(SB), NOSPLIT, $0-32
	MOVQ b_base+0(FP), SI
	MOVQ SI, DI
	MOVQ b_len+8(FP), CX
	ANDQ $~31, CX
	MOVQ CX, ret+24(FP)
	ADDQ SI, CX
	PCMPEQW X7, X7
	PSRLW $8, X7 // 0x00ff of each two bytes
	JMP  more

pack:
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVO X0, X2
	MOVO X1, X3
	PSRLW $4, X2
	PSRLW $4, X3
	POR  X2, X0
	POR  X3, X1
	PAND X7, X0
	PAND X7, X1
	PACKUSWB X1, X0
	MOVOU X0, (DI)
	ADDQ $32, SI
	ADDQ $16, DI

more:
	CMPQ SI, CX
	JB   pack
	RET
