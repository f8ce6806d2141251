package model

import (
	"fmt"
	"math"
	"sort"
)

// survival is S(t) = P(reuse time > t) of a histogram and its running sum
//
//	A(w) = S(0) + S(1) + ... + S(w-1),
//
// the mean number of distinct blocks in a window of w accesses of a
// stationary program. StatStack, AET and the footprint theory are three
// readings of this one curve.
type survival struct {
	bins    *Bins
	bin     []survivalBin
	endless float64 // S at infinity
}

// survivalBin: S(lo+m) = above + p (width-1-m) for m in 0..width-1; area is
// A(lo).
type survivalBin struct{ lo, width, above, p, area float64 }

// reset costs O(bins) and allocates only when the number of bins grows.
func (s *survival) reset(times *Hist) error {
	total, err := times.checkTimes()
	if err != nil {
		return err
	}
	n := times.Bins.Len()
	if cap(s.bin) < n {
		s.bin = make([]survivalBin, n)
	}
	s.bins, s.bin = times.Bins, s.bin[:n]
	s.endless = times.Endless() / total
	above := s.endless
	for i := n - 1; i >= 0; i-- {
		b := &s.bin[i]
		b.lo, b.width = times.Bins.span(i)
		b.above, b.p = above, times.W[i]/total/b.width
		above += times.W[i] / total
	}
	area := 1.0 // A(1) = S(0)
	for i := range s.bin {
		b := &s.bin[i]
		if b.lo == 0 {
			b.area = 0
			continue
		}
		b.area = area
		area = b.at(b.width)
	}
	return nil
}

// at is A(lo+m).
func (b *survivalBin) at(m float64) float64 {
	return b.area + m*b.above + b.p*(m*(b.width-1)-m*(m-1)/2)
}

// area is A(w); between integers it is linear, so it is concave everywhere.
func (s *survival) area(w float64) float64 {
	if w <= 1 {
		return max(w, 0)
	}
	b := &s.bin[s.bins.Index(toUint(w))]
	m := w - b.lo
	if m > b.width { // beyond an overflow bin's one value
		return b.at(b.width) + (m-b.width)*b.above
	}
	k := math.Floor(m)
	return b.at(k) + (m-k)*b.survival(k)
}

// survival is S(lo+k).
func (b *survivalBin) survival(k float64) float64 { return b.above + b.p*max(0, b.width-1-k) }

// fill is the inverse of area: the window that holds c blocks, +Inf if none
// does.
func (s *survival) fill(c float64) float64 {
	if c <= 1 {
		return max(c, 0)
	}
	// The smallest window, also where the curve is flat; a sum that should
	// reach c may miss it by its rounding.
	i := sort.Search(len(s.bin), func(i int) bool { return s.bin[i].area >= c*(1-1e-14) })
	if i < len(s.bin) && s.bin[i].area <= c*(1+1e-14) {
		return s.bin[i].lo
	}
	i--
	b := &s.bin[i]
	d := c - b.area
	// At integers d = m (above + p (width - 1/2)) - p m^2/2; the stable root
	// leads to the right one.
	slope, bend := b.above+b.p*(b.width-0.5), b.p/2
	if slope <= 0 {
		return math.Inf(1)
	}
	disc := slope*slope - 4*bend*d
	if m := 2 * d / (slope + math.Sqrt(max(0, disc))); disc >= 0 && m < b.width+1 {
		k := math.Floor(min(m, b.width))
		for k > 0 && b.at(k) > c {
			k--
		}
		if r := b.survival(k); r > 0 {
			if m = k + (c-b.at(k))/r; m <= b.width {
				return b.lo + m
			}
		}
	}
	// Only above the last bin: from there on the curve has a constant slope.
	if over := c - b.at(b.width); over <= 1e-12*c {
		return b.lo + b.width
	} else if b.above > 0 {
		return b.lo + b.width + over/b.above
	}
	return math.Inf(1)
}

// checkTimes is the total weight of a histogram of reuse times, or an error if
// it is empty, has broken weights or a reuse time of 0.
func (h *Hist) checkTimes() (total float64, err error) {
	if err := h.Check(); err != nil {
		return 0, err
	}
	if total = h.Total(); !(total > 0) {
		return 0, fmt.Errorf("no reuse times to convert (the histogram is empty)")
	}
	if h.Bins.Hi(0) == 1 && h.W[0] > 0 {
		return 0, fmt.Errorf("weight %v at reuse time 0 (times start at 1)", h.W[0])
	}
	return total, nil
}

// upTo is the weight of the values up to the integer x, where a bin's weight
// is uniform over its values.
func (h *Hist) upTo(x float64) float64 {
	i := h.Bins.Index(toUint(x))
	var s float64
	for _, w := range h.W[:i] {
		s += w
	}
	lo, width := h.Bins.span(i)
	return s + h.W[i]*min(1, max(0, (x-lo+1)/width))
}
