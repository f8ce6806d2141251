package model

import "slices"

// timedOrder is a recency that knows when each live position was handed out,
// where each position handed out is one access.
type timedOrder struct {
	recency
	// A position at or above base was handed out at time
	// baseTime+position-base, those below have theirs in old.
	base     uint32
	baseTime uint64
	old      timeList
}

// A bitmap of eight times the blocks makes compaction cost each access a
// seventh of one renumbering, and the bitmap one byte a block.
const olkenSpread = 8

func (o *timedOrder) init() {
	o.reset(0, olkenSpread)
	o.base, o.baseTime = o.now, 0
	o.old = timeList{low: o.old.low[:0], wraps: o.old.wraps[:0]}
}

func (o *timedOrder) bytes() uint64 { return o.recency.bytes() + o.old.bytes() }

// elapsed is the number of positions ever handed out.
func (o *timedOrder) elapsed() uint64 { return o.baseTime + uint64(o.now-o.base) }

// at is the number of accesses before the one that got live position p.
func (o *timedOrder) at(p uint32) uint64 {
	if p >= o.base {
		return o.baseTime + uint64(p-o.base)
	}
	return o.old.at(p - 1)
}

// since is the number of accesses from the one that got live position p to
// the one that gets position now.
func (o *timedOrder) since(p uint32) uint64 {
	if p >= o.base {
		return uint64(o.now - p)
	}
	return o.elapsed() - o.old.at(p-1)
}

// compact moves the live positions together so that new ones fit. renumber is
// called with the function from live positions to their new values; nothing
// else may be live.
func (o *timedOrder) compact(renumber func(to func(uint32) uint32)) {
	times := o.old.rewriter(int(o.live))
	o.each(func(p uint32) {
		if p >= o.base {
			times.put(o.baseTime + uint64(p-o.base))
		} else {
			times.put(times.next(p - 1))
		}
	})
	elapsed := o.elapsed()
	o.old = times.done()
	renumber(o.rank())
	o.reset(o.live, olkenSpread)
	o.base, o.baseTime = o.now, elapsed
}

// timeList is a list of increasing 64-bit times in 4 bytes each: the low
// halves, and the indexes at which the high half goes up.
type timeList struct {
	low []uint32
	// wraps[k] is the index of the first time whose high half is above k.
	wraps []uint32
}

func (l *timeList) bytes() uint64 { return 4 * uint64(cap(l.low)+cap(l.wraps)) }

func (l *timeList) at(i uint32) uint64 {
	high, _ := slices.BinarySearch(l.wraps, i+1) // wraps at or before i
	return uint64(high)<<32 | uint64(l.low[i])
}

// timeRewriter replaces a list by a later one in the same memory: entries
// taken out must have been asked for, in order, before their place is reused.
type timeRewriter struct {
	from, to timeList
	high     int
}

func (l *timeList) rewriter(n int) *timeRewriter {
	low := l.low[:cap(l.low)]
	if len(low) < n {
		low = make([]uint32, n)
		copy(low, l.low)
	}
	return &timeRewriter{
		from: timeList{low: low, wraps: l.wraps},
		to:   timeList{low: low[:0]},
	}
}

// next is from.at for indexes that increase from call to call.
func (r *timeRewriter) next(i uint32) uint64 {
	for r.high < len(r.from.wraps) && r.from.wraps[r.high] <= i {
		r.high++
	}
	return uint64(r.high)<<32 | uint64(r.from.low[i])
}

func (r *timeRewriter) put(t uint64) {
	for uint64(len(r.to.wraps)) < t>>32 {
		r.to.wraps = append(r.to.wraps, uint32(len(r.to.low)))
	}
	r.to.low = append(r.to.low, uint32(t))
}

func (r *timeRewriter) done() timeList { return r.to }
