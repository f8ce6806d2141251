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

// halfRaise says for each bin how many times more often than it was seen a
// block was touched, because some of p's reuses in reuse[i] are those of half a
// block: the factors for raisedKaplanMeier, nil if all watched the whole.
//
// Half lines and pairs are at risk from the longest reading ahead on. Those
// read less far ahead count as watched from where they ended: that their
// hazard is raised, too, is what is right for them.
func (e *estimate) halfRaise(p *Profile, reuse []float64) []float64 {
	b := e.bins
	half, pair := newEndings(b), newEndings(b)
	seen := make([]float64, b.Len()) // weight of half lines' reuses
	var after uint64
	halves := 0
	for i := range p.Records {
		if r := &p.Records[i]; r.Half {
			halves++
			after = max(after, r.After)
		}
	}
	if halves == 0 {
		return nil
	}
	first := b.Index(after + 1)
	if b.Lo(first) < after+1 && first+1 < b.Len() {
		first++
	}
	for i := range p.Records {
		r := &p.Records[i]
		if !r.Half {
			continue
		}
		if r.Kind == Reuse {
			// As they are in reuse: a part of it must not exceed the whole.
			e.each(r, func(i int, share float64) { seen[i] += r.Accesses * share })
		}
		at := b.Index(max(r.Time, 1))
		if at < first {
			continue
		}
		half.add(r.Kind, at, r.Accesses)
		pair.add(r.Pair, b.Index(max(r.PairTime, 1)), r.Accesses)
	}
	// What another thread ended says no more about the halves.
	for i, w := range half.invalid {
		half.cut[i] += w
	}
	raise := make([]float64, b.Len())
	r4, r2 := risk{}, risk{}
	r4.n, r2.n = half.total(), pair.total()
	steepest, factor := 0.0, 1.0
	known := false
	for i := first; i < len(raise); i++ {
		before := r4.hazard
		r4.pass(b, i, half.reuse[i], half.cut[i])
		r2.pass(b, i, pair.reuse[i], pair.cut[i])
		if step := r4.hazard - before; step > 0 && !math.IsInf(r4.hazard, 1) {
			to := -math.Log(HalfLineSurvival(1, math.Exp(-r4.hazard), math.Exp(-r2.hazard)))
			factor = max(0, to-steepest) / step
			steepest = max(steepest, to)
			if !known {
				known = true
				for j := range first {
					raise[j] = max(1, factor)
				}
			}
		}
		raise[i] = factor
	}
	for i, f := range raise {
		share := 0.0
		if reuse[i] > 0 {
			share = min(1, seen[i]/reuse[i])
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
