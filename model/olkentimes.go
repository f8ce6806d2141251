package model

import "slices"

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
