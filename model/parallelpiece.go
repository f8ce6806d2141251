package model

// piece is a part of the stream that is analysed on its own.
type piece struct {
	n      int      // touches
	blocks []uint64 // as long as a piece may be
	store  []uint8

	counts ExactCounts // of all reuses within pieces that this memory was used for
	olken  *Olken
	dists  [exactChunk]uint64
	times  [exactChunk]uint64
	ready  chan struct{}
	err    error

	first []firstTouch // in order
	last  []uint32     // offsets of the last touches, in order
	prev  []uint32     // by first touch: the block's position in the merge before, or coldPos
	start uint32       // position of the piece's first touch in the merge
}

// firstTouch is the first touch of a block in a piece.
type firstTouch struct {
	block  uint64
	offset uint32 // touches of the piece before it
	last   uint32 // the same for the last touch of the block
}

func (x *piece) full() bool { return x.n == len(x.blocks) }

// analyze counts the reuses within the piece and lists the rest.
func (x *piece) analyze() {
	x.olken.Reset()
	x.first, x.last = x.first[:0], x.last[:0]
	for at := 0; at < x.n; at += exactChunk {
		blocks := x.blocks[at:min(at+exactChunk, x.n)]
		if x.err = x.olken.Touch(blocks, x.dists[:], x.times[:]); x.err != nil {
			return
		}
		for i, d := range x.dists[:len(blocks)] {
			if d == Infinite {
				at := uint32(at + i)
				x.first = append(x.first, firstTouch{blocks[i], at, at})
			} else {
				x.counts.reuse(x.store[at+i]&1, x.times[i], d)
			}
		}
	}
	x.olken.LastAccesses(func(before uint64) { x.last = append(x.last, uint32(before)) })
	x.findLast()
}

// findLast sets last of the first touches. Where the first is the only one,
// which the order tells, nothing needs to be looked up.
func (x *piece) findLast() {
	order := &x.olken.order
	again := x.prev[:0] // borrowed
	next := 0
	for i := range x.first {
		for next < len(x.last) && x.last[next] < x.first[i].offset {
			next++
		}
		if next == len(x.last) || x.last[next] != x.first[i].offset {
			again = append(again, uint32(i))
		}
	}
	x.prev = again
	eachSlot(&x.olken.index, len(again), func(i int) uint64 { return x.first[again[i]].block }, func(i int, slot *uint32) {
		x.first[again[i]].last = uint32(order.at(*slot))
	})
}

// eachSlot looks n blocks up, a batch at a time, and calls f with where their
// positions are kept.
func eachSlot(index *blockIndex, n int, block func(i int) uint64, f func(i int, slot *uint32)) {
	var blocks [batch]uint64
	var slots [batch]*uint32
	for at := 0; at < n; {
		k := min(n-at, batch)
		for i := range k {
			blocks[i] = block(at + i)
		}
		k = index.find(blocks[:k], &slots)
		for i := range k {
			f(at+i, slots[i])
		}
		at += k
	}
}
