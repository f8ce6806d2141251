package model

import (
	"fmt"
	"math/bits"
)

// Access is one load or store of Size bytes at Addr. A read-modify-write is
// two accesses, a Load and a Store.
type Access struct {
	Addr   uint64
	PC     uint64 // of the instruction, 0 if unknown
	Thread int32
	Size   uint32 // bytes; 0 is taken as 1
	Op     Op     // OpUnknown counts as a load
}

// Wraps says whether the access goes past the end of the address space, which
// none does: a reader is to refuse it. (Analyses take what lies before the end.)
func (a *Access) Wraps() bool { return a.Size > 0 && a.Addr+uint64(a.Size)-1 < a.Addr }

// Block sizes, in bytes, that count as one datum.
const (
	WordBytes = 8
	LineBytes = 64
	PageBytes = 4096
)

// Granularity turns addresses into block numbers. The zero value counts every
// byte as a block of its own.
type Granularity struct{ shift uint }

// NewGranularity returns the granularity for blocks of the given number of
// bytes, a power of two.
func NewGranularity(bytes int) (Granularity, error) {
	if bytes <= 0 || bytes&(bytes-1) != 0 {
		return Granularity{}, fmt.Errorf("block size %d: not a power of two", bytes)
	}
	return Granularity{uint(bits.TrailingZeros(uint(bytes)))}, nil
}

// Shift is the number of address bits within a block.
func (g Granularity) Shift() uint { return g.shift }

// Bytes is the size of a block.
func (g Granularity) Bytes() int { return 1 << g.shift }

// Span returns the numbers of the first and the last block the access
// overlaps. An access that would run past the end of the address space ends
// at its last byte.
func (g Granularity) Span(a *Access) (first, last uint64) {
	end := a.Addr
	if a.Size > 1 {
		end = a.Addr + uint64(a.Size-1)
		if end < a.Addr {
			end = ^uint64(0)
		}
	}
	return a.Addr >> g.shift, end >> g.shift
}

// Infinite is the stack distance and the reuse time of a first access.
const Infinite = ^uint64(0)

// Touches is a part of a stream, cut into touches of single blocks. Touches of
// one block that follow each other are one run: all but the first have a stack
// distance of 0 and a reuse time of 1.
type Touches struct {
	Blocks []uint64
	// Runs has of each run the direction of its first touch, 1 for a store and
	// 0 for all else, and in the upper bits the number of touches after it, up
	// to 63.
	Runs    []uint8
	Repeats [2]uint64         // touches but the first of each run; [1] stores, [0] all else
	Ops     [Store + 1]uint64 // the accesses that these are, by Op
}
