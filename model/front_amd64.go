package model

import "golang.org/x/sys/cpu"

// haveFront is whether touchFront and its like can run here.
var haveFront = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ

// touchFront touches up to frontChunk runs, see Touches; the front must be full. It
// sets dist and time of those found there. For the others it sets dist to
// frontBlocks, time to the position of the touch, and what the front says of them. All
// must be as long as blocks.
//
//go:noescape
func touchFront(f *front, blocks []uint64, runs []uint8, dist, time []uint64)

// countFront is touchFront for up to frontChunk blocks of which only distances are
// counted: those found to found, by distance. missed are the others, of which f.out
// is said, too, and nothing else. Positions stay as they are.
//
//go:noescape
func countFront(f *front, blocks []uint64, missed *[frontChunk]uint64, found *[frontBlocks]uint64)

// findFirst finds those of n missed blocks that are in their first buckets, and sets
// their slots and what is recent. The others are left in missed, in their order;
// it returns how many. It writes pointers without the collector's write barrier:
// all point into tables that the index holds.
//
//go:noescape
func findFirst(missed *[batch]missedBlock, n int, blocks []uint64, slots *[batch]*uint32, recent *[numRecent]recentSlot) int
