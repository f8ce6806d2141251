package model

import "math/bits"

// blockIndex maps block numbers to positions: a hash table with linear
// probing, in shards that grow one at a time and by a quarter, so that its
// memory stays within 12/0.875 and 12/0.7 bytes a block even while it grows.
//
// In front of it is a cache of where blocks were found: in most programs most
// accesses are to few blocks, and those it finds without probing.
type blockIndex struct {
	shards [numShards]indexShard
	recent [numRecent]recentSlot
	read   uint32 // so that what is read ahead is read
}

type recentSlot struct {
	block uint64
	slot  *uint32
}

type indexShard struct {
	entries []indexEntry
	n, max  int // blocks held; blocks at which it grows
}

// indexEntry is 12 bytes. The block number is cut in two for that: a uint64
// would be aligned and take 16.
type indexEntry struct {
	lo, hi uint32
	pos    uint32 // 0: the entry is free
}

const (
	shardShift = 6
	numShards  = 1 << shardShift
	minShard   = 16
	numRecent  = 1 << 10 // 16 kB: a third of a first-level cache
	// coldPos is the position of a block that is in the table but has not
	// been given one yet.
	coldPos = ^uint32(0)
	// noPos and above are marks instead of positions.
	noPos = coldPos - 2
)

func (x *blockIndex) init() {
	for i := range x.shards {
		x.shards[i].resize(minShard)
	}
	x.forget()
}

// forget empties the recent ones. A free one is another's: no block has the
// hash of its place.
func (x *blockIndex) forget() {
	for i := range x.recent {
		b := uint64(0)
		for hashBlock(b)%numRecent == uint64(i) {
			b++
		}
		x.recent[i] = recentSlot{b, nil}
	}
}

// clear empties the table and keeps its memory.
func (x *blockIndex) clear() {
	for i := range x.shards {
		s := &x.shards[i]
		clear(s.entries)
		s.n = 0
	}
	x.forget()
}

func (x *blockIndex) bytes() uint64 {
	var n uint64
	for i := range x.shards {
		n += 12 * uint64(cap(x.shards[i].entries))
	}
	return n
}

// hashBlock mixes all bits of a block number into all bits of the result.
func hashBlock(b uint64) uint64 {
	hi, lo := bits.Mul64(b^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return hi ^ lo
}

// find sets slots to where the positions of the blocks are kept, entering
// those that are new with coldPos. It returns for how many: fewer than asked
// (but at least one) when a shard has to grow, as that would move slots
// already found.
func (x *blockIndex) find(blocks []uint64, slots *[batch]*uint32) int {
	// Which blocks are among the recent ones cannot be foretold: the others
	// are listed without a branch.
	var missed [batch]struct {
		i    int
		hash uint64
	}
	misses := 0
	for i, b := range blocks {
		h := hashBlock(b)
		r := &x.recent[h%numRecent]
		slots[i%batch] = r.slot
		missed[misses%batch].i, missed[misses%batch].hash = i, h
		other := r.block ^ b
		misses += int((other | -other) >> 63)
	}
	// Their entries are read without looking at them, so that the processor
	// waits for many at a time.
	var read uint32
	for _, m := range missed[:misses] {
		e := x.shards[m.hash>>(64-shardShift)].entries
		i, _ := bits.Mul64(m.hash<<shardShift, uint64(len(e)))
		read ^= e[i].pos
	}
	x.read = read
	for _, m := range missed[:misses] {
		s := &x.shards[m.hash>>(64-shardShift)]
		if s.n == s.max {
			if m.i > 0 {
				return m.i
			}
			x.grow(s)
			return x.find(blocks, slots)
		}
		b := blocks[m.i]
		slot := s.find(b, m.hash)
		slots[m.i%batch] = slot
		x.recent[m.hash%numRecent] = recentSlot{b, slot}
	}
	return len(blocks)
}

func (x *blockIndex) grow(s *indexShard) {
	s.resize(len(s.entries) + len(s.entries)/4)
	x.forget()
}

// find needs a free entry in the shard, or it would not end.
func (s *indexShard) find(b, h uint64) *uint32 {
	lo, hi := uint32(b), uint32(b>>32)
	e := s.entries
	for i, _ := bits.Mul64(h<<shardShift, uint64(len(e))); ; {
		if i >= uint64(len(e)) {
			i = 0
		}
		p := &e[i]
		if p.pos == 0 {
			*p = indexEntry{lo, hi, coldPos}
			s.n++
			return &p.pos
		}
		if p.lo == lo && p.hi == hi {
			return &p.pos
		}
		i++
	}
}

func (s *indexShard) resize(size int) {
	old := s.entries
	s.entries = make([]indexEntry, size)
	s.n, s.max = 0, size-size/8
	for i := range old {
		if e := &old[i]; e.pos != 0 {
			b := uint64(e.hi)<<32 | uint64(e.lo)
			*s.find(b, hashBlock(b)) = e.pos
		}
	}
}

// slot returns where the position of b is kept, entering b with coldPos if it
// is new. The pointer is good until the next call.
func (x *blockIndex) slot(b uint64) *uint32 {
	h := hashBlock(b)
	s := &x.shards[h>>(64-shardShift)]
	if s.n == s.max {
		x.grow(s)
	}
	return s.find(b, h)
}

// lookup returns where the position of b is kept, nil if it is not in the table.
func (x *blockIndex) lookup(b uint64) *uint32 {
	h := hashBlock(b)
	e := x.shards[h>>(64-shardShift)].entries
	lo, hi := uint32(b), uint32(b>>32)
	for i, _ := bits.Mul64(h<<shardShift, uint64(len(e))); ; i++ {
		if i >= uint64(len(e)) {
			i = 0
		}
		if e[i].pos == 0 {
			return nil
		}
		if e[i].lo == lo && e[i].hi == hi {
			return &e[i].pos
		}
	}
}

// renumber replaces every position.
func (x *blockIndex) renumber(to func(uint32) uint32) {
	for i := range x.shards {
		e := x.shards[i].entries
		for j := range e {
			if p := e[j].pos; p != 0 && p < noPos {
				e[j].pos = to(p)
			}
		}
	}
}
