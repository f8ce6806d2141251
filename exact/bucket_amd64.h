#include "go_asm.h"
#include "textflag.h"

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
