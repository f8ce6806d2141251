package model

// piece is a part of the stream that is analysed on its own.
type piece struct {
	accesses []Access
	touches  uint64
	limit    uint64 // of touches, after which the piece is full

	counts ExactCounts // of all reuses within pieces that this memory was used for
	olken  *Olken
	touch  touchBuffer
	dists  [exactChunk]uint64
	times  [exactChunk]uint64
	ready  chan struct{}
	err    error // of the merge

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
	rank   uint32 // blocks of the piece whose last touch is not after that one
	store  uint8
}

func (x *piece) full() bool { return x.touches >= x.limit }

// take appends accesses until the piece is full and returns the others.
func (x *piece) take(accesses []Access) (rest []Access) {
	g := x.counts.gran
	n := 0
	for n < len(accesses) && x.touches < x.limit {
		first, last := g.Span(&accesses[n])
		x.touches += last - first + 1
		n++
	}
	x.accesses = append(x.accesses, accesses[:n]...)
	return accesses[n:]
}

// analyze counts the reuses within the piece and lists the rest.
func (x *piece) analyze() {
	x.olken.Reset()
	x.first, x.last = x.first[:0], x.last[:0]
	x.touch.done = 0
	var before uint64
	rest := x.accesses
	x.accesses = x.accesses[:0]
	for len(rest) > 0 {
		rest = x.touch.fill(x.counts.gran, rest, &x.counts.ops)
		n := x.touch.n
		if x.err = x.olken.Touch(x.touch.blocks[:n], x.dists[:n], x.times[:n]); x.err != nil {
			return
		}
		for i, d := range x.dists[:n] {
			store := x.touch.store[i] & 1
			if d == Infinite {
				x.first = append(x.first, firstTouch{block: x.touch.blocks[i], offset: uint32(before) + uint32(i), store: store})
				continue
			}
			x.counts.reuse(store, x.times[i], d)
		}
		before += uint64(n)
	}
	x.olken.LastAccesses(func(before uint64) { x.last = append(x.last, uint32(before)) })
	x.findLast()
}

// findLast sets last and rank of the first touches.
func (x *piece) findLast() {
	order := &x.olken.order
	rank := order.rank()
	eachSlot(&x.olken.index, len(x.first), func(i int) uint64 { return x.first[i].block }, func(i int, slot *uint32) {
		f := &x.first[i]
		f.last = uint32(order.at(*slot))
		f.rank = rank(*slot)
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
