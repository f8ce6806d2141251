package model

import (
	"fmt"
	"math"
)

// SSX converts reuse times to stack distances. It is Shen & Shaw's idea
// without its need for N, the number of distinct blocks, and with a spread
// that fits real programs.
//
// S(t) = P(reuse time > t), p(t) = P(reuse time = t). Inside the window of a
// reuse of time D, the access t before the window's end is the last one to
// its block with probability q(t) = S(t)/(1-p(t)): its own reuse cannot come
// at t, for that access is the end of the window. So the stack distance has
//
//	mean     C(D) = sum_{t=1}^{D-1} q(t)
//	variance V(D) = sum_{t=1}^{D-1} q(t)(1-q(t))
//
// and is taken as Normal with continuity correction; where V is below that of
// the two integers around C it is split linearly between them, so a loop over
// M blocks has distance M-1 exactly.
//
// Known bias: the program is taken as stationary and reuses as independent.
// Phases with different working sets and sawtooth orders break this; see
// TimeLocal.
//
// Reset costs O(bins), as does each of the other methods. After the first
// Reset with a given number of bins nothing allocates.
type SSX struct {
	bins *Bins
	bin  []ssxBin
}

// ssxBin holds q(lo+m) = a - b m for m in 0..width-1, and C and V at lo.
type ssxBin struct {
	lo, width float64
	a, b      float64
	c, v      float64
}

// Reset takes the distribution of reuse times to convert with. Its endless
// masses are blocks not reused. It errs if a weight is negative or not finite
// or the histogram is empty.
func (x *SSX) Reset(times *Hist) error {
	total, err := times.checkTimes()
	if err != nil {
		return fmt.Errorf("ssx: %w", err)
	}
	n := times.Bins.Len()
	if cap(x.bin) < n {
		x.bin = make([]ssxBin, n)
	}
	x.bins, x.bin = times.Bins, x.bin[:n]

	// T, the mass above the bin, is summed from the top so that a small tail
	// keeps its digits.
	above := times.Endless() / total
	for i := n - 1; i >= 0; i-- {
		b := &x.bin[i]
		b.lo, b.width = times.Bins.span(i)
		p := times.W[i] / total / b.width
		if p < 1 {
			b.a = min(1, (above+p*(b.width-1))/(1-p))
			b.b = p / (1 - p)
		} else {
			b.a, b.b = 0, 0 // every access has this very time: nothing survives it
		}
		above += times.W[i] / total
	}
	var c, v float64
	for i := range x.bin {
		b := &x.bin[i]
		b.c, b.v = c, v
		if b.lo > 0 { // time 0 does not exist
			c, v = b.at(b.width)
		}
	}
	return nil
}

// at is C and V for a reuse time of lo+m.
func (b *ssxBin) at(m float64) (c, v float64) {
	// sums of 1, k and k^2 over k = 0..m-1
	s1 := m * (m - 1) / 2
	s2 := s1 * (2*m - 1) / 3
	q := b.a*m - b.b*s1
	qq := b.a*b.a*m - 2*b.a*b.b*s1 + b.b*b.b*s2
	return b.c + q, b.v + max(0, q-qq)
}

// Mean is the expected stack distance, in blocks, of a reuse after time
// accesses, and its variance.
func (x *SSX) Mean(time uint64) (mean, variance float64) {
	b := &x.bin[x.bins.Index(time)]
	// An overflow bin counts as its first value.
	return b.at(min(max(0, float64(time)-b.lo), b.width))
}

// exactWidth is the widest bin whose values are taken one by one.
const exactWidth = 8

// pieces is into how many equal parts time bin i is cut, each with mean
// distances that run uniformly from one value to another.
func (x *SSX) pieces(i int) (n int) {
	b := &x.bin[i]
	if b.width <= exactWidth {
		return int(b.width)
	}
	// C is concave in the bin; enough chords that the largest gap between C
	// and its chord stays below 1 % of C.
	sag := b.b * b.width * b.width / 8
	n = int(math.Ceil(math.Sqrt(sag / (0.1 + 0.01*b.c))))
	return min(max(n, 1), 8)
}

// piece is the k-th of the n pieces of bin i.
func (x *SSX) piece(i, k, n int) (p spread) {
	b := &x.bin[i]
	p.most = b.lo + b.width - 2 // one less than the largest time
	if p.most >= 1 {
		p.least = 1
	}
	if b.width <= exactWidth {
		p.most = b.lo + float64(k) - 1
		p.least = min(p.least, p.most)
		p.c0, p.v = b.at(float64(k))
		p.c1 = p.c0
		return p
	}
	// Times are integers: the k-th share of them reaches half a unit beyond
	// its first and last.
	step := b.width / float64(n)
	m := step*float64(k) - 0.5
	p.c0, _ = b.at(max(m, 0))
	p.c1, _ = b.at(m + step)
	if m < 0 {
		p.c0 -= 0.5 * b.a
	}
	_, p.v = b.at(m + step/2)
	return p
}

// spread is a distribution of stack distances: a mean that is uniform between
// c0 and c1, and variance v around it, within least..most.
type spread struct{ c0, c1, v, least, most float64 }

// begin replaces the model's mean and variance of a beginning by the blocks
// that were counted in it, of which none can go away again.
func (s *spread) begin(blocks, mean, variance float64) {
	s.c0 = max(blocks, s.c0-mean+blocks)
	s.c1 = max(blocks, s.c1-mean+blocks)
	s.v = max(0, s.v-variance)
	s.least, s.most = blocks, max(blocks, s.most)
}

// below is P(distance < d) for an integer d.
func (s *spread) below(d float64) float64 {
	if d <= s.least {
		return 0
	}
	if d > s.most {
		return 1
	}
	width := s.c1 - s.c0
	sd := math.Sqrt(s.v)
	mid := (s.c0 + s.c1) / 2
	frac := mid - math.Floor(mid)
	// One access that may or may not count has just this variance: rounding must
	// not make it Normal.
	if s.v <= frac*(1-frac)*(1+1e-9)+1e-9 || (width > 0 && s.v < 0.25 && width > sd) {
		if width < 1e-6 {
			return min(1, max(0, d-mid))
		}
		return min(1, max(0, (unitRamp(d-s.c0)-unitRamp(d-s.c1))/width))
	}
	if width < 0.01*sd {
		return normalCDF((d - 0.5 - mid) / sd)
	}
	return min(1, max(0, sd/width*(normalRamp((d-0.5-s.c0)/sd)-normalRamp((d-0.5-s.c1)/sd))))
}

// reach is how far from its means the distribution has weight worth a look.
func (s *spread) reach() float64 { return 6*math.Sqrt(s.v) + 1.5 }

// unitRamp is the integral of clip(u, 0, 1) from -inf to u.
func unitRamp(u float64) float64 {
	switch {
	case u <= 0:
		return 0
	case u < 1:
		return u * u / 2
	}
	return u - 0.5
}

// Below is the probability that a reuse in time bin i has a stack distance
// below the given number of blocks: that it hits in such a cache.
func (x *SSX) Below(i int, blocks uint64) float64 {
	n := x.pieces(i)
	var sum float64
	for k := range n {
		p := x.piece(i, k, n)
		sum += p.below(float64(blocks))
	}
	return sum / float64(n)
}

// Expected is the mean stack distance of the reuses in time bin i.
func (x *SSX) Expected(i int) float64 {
	n := x.pieces(i)
	var sum float64
	for k := range n {
		p := x.piece(i, k, n)
		sum += (p.c0 + p.c1) / 2
	}
	return sum / float64(n)
}

// Stacks adds to dst the stack distances of the given reuse times, which must
// have the bins given to Reset. Endless masses are copied as they are.
func (x *SSX) Stacks(dst, times *Hist) error {
	if !times.Bins.Equal(x.bins) {
		return fmt.Errorf("ssx: the bins of the reuse times are not those given to Reset")
	}
	for i, w := range times.W {
		if w == 0 {
			continue
		}
		n := x.pieces(i)
		for k := range n {
			p := x.piece(i, k, n)
			p.add(dst, w/float64(n))
		}
	}
	dst.addEndless(times)
	return nil
}

// add puts the weight into the bins of dst.
func (s *spread) add(dst *Hist, weight float64) {
	r := s.reach()
	j := dst.Bins.Index(toUint(max(s.least, s.c0-r)))
	last := dst.Bins.Index(toUint(min(s.most, s.c1+r)))
	done := 0.0
	for ; j < last; j++ {
		f := s.below(float64(dst.Bins.Hi(j)))
		dst.W[j] += weight * (f - done)
		done = f
	}
	dst.W[last] += weight * (1 - done)
}

// MissRatio is the fraction of the given accesses that miss in a fully
// associative LRU cache of blocks blocks: O(bins).
func (x *SSX) MissRatio(times *Hist, blocks uint64) float64 {
	miss := times.Endless()
	total := miss
	for i, w := range times.W {
		if w > 0 {
			total += w
			miss += w * (1 - x.Below(i, blocks))
		}
	}
	if !(total > 0) {
		return 0
	}
	return miss / total
}

// addEndless adds what has no place on the axis, and the count.
func (h *Hist) addEndless(o *Hist) {
	h.Cold += o.Cold
	h.Censored += o.Censored
	h.Invalidated += o.Invalidated
	h.Pruned += o.Pruned
	h.Lost += o.Lost
	h.N += o.N
}

// toUint rounds towards zero and saturates.
func toUint(f float64) uint64 {
	switch {
	case !(f > 0):
		return 0
	case f >= math.MaxUint64:
		return math.MaxUint64
	}
	return uint64(f)
}
