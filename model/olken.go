package model

import "errors"

// Infinite is the stack distance and the reuse time of a first access.
const Infinite = ^uint64(0)

// ErrTooManyBlocks says that a trace touches more distinct blocks than the
// exact analyser can number (about 3e9).
var ErrTooManyBlocks = errors.New("exact stack: too many distinct blocks (consider: a larger block size)")

// Olken computes exact LRU stack distances and reuse times of a stream of
// block numbers, in O(log n) an access and about 20 bytes a distinct block.
//
// It is F. Olken's algorithm (LBL-12370, 1981): the stack distance of a reuse
// is the number of blocks whose last access lies after the use. The search
// tree over last accesses is replaced by a bitmap over time with counts; when
// that is full its live bits are moved together, which keeps their order.
//
// The zero value is not usable; see NewOlken. An Olken is for one goroutine.
type Olken struct {
	index blockIndex
	order recency
	// Real times of the last accesses. A position at or above base was handed
	// out at time baseTime+position-base, those below have theirs in old.
	base     uint32
	baseTime uint64
	old      timeList
	tooMany  bool
}

const (
	// batch is the number of look-ups done ahead of the counting. They do
	// not depend on each other, so their cache misses overlap.
	batch = 64
	// A bitmap of eight times the blocks makes compaction cost each access a
	// seventh of one renumbering, and the bitmap one byte a block.
	olkenSpread = 8
)

// NewOlken returns an empty stack.
func NewOlken() *Olken {
	o := &Olken{base: 1}
	o.index.init()
	o.order.reset(0, olkenSpread)
	return o
}

// Blocks is the number of distinct blocks touched so far.
func (o *Olken) Blocks() uint64 { return uint64(o.order.live) }

// Accesses is the number of blocks touched so far, repetitions included.
func (o *Olken) Accesses() uint64 { return o.time(o.order.now) }

// Bytes is the memory held, in bytes.
func (o *Olken) Bytes() uint64 { return o.index.bytes() + o.order.bytes() + o.old.bytes() }

// Touch accesses the blocks in their order. For blocks[i] it sets dist[i] to
// the number of distinct blocks touched since its previous access and time[i]
// to the number of accesses since (1 if it was the one before); both are
// Infinite at a first access. dist and time must be as long as blocks; time
// may be nil. It does not allocate except to grow with the number of blocks.
//
// The only error is ErrTooManyBlocks; it is permanent and leaves dist and
// time undefined.
func (o *Olken) Touch(blocks, dist, time []uint64) error {
	var slots [batch]*uint32
	for len(blocks) > 0 {
		if o.tooMany {
			return ErrTooManyBlocks
		}
		n := min(len(blocks), batch, int(o.order.end-o.order.now))
		n = o.index.find(blocks[:n], &slots)
		if time == nil {
			o.count(slots[:n], dist[:n])
		} else {
			o.countTimes(slots[:n], dist[:n], time[:n])
			time = time[n:]
		}
		blocks, dist = blocks[n:], dist[n:]
		if o.order.full() {
			o.compact()
		}
	}
	return nil
}

func (o *Olken) count(slots []*uint32, dist []uint64) {
	for i, slot := range slots {
		p := *slot
		*slot = o.order.now
		if p == coldPos {
			o.order.push()
			dist[i] = Infinite
		} else {
			dist[i] = uint64(o.order.move(p))
		}
	}
}

func (o *Olken) countTimes(slots []*uint32, dist, time []uint64) {
	for i, slot := range slots {
		p, now := *slot, o.order.now
		*slot = now
		switch {
		case p == coldPos:
			o.order.push()
			dist[i], time[i] = Infinite, Infinite
			continue
		case p >= o.base:
			time[i] = uint64(now - p)
		default:
			time[i] = o.time(now) - o.old.at(p-1)
		}
		dist[i] = uint64(o.order.move(p))
	}
}

// time is the number of accesses before the one that got position p, for the
// positions since the last compaction.
func (o *Olken) time(p uint32) uint64 { return o.baseTime + uint64(p-o.base) }

// LastAccesses calls f with the number of accesses that came before the last
// one to each block, in increasing order.
func (o *Olken) LastAccesses(f func(before uint64)) {
	o.order.each(func(p uint32) {
		if p >= o.base {
			f(o.time(p))
		} else {
			f(o.old.at(p - 1))
		}
	})
}

// compact moves the live positions together so that new ones fit.
func (o *Olken) compact() {
	if o.order.live > maxLive {
		o.tooMany = true
		return
	}
	times := o.old.rewriter(int(o.order.live))
	o.order.each(func(p uint32) {
		if p >= o.base {
			times.put(o.time(p))
		} else {
			times.put(times.next(p - 1))
		}
	})
	accesses := o.Accesses()
	o.old = times.done()
	o.index.renumber(o.order.rank())
	o.order.reset(o.order.live, olkenSpread)
	o.base, o.baseTime = o.order.now, accesses
}
