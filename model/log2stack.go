package model

import "math/bits"

// Log2Stack counts stack distances in bins of one octave, faster than Olken
// counts them exactly.
//
// Like the stack with bucket markers of Kim, Hill and Wood (1991) it remembers
// which block is at depth 1, 2, 4, ... The markers are positions in a bitmap of
// last accesses instead of nodes of a list: a block's bin is the number of
// markers that are not before its position, and those move to the next bit.
//
// Each distance is counted in the bin it belongs to; reuse times are not
// counted. About 20 bytes a distinct block. A Log2Stack is for one goroutine.
type Log2Stack struct {
	index blockIndex
	// Positions 1..now-1 have been handed out, those of last accesses are set.
	bitmap    []uint64
	now, end  uint32
	last      uint64     // the block touched last
	marker    [33]uint32 // position of the block at depth 2^k, 0 if there is none
	live      uint32
	counts    [34]uint64 // by bin of LogBins(1)
	cold      uint64
	tooMany   bool
	positions uint64 // that a compaction leaves room for at least
}

// NewLog2Stack returns an empty stack.
func NewLog2Stack() *Log2Stack {
	s := &Log2Stack{positions: minPositions}
	s.index.init()
	s.resize()
	return s
}

// resize makes positions 1..live the live ones.
func (s *Log2Stack) resize() {
	n := min(max(uint64(s.live)*olkenSpread, s.positions), maxPositions)
	n = (n + 63) &^ 63
	s.bitmap = cleared(s.bitmap, int(n/64))
	for p := uint32(1); p <= s.live; p++ {
		s.bitmap[p/64] |= 1 << (p % 64)
	}
	s.end, s.now = uint32(n), s.live+1
}

// Touch accesses the blocks in their order. The only error is
// ErrTooManyBlocks.
func (s *Log2Stack) Touch(blocks []uint64) error {
	var changes [batch]uint64 // without repetitions, which change nothing
	var slots [batch]*uint32
	if len(blocks) > 0 && s.live == 0 {
		s.last = ^blocks[0]
	}
	for len(blocks) > 0 {
		n, seen := 0, 0
		last := s.last
		for seen < len(blocks) && n < batch {
			b := blocks[seen]
			changes[n] = b
			if b != last {
				n++
			}
			last = b
			seen++
		}
		s.last = last
		blocks = blocks[seen:]
		s.counts[0] += uint64(seen - n)
		for part := changes[:n]; len(part) > 0; {
			if s.tooMany {
				return ErrTooManyBlocks
			}
			k := s.index.find(part[:min(len(part), int(s.end-s.now))], &slots)
			for _, slot := range slots[:k] {
				s.move(slot)
			}
			part = part[k:]
			if s.now == s.end {
				s.compact()
			}
		}
	}
	return nil
}

// move brings the block, which is not at the top, there.
func (s *Log2Stack) move(slot *uint32) {
	p := *slot
	if p == coldPos {
		s.push()
	} else {
		// What was above the block is one deeper now.
		k := 0
		for ; p <= s.marker[k]; k++ {
			s.marker[k] = s.next(s.marker[k])
		}
		s.counts[k]++
		s.bitmap[p/64] &^= 1 << (p % 64)
	}
	s.bitmap[s.now/64] |= 1 << (s.now % 64)
	*slot = s.now
	s.now++
}

// push makes room at the top for a block that is new.
func (s *Log2Stack) push() {
	s.cold++
	for k, m := range s.marker {
		if m != 0 {
			s.marker[k] = s.next(m)
		}
	}
	if n := s.live; n > 0 && n&(n-1) == 0 {
		s.marker[bits.TrailingZeros32(n)] = s.next(0) // the oldest
	}
	s.live++
}

// next is the live position after p; there must be one.
func (s *Log2Stack) next(p uint32) uint32 {
	w := p / 64
	if x := s.bitmap[w] >> (p % 64) >> 1; x != 0 {
		return p + 1 + uint32(bits.TrailingZeros64(x))
	}
	for w++; s.bitmap[w] == 0; w++ {
	}
	return w*64 + uint32(bits.TrailingZeros64(s.bitmap[w]))
}

// compact moves the live positions together so that new ones fit.
func (s *Log2Stack) compact() {
	if s.live > maxLive {
		s.tooMany = true
		return
	}
	before := make([]uint32, len(s.bitmap)) // live positions in earlier words
	var n uint32
	for w, x := range s.bitmap {
		before[w] = n
		n += uint32(bits.OnesCount64(x))
	}
	rank := func(p uint32) uint32 { return before[p/64] + uint32(bits.OnesCount64(s.bitmap[p/64]<<(63-p%64))) }
	s.index.renumber(rank)
	for k, m := range s.marker {
		if m != 0 {
			s.marker[k] = rank(m)
		}
	}
	s.resize()
}

// Distances is the histogram of stack distances on LogBins(1).
func (s *Log2Stack) Distances() *Hist {
	h := NewHist(LogBins(1))
	h.Cold, h.N = float64(s.cold), int64(s.cold)
	for k, n := range s.counts {
		h.W[k] = float64(n)
		h.N += int64(n)
	}
	return h
}

// Blocks is the number of distinct blocks touched so far.
func (s *Log2Stack) Blocks() uint64 { return uint64(s.live) }

// Bytes is the memory held, in bytes.
func (s *Log2Stack) Bytes() uint64 { return s.index.bytes() + 8*uint64(cap(s.bitmap)) }
