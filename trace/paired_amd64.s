#include "go_asm.h"
#include "textflag.h"

// The run under way, of block R13, goes on by the access at R8, or one of block AX begins, if BX is 1. DX is the place.
#define PUT \
	ADDQ BX, R12 \
	MOVQ AX, R13 \
	MOVQ AX, (R10)(R12*8) \
	MOVB R14, (R11)(R12*1) \
	SHLQ $32, DX \
	ORQ  R15, DX \
	MOVQ DX, (BP)(R12*8)

// func pairEntries(t *pairer, segments []*segment, thread int32, w []uint64, i int) int
//
//	SI  address of the next entry  DI  of the words of this one
//	R8  access of the segment      R9  behind its last one
//	R10 blocks, R11 runs and BP ends of the batch, R12 the run under way
//	R13 its block                  R14 what runs has of it
//	R15 the place that began it    CX  shift of a block
TEXT ·pairEntries(SB), NOSPLIT, $88-80
	MOVQ t+0(FP), AX
	MOVQ pairer_blocks(AX), R10
	MOVQ pairer_runs(AX), R11
	MOVQ pairer_n(AX), R12
	DECQ R12
	MOVQ pairer_block(AX), R13
	MOVQ pairer_run(AX), R14
	MOVL pairer_began(AX), R15
	MOVQ pairer_shift(AX), CX
	MOVL pairer_before(AX), BX
	MOVQ BX, before-32(SP)
	MOVQ pairer_ops(AX), BX
	MOVQ BX, ops-40(SP)
	MOVQ pairer_m(AX), BX
	SHLQ $4, BX
	MOVQ pairer_again(AX), DX
	ADDQ DX, BX
	MOVQ BX, again-48(SP)
	ADDQ $(const_touchBatch*16), DX
	MOVQ DX, most-56(SP)
	MOVQ w_base+40(FP), SI
	MOVQ w_len+48(FP), DI
	LEAQ (SI)(DI*8), DI
	MOVQ DI, behind-88(SP)
	MOVQ i+64(FP), BX
	LEAQ (SI)(BX*8), SI
	MOVQ pairer_ends(AX), BP

entry:
	LEAQ (const_shortWords*8)(SI), AX // all that a short one can have, and the word behind it
	CMPQ AX, behind-88(SP)
	JGE  done
	CMPQ R12, $(const_touchBatch-1)
	JGE  done
	MOVQ again-48(SP), AX
	CMPQ AX, most-56(SP)
	JGE  done
	MOVQ (SI), AX
	MOVL AX, BX
	MOVL AX, DX
	ANDL $const_shortWords, DX
	JZ   number
	MOVWLZX AX, BX

number:
	CMPQ BX, segments_len+16(FP)
	JAE  done
	MOVQ segments_base+8(FP), R8
	MOVQ (R8)(BX*8), R9
	TESTQ R9, R9
	JZ   done
	MOVQ segment_paired(R9), BX
	TESTQ BX, BX
	JZ   done
	MOVL thread+32(FP), R8
	CMPL R8, pairedSegment_thread(BX)
	JNE  done
	TESTL DX, DX
	JZ   long
	CMPL (SI)(DX*8), $const_wordFault
	JEQ  done
	SARQ $const_shortAddress, AX
	MOVQ AX, few-24(SP)
	MOVQ 8(SI), AX
	MOVQ AX, few-16(SP)
	MOVQ 16(SI), AX
	MOVQ AX, few-8(SP)
	LEAQ few-24(SP), DI
	LEAQ (SI)(DX*8), SI

whole:
	MOVQ (pairedSegment_accesses+8)(BX), R9
	TESTQ R9, R9
	JZ   entry
	MOVQ pairedSegment_ops(BX), AX
	ADDQ AX, ops-40(SP)
	MOVQ pairedSegment_accesses(BX), R8
	IMULQ $pairedAccess__size, R9
	ADDQ R8, R9
	MOVQ R8, start-64(SP)
	MOVQ pairedAccess_again(R8), AX
	MOVQ AX, was-72(SP)

access:
	MOVL pairedAccess_word(R8), AX
	MOVQ (DI)(AX*8), AX
	ANDQ pairedAccess_mask(R8), AX
	ADDQ pairedAccess_offset(R8), AX
	MOVL pairedAccess_more(R8), BX
	MOVL pairedAccess_place(R8), DX
	ADDQ AX, BX
	JC   last
	SHRQ CX, BX

ended:
	SHRQ CX, AX
	CMPQ AX, BX
	JNE  several
	ADDQ $const_runRepeat, R14
	XORL BX, BX
	CMPQ AX, R13
	CMOVQNE BX, R14
	CMOVLNE DX, R15
	SETNE BX
	TESTL $const_runEnds, R14
	JNZ  full

begun:
	PUT
	XORL $1, BX
	ADDQ BX, pairedAccess_again(R8)

next:
	ADDQ $pairedAccess__size, R8
	CMPQ R8, R9
	JB   access

	// The first one comes after one of any segment.
	MOVQ again-48(SP), AX
	MOVQ start-64(SP), R8
	MOVL pairedAccess_place(R8), BX
	SHLQ $32, BX
	ORQ  before-32(SP), BX
	MOVQ BX, (AX)
	MOVQ $1, 8(AX)
	MOVQ pairedAccess_again(R8), BX
	MOVQ was-72(SP), DX
	MOVQ DX, pairedAccess_again(R8)
	SUBQ DX, BX
	SHLQ $4, BX
	ADDQ BX, AX
	MOVQ AX, again-48(SP)
	MOVL (pairedAccess_place-pairedAccess__size)(R9), AX
	MOVQ AX, before-32(SP)
	JMP  entry

long:
	SHRQ $32, AX
	INCQ AX
	CMPQ AX, segment_length(R9)
	JNE  done
	LEAQ (SI)(AX*8), DX
	CMPQ DX, behind-88(SP)
	JGE  done
	CMPL (DX), $const_wordFault
	JEQ  done
	MOVQ SI, DI
	MOVQ DX, SI
	JMP  whole

last: // as model.Granularity.Span
	MOVQ $-1, BX
	SHRQ CX, BX
	JMP  ended

full:
	XORL R14, R14
	MOVL DX, R15
	MOVL $1, BX
	JMP  begun

several:
	MOVQ BX, end-80(SP)
	ADDQ $const_runRepeat, R14
	XORL BX, BX
	CMPQ AX, R13
	CMOVQNE BX, R14
	CMOVLNE DX, R15
	SETNE BX
	TESTL $const_runEnds, R14
	JZ   each
	XORL R14, R14
	MOVL DX, R15
	MOVL $1, BX

each:
	PUT
	XORL $1, BX
	ADDQ BX, pairedAccess_again(R8)
	MOVL pairedAccess_place(R8), DX
	CMPQ AX, end-80(SP)
	JEQ  next
	INCQ AX
	XORL R14, R14
	MOVL DX, R15
	MOVL $1, BX
	JMP  each

done:
	MOVQ t+0(FP), AX
	INCQ R12
	MOVQ R12, pairer_n(AX)
	MOVQ R13, pairer_block(AX)
	MOVQ R14, pairer_run(AX)
	MOVL R15, pairer_began(AX)
	MOVQ before-32(SP), BX
	MOVL BX, pairer_before(AX)
	MOVQ ops-40(SP), BX
	MOVQ BX, pairer_ops(AX)
	MOVQ again-48(SP), BX
	SUBQ pairer_again(AX), BX
	SHRQ $4, BX
	MOVQ BX, pairer_m(AX)
	SUBQ w_base+40(FP), SI
	SHRQ $3, SI
	MOVQ SI, ret+72(FP)
	RET
