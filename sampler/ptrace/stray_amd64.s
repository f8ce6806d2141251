#include "textflag.h"

// func strayHandler()
TEXT ·strayHandler(SB), NOSPLIT|NOFRAME, $0-0
	LOCK
	INCQ ·strayTrapsOfRdx(SB)
	RET

// func strayReturn()
TEXT ·strayReturn(SB), NOSPLIT|NOFRAME, $0-0
	MOVL $15, AX // rt_sigreturn
	SYSCALL
	INT  $3

// func strayEntries() (handler, restorer uintptr)
TEXT ·strayEntries(SB), NOSPLIT, $0-16
	LEAQ ·strayHandler(SB), AX
	MOVQ AX, handler+0(FP)
	LEAQ ·strayReturn(SB), AX
	MOVQ AX, restorer+8(FP)
	RET
