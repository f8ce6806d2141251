#include "go_asm.h"
#include "textflag.h"

// A touch of block AX by the access at R8: it is one more of the run under way, or the first
// of another one. BX and DX are used.
#define TOUCH(full, back) \
	ADDQ $const_runRepeat, R14 \
	MOVL (touch_one+4)(R8), DX \
	XORL BX, BX \
	CMPQ AX, R13 \
	CMOVQNE DX, R14 \
	SETNE BX \
	TESTL $const_runEnds, R14 \
	JNZ  full \
back: \
	ADDQ BX, R12 \
	MOVQ AX, R13 \
	MOVQ AX, (R10)(R12*8) \
	MOVB R14, (R11)(R12*1)

// func touchShort(t *toucher, segments []*segment, w []uint64, i int) int
//
//	SI  word of the next entry    DI  the words
//	R8  access of the segment     R9  behind its last one
//	R10 blocks, R11 runs of the batch, R12 the one under way
//	R13 its block                 R14 what runs has of it
//	R15 accesses                  CX  shift of a block
TEXT ·touchShort(SB), NOSPLIT, $40-72
	MOVQ t+0(FP), AX
	MOVQ toucher_blocks(AX), R10
	MOVQ toucher_runs(AX), R11
	MOVQ toucher_n(AX), R12
	DECQ R12
	MOVQ toucher_block(AX), R13
	MOVQ toucher_run(AX), R14
	MOVQ toucher_ops(AX), R15
	MOVQ toucher_extra(AX), BX
	MOVQ BX, extra-8(SP)
	MOVQ toucher_shift(AX), CX
	MOVQ i+56(FP), SI
	MOVQ w_base+32(FP), DI

entry:
	LEAQ const_shortWords(SI), AX // all that it can have, and the word behind it
	CMPQ AX, w_len+40(FP)
	JGE  done
	CMPQ R12, $(const_touchBatch-1)
	JGE  done
	MOVQ (DI)(SI*8), AX
	MOVL AX, DX
	ANDL $const_shortWords, DX
	JZ   done
	MOVWLZX AX, BX
	CMPQ BX, segments_len+16(FP)
	JAE  done
	MOVQ segments_base+8(FP), R8
	MOVQ (R8)(BX*8), BX
	TESTQ BX, BX
	JZ   done
	CMPB segment_simple(BX), $0
	JEQ  done
	ADDQ SI, DX
	CMPL (DI)(DX*8), $const_wordFault
	JEQ  done
	SARQ $const_shortAddress, AX
	MOVQ AX, few-40(SP)
	MOVQ 8(DI)(SI*8), AX
	MOVQ AX, few-32(SP)
	MOVQ 16(DI)(SI*8), AX
	MOVQ AX, few-24(SP)
	MOVQ DX, SI
	ADDQ segment_ops(BX), R15
	MOVQ segment_touches(BX), R8
	MOVQ (segment_touches+8)(BX), R9
	SHLQ $5, R9
	ADDQ R8, R9
	JMP  more

access:
	MOVL touch_word(R8), AX
	MOVQ few-40(SP)(AX*8), AX
	ANDQ touch_mask(R8), AX
	ADDQ touch_offset(R8), AX
	MOVL touch_more(R8), BX
	ADDQ AX, BX
	SHRQ CX, AX
	SHRQ CX, BX
	CMPQ AX, BX
	JNE  several
	TOUCH(full, begun)

next:
	ADDQ $32, R8

more:
	CMPQ R8, R9
	JB   access
	JMP  entry

full:
	MOVQ DX, R14
	MOVL $1, BX
	JMP  begun

several:
	JB   inOrder
	MOVQ $-1, BX // as model.Granularity.Span
	SHRQ CX, BX

inOrder:
	MOVQ BX, last-16(SP)
	SUBQ AX, BX
	IMULQ touch_one(R8), BX
	ADDQ BX, extra-8(SP)

each:
	TOUCH(eachFull, eachBegun)
	CMPQ AX, last-16(SP)
	JEQ  next
	INCQ AX
	JMP  each

eachFull:
	MOVQ DX, R14
	MOVL $1, BX
	JMP  eachBegun

done:
	MOVQ t+0(FP), AX
	INCQ R12
	MOVQ R12, toucher_n(AX)
	MOVQ R13, toucher_block(AX)
	MOVQ R14, toucher_run(AX)
	MOVQ R15, toucher_ops(AX)
	MOVQ extra-8(SP), BX
	MOVQ BX, toucher_extra(AX)
	MOVQ SI, ret+64(FP)
	RET
