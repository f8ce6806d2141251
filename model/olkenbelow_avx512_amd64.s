#define FINDNEAR ·findNear512
#define FINDFIRST ·findFirst512
#define REMOVERUN ·removeRun512
#define TAKESLOTS ·takeSlots512

#define MATCH(block, bucket, bits, spare) \
	VPBROADCASTQ block, Z0 \
	VPCMPEQQ (bucket), Z0, K1 \
	KMOVB K1, bits \
	ORL $0x20, bits \
	TZCNTL bits, bits

#define TAKEONE \
	VMOVDQU32 (R15), Z0 \
	VPSUBD (R14)(R13*1), Z0, Z0 \
	VMOVDQU32 Z0, (R15)

#include "olkenbelow_amd64.h"
