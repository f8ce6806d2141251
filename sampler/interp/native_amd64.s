#include "textflag.h"

// Fields of nativeFrame, in DI.
#define OP0 0(DI)
#define OP1 64(DI)
#define OP2 128(DI)
#define K0SAVED 256(DI)
#define K1SAVED 264(DI)
#define GAX 272(DI)
#define GDX 280(DI)
#define FLAGS 288(DI)
#define CSR 296(DI)
#define HOST 300(DI)
#define CODE 304(DI)
#define ILL 312(DI)
#define X87 320(DI)
#define X87MXCSR 344(DI)

// What R13 holds while a native instruction runs, with its address in SI.
#define MARK $0x2f6e61746976652f

#define ENTER \
	MOVQ CODE, SI; \
	MOVQ MARK, R13; \
	MOVQ GAX, AX; \
	MOVQ GDX, DX; \
	STMXCSR HOST; \
	LDMXCSR CSR; \
	CALL SI; \
	PUSHFQ; \
	POPQ FLAGS; \
	STMXCSR CSR; \
	LDMXCSR HOST; \
	MOVQ AX, GAX

// func callSSE(f *nativeFrame)
TEXT ·callSSE(SB), NOSPLIT, $16-8
	MOVQ f+0(FP), DI
	MOVUPS OP0, X0
	MOVUPS OP1, X1
	MOVUPS OP2, X2
	ENTER
	MOVUPS X0, OP0
	MOVUPS X2, OP2
	RET

// func callAVX(f *nativeFrame)
TEXT ·callAVX(SB), NOSPLIT, $16-8
	MOVQ f+0(FP), DI
	VMOVDQU OP0, Y0
	VMOVDQU OP1, Y1
	VMOVDQU OP2, Y2
	ENTER
	VMOVDQU Y0, OP0
	VMOVDQU Y2, OP2
	VZEROUPPER
	RET

// func callAVX512(f *nativeFrame)
TEXT ·callAVX512(SB), NOSPLIT, $16-8
	MOVQ f+0(FP), DI
	VMOVDQU64 OP0, Z0
	VMOVDQU64 OP1, Z1
	VMOVDQU64 OP2, Z2
	KMOVQ K0SAVED, K0
	KMOVQ K1SAVED, K1
	ENTER
	VMOVDQU64 Z0, OP0
	VMOVDQU64 Z2, OP2
	KMOVQ K0, K0SAVED
	VZEROUPPER
	RET

// func callX87(f *nativeFrame)
// Exceptions that are not masked are left pending by the instruction and end with
// FNINIT: nothing waits for them.
TEXT ·callX87(SB), NOSPLIT, $16-8
	MOVQ f+0(FP), DI
	STMXCSR X87MXCSR
	FXRSTOR64 X87
	PUSHFQ
	POPQ AX
	ANDQ $~0x8d5, AX
	ORQ FLAGS, AX
	PUSHQ AX
	POPFQ
	ENTER
	FXSAVE64 X87
	BYTE $0xdb; BYTE $0xe3 // fninit
	RET

// func illegalHandler() uintptr
TEXT ·illegalHandler(SB), NOSPLIT, $0-8
	LEAQ ·onIllegal(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// onIllegal is called by the kernel, with the signal's context in DX: the
// registers of the thread lie in it from byte 40 on.
TEXT ·onIllegal(SB), NOSPLIT|NOFRAME, $0
	MOVQ 168(DX), AX // rip
	CMPQ AX, 112(DX) // rsi
	JNE  next
	MOVQ MARK, AX
	CMPQ AX, 80(DX) // r13
	JNE  next
	LEAQ ·skipIllegal(SB), AX
	MOVQ AX, 168(DX)
	RET

next:
	MOVQ ·nextIllegal(SB), AX
	JMP  AX

// skipIllegal returns in the instruction's place.
TEXT ·skipIllegal(SB), NOSPLIT|NOFRAME, $0
	MOVQ $1, ILL
	RET
