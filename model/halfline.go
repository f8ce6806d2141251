package model

import (
	"fmt"
	"math"
)

// HalfLineSurvival extrapolates from the words that a debug register can watch
// to the cache line they are in.
//
// A sample that saw no reuse of its line within a burst of B accesses has the
// survival atB = S_line(B); from then on half of the line, 4 of its 8 words, is
// watched. half and pair are the fractions of such samples for which until t
// the half line, and in it the aligned 16-byte pair with the sampled word, was
// not touched. With H4 = -ln half and H2 = -ln pair,
//
//	S_line(t) = S(B) exp(-H4 min(2, H4/H2)).
//
// H4/H2 says how independently words are used: 2 when each is on its own, so
// that the other half doubles the hazard, and 1 when they go together.
func HalfLineSurvival(atB, half, pair float64) float64 {
	h4, h2 := -math.Log(half), -math.Log(pair)
	switch {
	case !(half > 0):
		return 0
	case h4 <= 0:
		return atB
	}
	return atB * math.Exp(-h4*min(2, max(1, h4/max(h2, 0))))
}

// HalfLine is the histogram of a line's reuse times: up to burst as in line,
// where they were seen exactly, beyond it by HalfLineSurvival from the reuse
// times of the half line and the pair. All three have equal bins, and an edge
// at burst+1 keeps the two parts from mixing in one bin. What the half line
// never sees again is Cold.
func HalfLine(burst uint64, line, half, pair *Hist) (*Hist, error) {
	if !line.Bins.Equal(half.Bins) || !line.Bins.Equal(pair.Bins) {
		return nil, fmt.Errorf("half-line extrapolation: bins differ")
	}
	for _, h := range []*Hist{line, half, pair} {
		if _, err := h.checkTimes(); err != nil {
			return nil, fmt.Errorf("half-line extrapolation: %w", err)
		}
	}
	out := NewHist(line.Bins)
	out.N, out.Lost = line.N, line.Lost
	total, atB := line.Total(), line.Above(burst)
	half0, pair0 := half.Above(burst), pair.Above(burst)
	alive := 1.0
	for i := range out.W {
		last := out.Bins.Hi(i) - 1
		if out.Bins.isOpen(i) {
			last = out.Bins.Lo(i)
		}
		s := line.Above(last)
		if last > burst {
			s = atB
			if half0 > 0 && pair0 > 0 {
				s = HalfLineSurvival(atB, half.Above(last)/half0, pair.Above(last)/pair0)
			}
		}
		s = min(s, alive)
		out.W[i] = total * (alive - s)
		alive = s
	}
	out.Cold = total * alive
	return out, nil
}
