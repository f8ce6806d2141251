package model

import (
	"fmt"
	"math"
)

// Footprint is the theory of Xiang and Ding in which the mean footprint fp(w),
// the number of distinct blocks in a window of w accesses, is primary and
//
//	lifetime       lf(c) = fp^-1(c)
//	miss ratio     mr(c) = 1/(lf(c+1) - lf(c))
//	reuse distance rd(c) = mr(c) - mr(c+1)
//
// follow from it (A Higher Order Theory of Locality, MSPC 2012), and back:
// integrating mr gives the lifetime. Here fp(w) = S(0) + ... + S(w-1), the
// footprint of a program that goes on as the reuse times say; ExactFootprint
// has that of one finite trace.
//
// It is right where windows that end in a reuse are like all others; see
// Windows for the number that says how far that holds.
type Footprint struct {
	s    survival
	mass survival // of the accesses asked about, when not those of s
}

// Reset takes the distribution of reuse times.
func (x *Footprint) Reset(times *Hist) error {
	if err := x.s.reset(times); err != nil {
		return fmt.Errorf("footprint: %w", err)
	}
	return nil
}

// At is fp(w) in blocks; between integers it is interpolated.
func (x *Footprint) At(w float64) float64 { return x.s.area(w) }

// Lifetime is lf(c): how many accesses fill an empty cache of c blocks. +Inf
// if the program never touches that many.
func (x *Footprint) Lifetime(c float64) float64 { return x.s.fill(c) }

// MissRatio is the fraction of the given accesses that miss in a cache of the
// given number of blocks. For the accesses given to Reset it is
// 1/(lf(c+1)-lf(c)); that is the mean of S over the window in which a full
// cache takes in one more block, and so it is computed for any other.
func (x *Footprint) MissRatio(times *Hist, blocks uint64) float64 {
	if err := x.mass.reset(times); err != nil {
		return 0 // no weight, and broken weights were refused by Reset
	}
	return x.missRatio(float64(blocks))
}

func (x *Footprint) missRatio(c float64) float64 {
	// One block is the paper's step; floats lose it in caches of many millions
	// of blocks, where a wider one changes nothing else.
	from, to := x.s.fill(c), x.s.fill(c+max(1, c*0x1p-24))
	if math.IsInf(to, 1) {
		return x.mass.endless
	}
	return min(1, max(x.mass.endless, (x.mass.area(to)-x.mass.area(from))/(to-from)))
}

// Stacks adds to dst the stack distances of the given reuse times: the
// differences of the miss ratio.
func (x *Footprint) Stacks(dst, times *Hist) error {
	if err := x.mass.reset(times); err != nil {
		return fmt.Errorf("footprint: %w", err)
	}
	total, miss := times.Total(), 1.0
	for j := range dst.W {
		next := x.mass.endless
		if j < len(dst.W)-1 {
			next = min(miss, x.missRatio(float64(dst.Bins.Hi(j))))
		}
		dst.W[j] += total * (miss - next)
		miss = next
	}
	dst.addEndless(times)
	return nil
}

// ExactFootprint is the mean footprint of all windows of one length of a
// finite trace, from three histograms (Xiang et al., PACT 2011): the reuse
// times; First, the positions (from 1) of every block's first access; Last,
// the positions of the last accesses, counted from 1 at the trace's end.
type ExactFootprint struct {
	N                  uint64 // accesses
	M                  uint64 // distinct blocks
	Times, First, Last *Hist
}

// At is fp(w) for 1 <= w <= N, 0 outside: M less the blocks each window
// misses, O(bins).
func (f *ExactFootprint) At(w uint64) float64 {
	if w < 1 || w > f.N {
		return 0
	}
	missed := f.Times.excess(w) + f.First.excess(w) + f.Last.excess(w)
	return float64(f.M) - missed/float64(f.N-w+1)
}

// MissRatio is the prediction of the theory's gradient form, fp(w+1) - fp(w)
// where fp(w) = c, the window taken as an integer: the form of the worked
// example "wxyzy".
func (f *ExactFootprint) MissRatio(c float64) float64 {
	lo, hi := uint64(1), f.N // fp rises: the smallest window that holds c
	for lo < hi {
		mid := lo + (hi-lo)/2
		if f.At(mid) >= c-1e-9 {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == f.N {
		return 0
	}
	return max(0, f.At(lo+1)-f.At(lo))
}

// excess is the sum of (v-w) over all values v > w.
func (h *Hist) excess(w uint64) float64 {
	var s float64
	at := float64(w)
	for i := h.Bins.Index(w); i < len(h.W); i++ {
		if h.W[i] == 0 {
			continue
		}
		lo, width := h.Bins.span(i)
		n := min(width, lo+width-1-at) // values above w
		if n > 0 {
			s += h.W[i] / width * n * (lo + width - 1 - at - (n-1)/2)
		}
	}
	return s
}

// Windows collects the footprints of reuse windows, to check the condition
// under which the footprint theory is right (Ding & Xiang, theorem 1): that
// reuse windows of a length touch as many blocks as all windows of it.
type Windows struct {
	bins  *Bins
	count []float64
	sum   []float64 // of footprints
	time  []float64 // of lengths
}

// NewWindows sorts windows by their length into the bins.
func NewWindows(b *Bins) *Windows {
	return &Windows{b, make([]float64, b.Len()), make([]float64, b.Len()), make([]float64, b.Len())}
}

// Add counts a reuse: its window, from the use to just before the reuse, has
// time accesses and touches distance+1 blocks.
func (w *Windows) Add(time, distance uint64) {
	i := w.bins.Index(time)
	w.count[i]++
	w.sum[i] += float64(distance) + 1
	w.time[i] += float64(time)
}

// At is rfp, the mean footprint of the reuse windows in the bin of the given
// length, 0 if there are none.
func (w *Windows) At(time uint64) float64 {
	if i := w.bins.Index(time); w.count[i] > 0 {
		return w.sum[i] / w.count[i]
	}
	return 0
}

// Gap is how far the condition is from holding: the mean over all reuses of
// |rfp(l) - fp(l)| / fp(l), 0 where the theory is exact.
func (w *Windows) Gap(fp func(length float64) float64) float64 {
	var gap, n float64
	for i, c := range w.count {
		if c == 0 {
			continue
		}
		if f := fp(w.time[i] / c); f > 0 {
			gap += c * math.Abs(w.sum[i]/c-f) / f
			n += c
		}
	}
	if n == 0 {
		return 0
	}
	return gap / n
}
