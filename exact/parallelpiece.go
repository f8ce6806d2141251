package exact

import (
	"encoding/binary"

	"github.com/rdx-profiler/rdx/model"
)

// piece is a part of the stream that is analysed on its own.
type piece struct {
	n       int      // runs of touches
	touches int      // in them: as many as a piece may have, but for the last run
	blocks  []uint64 // as long as a piece may be
	runs    []uint8  // see Touches

	counts *Counts // where its reuses are counted
	olken  *Olken  // nil where all pieces are whole
	dists  [exactChunk]uint64
	times  [exactChunk]uint64
	ready  chan struct{}
	err    error

	// whole: not analysed on its own. Then prev is by run, and these are what
	// the merge has found.
	whole    bool
	found    []uint64 // distances
	before   uint64   // touches before the piece
	filtered bool     // a whole one that goes through a filter; prev is then by what that missed
	output   filterOutput

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
	store  uint8
}

func (x *piece) full() bool { return x.touches >= len(x.blocks) }

// manyFirst is whether the piece gains too little from having been analysed on
// its own. With two or three jobs the merge of all touches is not slower from an
// eighth of first touches on; with more of them the merge, one piece after the
// other, has to be spared more.
func (x *piece) manyFirst(jobs int) bool {
	if jobs < 4 {
		return 8*len(x.first) > x.n
	}
	return 2*len(x.first) > x.n
}

// add takes as many of the next runs as belong to the piece, and returns
// their number.
func (x *piece) add(runs []uint8) int {
	n := len(runs)
	if all := touchesIn(runs); x.touches+all <= len(x.blocks) {
		x.n, x.touches = x.n+n, x.touches+all
		return n
	}
	for i, run := range runs {
		if x.full() {
			n = i
			break
		}
		x.touches += int(run>>1) + 1
	}
	x.n += n
	return n
}

// touchesIn is how many touches the runs have, eight of them at once.
func touchesIn(runs []uint8) int {
	n := len(runs)
	const evenBytes = 0x00ff00ff00ff00ff
	for len(runs) >= 8 {
		var more uint64 // touches after the first ones, in four numbers of 16 bits, which have room for 64 times eight runs
		for at := min(len(runs)/8, 64); at > 0; at-- {
			w := binary.LittleEndian.Uint64(runs) >> 1 & 0x7f7f7f7f7f7f7f7f
			more += w&evenBytes + w>>8&evenBytes
			runs = runs[8:]
		}
		n += int(more * 0x0001000100010001 >> 48)
		more = 0
	}
	for _, run := range runs {
		n += int(run >> 1)
	}
	return n
}

// analyze counts the reuses within the piece and lists the rest.
func (x *piece) analyze() {
	x.olken.Reset()
	x.first, x.last = x.first[:0], x.last[:0]
	now := uint32(0)
	for at := 0; at < x.n; at += exactChunk {
		end := min(at+exactChunk, x.n)
		blocks, runs := x.blocks[at:end], x.runs[at:end]
		if x.err = x.olken.touch(blocks, runs, x.dists[:len(blocks)], x.times[:len(blocks)]); x.err != nil {
			return
		}
		for i, d := range x.dists[:len(blocks)] {
			run := runs[i]
			more, store := uint32(run>>1), run&1
			if t := x.times[i]; t < smallValues {
				x.counts.smallReuse(store, t, d)
			} else if d == model.Infinite {
				x.first = append(x.first, firstTouch{blocks[i], now, now + more, store})
			} else {
				x.counts.reuse(store, t, d)
			}
			now += more + 1
		}
	}
	x.olken.LastAccesses(func(before uint64) { x.last = append(x.last, uint32(before)) })
	x.findLast()
}

// findLast sets last of the first touches. Where the first run is the only one,
// which the order tells, nothing needs to be looked up.
func (x *piece) findLast() {
	order := &x.olken.order
	again := x.prev[:0] // borrowed
	next := 0
	for i := range x.first {
		for next < len(x.last) && x.last[next] < x.first[i].last {
			next++
		}
		if next == len(x.last) || x.last[next] != x.first[i].last {
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
