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
// footprint of a program that goes on as the reuse times say; Analysis.Footprint
// has that of one finite trace.
//
// It is right where windows that end in a reuse are like all others; see
// Analysis.WindowError for the number that says how far that holds.
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

// Footprint converts times in touches to how many different blocks are touched in them, by SSX. It errs on a broken profile or
// one with no observations.
func (p *Profile) Footprint() (*SSX, error) {
	e, err := p.estimate()
	if err != nil {
		return nil, fmt.Errorf("footprint: %w", err)
	}
	x := new(SSX)
	if err := x.Reset(e.net); err != nil {
		return nil, fmt.Errorf("footprint: %w", err)
	}
	return x, nil
}
