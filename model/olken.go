package model

import (
	"errors"
	"math/bits"
)

// Infinite is the stack distance and the reuse time of a first access.
const Infinite = ^uint64(0)

// ErrTooManyBlocks says that a trace touches more distinct blocks than the
// exact analyser can number (about 3e9).
var ErrTooManyBlocks = errors.New("exact stack: too many distinct blocks (consider: a larger block size)")

// Olken computes exact LRU stack distances and reuse times of a stream of
// block numbers, in O(log n) an access and about 20 bytes a distinct block.
//
// The order of last accesses is a bitmap: each access sets the next bit and
// clears the one its block had set before, so that the stack distance is the
// number of bits set in between (F. Olken, LBL-12370, 1981, with the tree
// replaced by counts over runs of 512 bits). When the bitmap is full the live
// bits are moved together, in an order that does not change.
//
// The zero value is not usable; see NewOlken. An Olken is for one goroutine.
type Olken struct {
	index blockIndex

	// Positions 1..now-1 have been handed out, 0 means none.
	now  uint32
	end  uint32 // the bitmap has room for positions below end
	live uint32 // distinct blocks = bits set

	bitmap []uint64
	// The open run is the one that holds now. Its bits are not in the tree
	// yet, which makes short reuses and every insertion cheap.
	openLive uint32
	// right[i] is the number of live bits under the right child of node i of
	// a complete binary tree (root 1) over the runs that are closed.
	right  []uint32
	leaves uint32

	// Real times. A position at or above base was handed out at time
	// baseTime+position-base; those below have theirs in old.
	base     uint32
	baseTime uint64
	old      timeList
	tooMany  bool
}

const (
	runShift = 9 // a run is one cache line of bitmap
	runBits  = 1 << runShift
	runWords = runBits / 64

	minPositions = 1 << 15
	maxPositions = 1<<32 - runBits // never reaches coldPos
	maxBlocks    = maxPositions / 4 * 3

	// batch is the number of look-ups done ahead of the counting. They do
	// not depend on each other, so their cache misses overlap.
	batch = 64
)

// NewOlken returns an empty stack.
func NewOlken() *Olken {
	o := &Olken{now: 1, base: 1}
	o.index.init()
	o.layout(minPositions)
	return o
}

// Blocks is the number of distinct blocks touched so far.
func (o *Olken) Blocks() uint64 { return uint64(o.live) }

// Accesses is the number of blocks touched so far, repetitions included.
func (o *Olken) Accesses() uint64 { return o.time(o.now) }

// Bytes is the memory held, in bytes.
func (o *Olken) Bytes() uint64 {
	return o.index.bytes() + 8*uint64(cap(o.bitmap)) + 4*uint64(cap(o.right)) + o.old.bytes()
}

// Touch accesses the blocks in their order. For blocks[i] it sets dist[i] to
// the number of distinct blocks touched since its previous access and time[i]
// to the number of accesses since (1 if it was the one before); both are
// Infinite at a first access. dist and time must be as long as blocks; time
// may be nil. The only error is ErrTooManyBlocks; it is permanent and leaves
// dist and time undefined.
func (o *Olken) Touch(blocks, dist, time []uint64) error {
	var slots [batch]*uint32
	for len(blocks) > 0 {
		if o.tooMany {
			return ErrTooManyBlocks
		}
		n := min(len(blocks), batch, int(o.end-o.now))
		n = o.index.find(blocks[:n], &slots)
		// Cutting the slices to n here spares the loops their bounds checks.
		if time == nil {
			o.count(slots[:n], dist[:n])
		} else {
			o.countTimes(slots[:n], dist[:n], time[:n])
			time = time[n:]
		}
		blocks, dist = blocks[n:], dist[n:]
		if o.now == o.end {
			o.compact()
		}
	}
	return nil
}

func (o *Olken) count(slots []*uint32, dist []uint64) {
	for i, slot := range slots {
		p := *slot
		*slot = o.now
		dist[i] = o.move(p)
	}
}

func (o *Olken) countTimes(slots []*uint32, dist, time []uint64) {
	for i, slot := range slots {
		p := *slot
		now := o.now
		*slot = now
		dist[i] = o.move(p)
		switch {
		case p == coldPos:
			time[i] = Infinite
		case p >= o.base:
			time[i] = uint64(now - p)
		default:
			time[i] = o.time(now) - o.old.at(p-1)
		}
	}
}

// time is the number of accesses before the one that got position p, for the
// positions since the last compaction.
func (o *Olken) time(p uint32) uint64 { return o.baseTime + uint64(p-o.base) }

// move takes the block at position p to position now and returns how many
// live positions lie between the two.
func (o *Olken) move(p uint32) uint64 {
	now := o.now
	open := now >> runShift
	dist := Infinite
	if p == coldPos {
		o.live++
	} else {
		run := p >> runShift
		w := p / 64
		word := o.bitmap[w]
		bit := uint64(1) << (p % 64)
		// -bit<<1 is a mask of the positions after p.
		n := uint32(bits.OnesCount64(word & (-bit << 1)))
		o.bitmap[w] = word &^ bit
		if run == open {
			for _, x := range o.bitmap[w+1 : now/64+1] {
				n += uint32(bits.OnesCount64(x))
			}
			o.openLive--
		} else {
			for _, x := range o.bitmap[w+1 : (run+1)*runWords] {
				n += uint32(bits.OnesCount64(x))
			}
			n += o.remove(run) + o.openLive
		}
		dist = uint64(n)
	}
	o.bitmap[now/64] |= 1 << (now % 64)
	o.openLive++
	o.now = now + 1
	if o.now%runBits == 0 {
		o.close(open)
	}
	return dist
}

// remove takes one live bit out of a closed run and returns the number of
// live bits in the closed runs after it.
func (o *Olken) remove(run uint32) uint32 {
	var after uint32
	right := o.right
	for i := run + o.leaves; i > 1; i >>= 1 {
		// Left child: the right one counts. Right child: one fewer there.
		isRight := i & 1
		r := &right[i>>1]
		after += *r & (isRight - 1)
		*r -= isRight
	}
	return after
}

// close enters the open run into the tree.
func (o *Olken) close(run uint32) {
	n := o.openLive
	for i := run + o.leaves; i > 1; i >>= 1 {
		if i&1 == 1 {
			o.right[i>>1] += n
		}
	}
	o.openLive = 0
}

// layout makes an empty bitmap and tree for the given number of positions, a
// multiple of runBits.
func (o *Olken) layout(positions uint64) {
	o.end = uint32(positions)
	words := int(positions / 64)
	if cap(o.bitmap) >= words {
		o.bitmap = o.bitmap[:words]
		clear(o.bitmap)
	} else {
		o.bitmap = make([]uint64, words)
	}
	runs := positions / runBits
	o.leaves = uint32(1) << bits.Len64(runs-1)
	if cap(o.right) >= int(o.leaves) {
		o.right = o.right[:o.leaves]
		clear(o.right)
	} else {
		o.right = make([]uint32, o.leaves)
	}
	o.openLive = 0
}

// compact moves the live positions together so that new ones fit.
func (o *Olken) compact() {
	if o.live > maxBlocks {
		o.tooMany = true
		return
	}
	// before[r] is the number of live positions before run r.
	before := make([]uint32, len(o.bitmap)/runWords)
	times := o.old.rewriter(int(o.live))
	var rank uint32
	for w, word := range o.bitmap {
		if w%runWords == 0 {
			before[w/runWords] = rank
		}
		for ; word != 0; word &= word - 1 {
			p := uint32(w*64 + bits.TrailingZeros64(word))
			if p >= o.base {
				times.put(o.time(p))
			} else {
				times.put(times.next(p - 1))
			}
			rank++
		}
	}
	accesses := o.time(o.now)
	o.old = times.done()
	o.index.renumber(func(p uint32) uint32 {
		w := p / 64
		run := p >> runShift
		n := before[run] + uint32(bits.OnesCount64(o.bitmap[w]<<(63-p%64)))
		for _, x := range o.bitmap[run*runWords : w] {
			n += uint32(bits.OnesCount64(x))
		}
		return n // from 1, as the position itself is counted
	})
	// Four times the blocks: compaction then costs each access a third of
	// one renumbering, and the bitmap half a byte a block.
	positions := min(max(uint64(o.live)*4, minPositions)+runBits-1, maxPositions) &^ (runBits - 1)
	o.layout(positions)
	o.now, o.base, o.baseTime = 1, o.live+1, accesses
	for o.now < o.base {
		o.bitmap[o.now/64] |= 1 << (o.now % 64)
		o.openLive++
		o.now++
		if o.now%runBits == 0 {
			o.close((o.now - 1) >> runShift)
		}
	}
}
