package model

import (
	"fmt"
	"math"
)

// Corunner is a program that shares a cache with others. Programs share no
// data.
type Corunner struct {
	Name string
	// Rate is the program's accesses per unit of time, relative to the others.
	Rate float64
	// Footprint is the mean number of distinct blocks in a window of w
	// accesses of the program alone: 0 at 0, never falling, concave.
	Footprint func(w float64) float64
	// Cold is the miss ratio in an infinite cache.
	Cold float64
}

// Corun is what a program gets in a shared cache.
type Corun struct {
	MissRatio float64
	// Blocks is the part of the cache that holds the program's data, on
	// average: its natural partition.
	Blocks float64
}

// maxWindow is where the search for a window that fills the cache ends.
const maxWindow = 1e18

// Compose predicts each program's miss ratio in a fully associative LRU cache
// of the given number of blocks that all share.
//
// Footprints add (Xiang et al., PACT 2011; Ding & Xiang, section 2): in a time
// t the programs together touch F(t) = sum_i fp_i(r_i t) blocks, for they share
// none. Data stay in the cache for the time t in which F(t) reaches its size
// c, and program i's miss ratio is the slope of fp_i there, taken over the
// time in which F grows from c to c+1 as in mr(c) = 1/(lf(c+1)-lf(c)).
//
// Known bias: as in all of footprint theory, windows that end in a reuse are
// taken to be like all others. Rates are taken as fixed: a program that
// misses more does not run slower.
func Compose(programs []Corunner, blocks float64) ([]Corun, error) {
	if len(programs) == 0 {
		return nil, fmt.Errorf("compose: no programs")
	}
	if !(blocks > 0) || math.IsInf(blocks, 0) {
		return nil, fmt.Errorf("compose: cache of %v blocks, want a finite number above 0", blocks)
	}
	for _, p := range programs {
		if !(p.Rate > 0) || math.IsInf(p.Rate, 0) {
			return nil, fmt.Errorf("compose: %s: rate %v, want a finite one above 0", p.Name, p.Rate)
		}
		if !(p.Cold >= 0 && p.Cold <= 1) {
			return nil, fmt.Errorf("compose: %s: cold miss ratio %v, want 0 to 1", p.Name, p.Cold)
		}
	}
	from, to := fillTime(programs, blocks), fillTime(programs, blocks+1)
	out := make([]Corun, len(programs))
	for i, p := range programs {
		r := &out[i]
		r.MissRatio = p.Cold
		if math.IsInf(from, 1) {
			r.Blocks = p.Footprint(p.Rate * maxWindow)
			continue
		}
		low := p.Footprint(p.Rate * from)
		r.Blocks = low
		if !math.IsInf(to, 1) && to > from {
			slope := (p.Footprint(p.Rate*to) - low) / (p.Rate * (to - from))
			r.MissRatio = min(1, max(p.Cold, slope))
		}
	}
	return out, nil
}

// fillTime is the time in which the programs together touch the given number
// of blocks, +Inf if they never do.
func fillTime(programs []Corunner, blocks float64) float64 {
	reaches := func(t float64) bool {
		var sum float64
		for _, p := range programs {
			sum += p.Footprint(p.Rate * t)
		}
		return sum >= blocks
	}
	hi := 1.0
	for !reaches(hi) {
		if hi *= 2; hi > maxWindow {
			return math.Inf(1)
		}
	}
	lo := 0.0
	for range 200 {
		mid := (lo + hi) / 2
		if mid <= lo || mid >= hi {
			break
		}
		if reaches(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// FootprintPoint is the mean number of distinct blocks in a window.
type FootprintPoint struct {
	Window uint64  // touches
	Blocks float64 // mean over all windows of this length
}

// FootprintCurve returns the footprint through the given points, as
// Analysis.Footprint has them, straight between them and flat after the last.
func FootprintCurve(points []FootprintPoint) func(w float64) float64 {
	return func(w float64) float64 {
		// The first point at or after w.
		lo, hi := 0, len(points)
		for lo < hi {
			if mid := (lo + hi) / 2; float64(points[mid].Window) < w {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		if !(w > 0) || len(points) == 0 {
			return 0
		}
		if lo == len(points) {
			return points[lo-1].Blocks
		}
		var before FootprintPoint
		if lo > 0 {
			before = points[lo-1]
		}
		part := (w - float64(before.Window)) / float64(points[lo].Window-before.Window)
		return before.Blocks + part*(points[lo].Blocks-before.Blocks)
	}
}
