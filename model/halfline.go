package model

import "math"

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

// halfLines is what was seen of half lines: how halves and their pairs of words ended.
type halfLines struct {
	half, pair *endings
	seen       []float64 // weight of halves' reuses, as it is in the whole's endings
	first      int       // bin of the longest reading ahead, -1 if there is no half line
}

func newHalfLines(b *Bins, first int) *halfLines {
	return &halfLines{half: newEndings(b), pair: newEndings(b), seen: make([]float64, b.Len()), first: first}
}

// firstHalf is the bin from which on halves are at risk, -1 where there are none: that of the
// longest reading ahead.
func (p *Profile) firstHalf(b *Bins) int {
	var after uint64
	halves := 0
	for i := range p.Records {
		if r := &p.Records[i]; r.Half {
			halves++
			after = max(after, r.After)
		}
	}
	if halves == 0 {
		return -1
	}
	first := b.Index(after + 1)
	if b.Lo(first) < after+1 && first+1 < b.Len() {
		first++
	}
	return first
}

// add takes a share of a record of half a line.
func (h *halfLines) add(e *estimate, r *Record, share float64) {
	if !r.Half {
		return
	}
	w := r.Accesses * share
	if r.Kind == Reuse {
		// As they are in the whole's reuses: a part of these must not exceed them.
		e.each(r, func(i int, part float64) { h.seen[i] += w * part })
	}
	at := e.bins.Index(max(r.Time, 1))
	if at < h.first {
		return
	}
	kind := r.Kind
	if kind == Invalidated {
		kind = Censored // what another thread ended says no more about the halves
	}
	h.half.add(kind, at, w)
	h.pair.add(r.Pair, e.bins.Index(max(r.PairTime, 1)), w)
}

// without is h less a part of it.
func (h *halfLines) without(part *halfLines) *halfLines {
	out := newHalfLines(h.half.bins, h.first)
	out.half.less(h.half, part.half)
	out.pair.less(h.pair, part.pair)
	subtract(out.seen, h.seen, part.seen)
	return out
}

// raise says for each bin how many times more often than it was seen a block was touched, because
// some of the reuses in reuse[i] are those of half a block: the factors for raisedKaplanMeier, nil if
// all watched the whole.
//
// Half lines and pairs are at risk from the longest reading ahead on. Those
// read less far ahead count as watched from where they ended: that their
// hazard is raised, too, is what is right for them.
func (h *halfLines) raise(reuse []float64) []float64 {
	if h.first < 0 {
		return nil
	}
	b := h.half.bins
	raise := make([]float64, b.Len())
	r4, r2 := risk{}, risk{}
	r4.n, r2.n = h.half.total(), h.pair.total()
	steepest, factor := 0.0, 1.0
	known := false
	for i := h.first; i < len(raise); i++ {
		before := r4.hazard
		r4.pass(b, i, h.half.reuse[i], h.half.cut[i])
		r2.pass(b, i, h.pair.reuse[i], h.pair.cut[i])
		if step := r4.hazard - before; step > 0 && !math.IsInf(r4.hazard, 1) {
			to := -math.Log(HalfLineSurvival(1, math.Exp(-r4.hazard), math.Exp(-r2.hazard)))
			factor = max(0, to-steepest) / step
			steepest = max(steepest, to)
			if !known {
				known = true
				for j := range h.first {
					raise[j] = max(1, factor)
				}
			}
		}
		raise[i] = factor
	}
	for i, f := range raise {
		share := 0.0
		if reuse[i] > 0 {
			share = min(1, h.seen[i]/reuse[i])
		}
		raise[i] = 1 + share*(f-1)
	}
	return raise
}

// risk is a cumulative hazard by Kaplan & Meier.
type risk struct{ n, hazard float64 }

// pass goes through bin i.
func (r *risk) pass(b *Bins, i int, event, cut float64) {
	if event > 0 {
		_, width := b.span(i)
		exposed := r.n - cut*(1-(width+1)/(2*width))
		r.hazard -= math.Log(max(0, 1-min(1, event/exposed)))
	}
	r.n -= event + cut
}
