package exact

import "math/bits"

// blockIndex maps block numbers to positions: a hash table of buckets of a
// cache line each, in shards that grow one at a time and by a quarter, so that
// its memory stays within 12.8/0.875 and 12.8/0.7 bytes a block even while it
// grows. In front of it is a cache of where blocks were found.
//
// A look-up compares with all blocks of a bucket at once. Which of them it is
// cannot be foretold, and a branch that is guessed wrong costs more than all the
// comparisons.
type blockIndex struct {
	shards [numShards]indexShard
	recent [numRecent]recentSlot
	read   uint32 // so that what is read ahead is read
	grown  int    // shards that have, which moved slots
}

type recentSlot struct {
	block uint64
	slot  *uint32
}

type indexShard struct {
	buckets []indexBucket
	n, max  int // blocks held; blocks at which it grows
}

// indexBucket is a cache line. The blocks are those that have a position; they
// come first. What does not fit is in the next bucket.
type indexBucket struct {
	blocks [bucketBlocks]uint64
	pos    [bucketBlocks]uint32 // 0: free
	n      uint32               // blocks held
}

const (
	bucketBlocks = 5
	shardShift   = 6
	numShards    = 1 << shardShift
	minShard     = 4 // buckets
	numRecent    = 1 << 12
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

// forget empties the recent ones. A free one is block 0's, but for that of block
// 0 itself, which is of a block that belongs elsewhere.
func (x *blockIndex) forget() {
	clear(x.recent[:])
	slot, other := hashBlock(0)%numRecent, uint64(1)
	for hashBlock(other)%numRecent == slot {
		other++
	}
	x.recent[slot].block = other
}

// clear empties the table and keeps its memory.
func (x *blockIndex) clear() {
	for i := range x.shards {
		s := &x.shards[i]
		clear(s.buckets)
		s.n = 0
	}
	x.forget()
}

func (x *blockIndex) bytes() uint64 {
	var n uint64
	for i := range x.shards {
		n += 64 * uint64(cap(x.shards[i].buckets))
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
	var missed [batch]missedBlock
	misses := 0
	for i, b := range blocks {
		h := hashBlock(b)
		r := &x.recent[h%numRecent]
		slots[i%batch] = r.slot
		missed[misses%batch] = missedBlock{i: i, hash: h}
		other := r.block ^ b
		misses += int((other | -other) >> 63)
	}
	// Their buckets are read without looking at them, so that the processor
	// waits for many at a time.
	var read uint32
	for k := range missed[:misses] {
		m := &missed[k]
		m.bucket = x.shards[m.hash>>(64-shardShift)].first(m.hash)
		read ^= m.bucket.n
	}
	x.read = read
	if haveAVX2 {
		misses = findFirst(&missed, misses, blocks, slots, &x.recent)
	} else {
		misses = plainFindFirst(&missed, misses, blocks, slots, &x.recent)
	}
	// The others are new or further on.
	for _, m := range missed[:misses] {
		b := blocks[m.i]
		s := &x.shards[m.hash>>(64-shardShift)]
		if s.n == s.max {
			if m.i > 0 {
				return m.i
			}
			x.grow(s)
			return x.find(blocks, slots)
		}
		slot := s.find(b, m.hash)
		slots[m.i%batch] = slot
		x.recent[m.hash%numRecent] = recentSlot{b, slot}
	}
	return len(blocks)
}

// findHashed is find where the hashes are known and the buckets have been read ahead. The
// recent ones are then no faster to find. It needs findNear.
func (x *blockIndex) findHashed(blocks, hashes []uint64, slots *[batch]*uint32) int {
	var left [batch]uint32
	for _, i := range left[:findNear(x, blocks, hashes, slots, &left)] {
		h := hashes[i]
		s := &x.shards[h>>(64-shardShift)]
		if s.n == s.max {
			if i > 0 {
				return int(i)
			}
			x.grow(s)
			return x.findHashed(blocks, hashes, slots)
		}
		slots[i%batch] = s.find(blocks[i], h)
	}
	return len(blocks)
}

// plainFindFirst is findFirst where that cannot run.
func plainFindFirst(missed *[batch]missedBlock, n int, blocks []uint64, slots *[batch]*uint32, recent *[numRecent]recentSlot) (left int) {
	for _, m := range missed[:n] {
		b, p := blocks[m.i], m.bucket
		if k := p.match(b); k < p.n {
			slot := &p.pos[k]
			slots[m.i%batch] = slot
			recent[m.hash%numRecent] = recentSlot{b, slot}
			continue
		}
		missed[left] = m
		left++
	}
	return left
}

// missedBlock is one not among the recent ones.
type missedBlock struct {
	i      int
	hash   uint64
	bucket *indexBucket // the first
}

// first returns the bucket that a block of this hash belongs to.
func (s *indexShard) first(h uint64) *indexBucket {
	k, _ := bits.Mul64(h<<shardShift, uint64(len(s.buckets)))
	return &s.buckets[k]
}

// match returns which of the bucket's blocks is b; n or above if none is.
func (p *indexBucket) match(b uint64) uint32 {
	d0, d1, d2, d3, d4 := p.blocks[0]^b, p.blocks[1]^b, p.blocks[2]^b, p.blocks[3]^b, p.blocks[4]^b
	// Of each, the top bit is 1 if it is another.
	d0, d1, d2, d3, d4 = (d0|-d0)>>63, (d1|-d1)>>63, (d2|-d2)>>63, (d3|-d3)>>63, (d4|-d4)>>63
	others := d0 | d1<<1 | d2<<2 | d3<<3 | d4<<4
	return uint32(bits.TrailingZeros64(^others))
}

func (x *blockIndex) grow(s *indexShard) {
	s.resize(len(s.buckets) + max(len(s.buckets)/4, 1))
	x.grown++
	x.forget()
}

// find needs a free place in the shard, or it would not end.
func (s *indexShard) find(b, h uint64) *uint32 {
	for i, _ := bits.Mul64(h<<shardShift, uint64(len(s.buckets))); ; i++ {
		if i >= uint64(len(s.buckets)) {
			i = 0
		}
		p := &s.buckets[i]
		if k := p.match(b); k < p.n {
			return &p.pos[k]
		}
		if k := p.n; k < bucketBlocks {
			p.blocks[k], p.pos[k] = b, coldPos
			p.n++
			s.n++
			return &p.pos[k]
		}
	}
}

func (s *indexShard) resize(size int) {
	old := s.buckets
	s.buckets = make([]indexBucket, size)
	capacity := size * bucketBlocks
	s.max = capacity - capacity/8
	for i := range old {
		p := &old[i]
		for k, b := range p.blocks[:p.n] {
			s.place(b, p.pos[k])
		}
	}
}

// place is find for a block that is not there, and does not count it.
func (s *indexShard) place(b uint64, pos uint32) {
	for i, _ := bits.Mul64(hashBlock(b)<<shardShift, uint64(len(s.buckets))); ; i++ {
		if i >= uint64(len(s.buckets)) {
			i = 0
		}
		p := &s.buckets[i]
		if k := p.n; k < bucketBlocks {
			p.blocks[k], p.pos[k] = b, pos
			p.n++
			return
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
	buckets := x.shards[h>>(64-shardShift)].buckets
	for i, _ := bits.Mul64(h<<shardShift, uint64(len(buckets))); ; i++ {
		if i >= uint64(len(buckets)) {
			i = 0
		}
		p := &buckets[i]
		if k := p.match(b); k < p.n {
			return &p.pos[k]
		}
		if p.n < bucketBlocks {
			return nil
		}
	}
}

// renumber replaces every position by its rank.
func (x *blockIndex) renumber(to *ranks) { x.renumberPart(to, 0, 1) }

// renumberPart does one of so many parts of it.
func (x *blockIndex) renumberPart(to *ranks, part, parts int) {
	for i := part; i < numShards; i += parts {
		buckets := x.shards[i].buckets
		for j := range buckets {
			p := &buckets[j]
			// Free ones too, which stay 0: how many there are cannot be foretold.
			for k, pos := range p.pos {
				if pos < noPos {
					p.pos[k] = to.of(pos)
				}
			}
		}
	}
}
