package model

import "golang.org/x/sys/cpu"

// haveFront is whether stackTop and findFirst can run here.
var haveFront = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasBMI1 && cpu.X86.HasBMI2 && cpu.X86.HasSSE42

// findFirst finds those of n missed blocks that are in their first buckets, and sets
// their slots and what is recent. The others are left in missed, in their order;
// it returns how many. It writes pointers without the collector's write barrier:
// all point into tables that the index holds.
//
//go:noescape
func findFirst(missed *[batch]missedBlock, n int, blocks []uint64, slots *[batch]*uint32, recent *[numRecent]recentSlot) int
