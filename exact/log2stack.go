package exact

import (
	"math/bits"

	"github.com/rdx-profiler/rdx/model"
)

// Log2Stack counts stack distances in bins of one octave. It is an Olken that
// remembers no times, which saves most accesses that are far apart a read from
// memory, and counts with neither division nor branch. Bucket markers at depths
// 1, 2, 4, ... (Kim, Hill and Wood, 1991), moved along the same bitmap, were no
// faster; nor were markers that lag behind and are brought to their places only for
// a touch near them.
//
// About 16 bytes a distinct block. A Log2Stack is for one goroutine.
type Log2Stack struct {
	olken *Olken
	last  uint64 // the block touched last
	// counts is by the bit length of the distance, which is the bin of LogBins(1);
	// that of Infinite is 64.
	counts   [65]uint64
	topDists [vectorChunk]uint8 // distances on top

	changes [log2Chunk]uint64 // without repetitions, which change nothing
	runs    [log2Chunk]uint8  // all of one touch
	dists   [log2Chunk]uint64
	times   [log2Chunk]uint64 // not used
}

const log2Chunk = 1024

// NewLog2Stack returns an empty stack.
func NewLog2Stack() *Log2Stack {
	s := &Log2Stack{olken: NewOlken()}
	s.olken.order.untimed = true
	return s
}

// Touch accesses the blocks in their order. The only error is
// ErrTooManyBlocks.
func (s *Log2Stack) Touch(blocks []uint64) error {
	if len(blocks) > 0 && s.olken.Blocks() == 0 {
		s.last = ^blocks[0]
	}
	for len(blocks) > 0 {
		if f := s.olken.vectors; f != nil && f.off == 0 && !s.olken.tooMany {
			part := blocks[:min(len(blocks), vectorChunk)]
			s.touchVector(part)
			s.last = part[len(part)-1]
			blocks = blocks[len(part):]
			continue
		}
		part := blocks[:min(len(blocks), log2Chunk)]
		blocks = blocks[len(part):]
		n, last := 0, s.last
		for _, b := range part {
			s.changes[n%log2Chunk] = b
			other := b ^ last
			n += int((other | -other) >> 63)
			last = b
		}
		s.last = last
		s.counts[0] += uint64(len(part) - n)
		if err := s.olken.touch(s.changes[:n], s.runs[:n], s.dists[:n], s.times[:n]); err != nil {
			return err
		}
		for _, d := range s.dists[:n] {
			s.counts[bits.Len64(d)]++
		}
	}
	return nil
}

// touchVector is Touch of up to vectorChunk blocks where the top is kept. A repetition
// costs no more there than to leave it out.
func (s *Log2Stack) touchVector(blocks []uint64) {
	o, t := s.olken, s.olken.vectors
	n := len(blocks)
	for done := 0; ; t.makeRoom() {
		if done = countVector(t, blocks, s.topDists[:n], done); done == n {
			break
		}
	}
	misses := t.misses
	clear(s.topDists[n:])
	clear(t.above[misses:])
	var above [vectorOctaves]uint64 // of what was not found
	addOctaves(&s.topDists, (*[vectorOctaves]uint64)(s.counts[:]))
	addOctaves(&t.above, &above)
	s.counts[0] += uint64(n - misses)
	for k, n := range above {
		s.counts[k] -= n
	}
	o.touchBelow(s.dists[:misses], s.times[:misses])
	for _, d := range s.dists[:misses] {
		s.counts[bits.Len64(d)]++
	}
	o.tried(n, n-misses)
	o.makeRoom()
}

// Repeat counts n touches of a block that was touched just before.
func (s *Log2Stack) Repeat(n uint64) { s.counts[0] += n }

// Distances is the histogram of stack distances on LogBins(1).
func (s *Log2Stack) Distances() *model.Hist {
	h := model.NewHist(model.LogBins(1))
	for k, n := range s.counts[:64] {
		if n > 0 {
			h.W[k] = float64(n)
		}
		h.N += int64(n)
	}
	h.Cold = float64(s.counts[64])
	h.N += int64(s.counts[64])
	return h
}

// Blocks is the number of distinct blocks touched so far.
func (s *Log2Stack) Blocks() uint64 { return s.olken.Blocks() }

// Bytes is the memory held, in bytes.
func (s *Log2Stack) Bytes() uint64 { return s.olken.Bytes() }
