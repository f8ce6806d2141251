#include "textflag.h"

// func processorTime() uint64
TEXT ·processorTime(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	MOVQ	AX, ret+0(FP)
	RET
