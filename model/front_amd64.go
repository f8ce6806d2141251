package model

import "golang.org/x/sys/cpu"

// haveFront is whether stackTop and findFirst can run here, haveAVX512 whether on 64 bytes at a time.
var (
	haveFront  = cpu.X86.HasAVX2 && cpu.X86.HasBMI1 && cpu.X86.HasBMI2 && cpu.X86.HasSSE42 && cpu.X86.HasPOPCNT
	haveAVX512 = haveFront && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW
)

// findFirst finds those of n missed blocks that are in their first buckets, and sets
// their slots and what is recent. The others are left in missed, in their order;
// it returns how many. It writes pointers without the collector's write barrier:
// all point into tables that the index holds.
func findFirst(missed *[batch]missedBlock, n int, blocks []uint64, slots *[batch]*uint32, recent *[numRecent]recentSlot) int {
	if haveAVX512 {
		return findFirst512(missed, n, blocks, slots, recent)
	}
	return findFirst256(missed, n, blocks, slots, recent)
}
