package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Accuracy is 1 - sum|R_i - R^_i|/2 over the bins of two normalised
// histograms (Shen & Shaw section 5.2), from 0 (disjoint) to 1 (equal). The
// cold, censored, invalidated and pruned masses are bins like any other; lost
// observations are left out. Its value depends on the bins, so always state
// them: "l2" is LogBins(1), "l10" LogBins(10).
func Accuracy(a, b *Hist) (float64, error) {
	if !a.Bins.Equal(b.Bins) {
		return 0, fmt.Errorf("accuracy: bins differ (%d and %d bins; rebin one of them first)", a.Bins.Len(), b.Bins.Len())
	}
	ta, tb := a.Total(), b.Total()
	if !(ta > 0) || !(tb > 0) {
		return 0, fmt.Errorf("accuracy: a histogram is empty")
	}
	var d float64
	for i := range a.W {
		d += math.Abs(a.W[i]/ta - b.W[i]/tb)
	}
	d += math.Abs(a.Cold/ta-b.Cold/tb) + math.Abs(a.Censored/ta-b.Censored/tb) +
		math.Abs(a.Invalidated/ta-b.Invalidated/tb) + math.Abs(a.Pruned/ta-b.Pruned/tb)
	return 1 - d/2, nil
}

// WeightMatch is Wall's weight matching (Schuff et al. section 6): how much of
// the reference weight of the n heaviest keys the n keys cover that the
// estimate takes for the heaviest, 1 if they are as good. Ties go to the
// smaller key, so that the answer does not depend on map order. It is 1 when
// the reference has no weight, and n above the number of keys means all.
func WeightMatch[K cmp.Ordered](reference, estimate map[K]float64, n int) float64 {
	var want, got float64
	for _, k := range heaviest(reference, n) {
		want += reference[k]
	}
	if want == 0 {
		return 1
	}
	for _, k := range heaviest(estimate, n) {
		got += reference[k]
	}
	return got / want
}

func heaviest[K cmp.Ordered](w map[K]float64, n int) []K {
	keys := make([]K, 0, len(w))
	for k := range w {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int {
		return cmp.Or(cmp.Compare(w[b], w[a]), cmp.Compare(a, b))
	})
	return keys[:min(max(n, 0), len(keys))]
}

// Scores say how near an estimate is to the truth, all between 0 and 1.
type Scores struct {
	L2, L10           float64 // Accuracy on LogBins(1) and LogBins(10)
	MissMean, MissMax float64 // absolute error of miss ratios
}

// Score compares estimated stack distances with exact ones. Miss ratios are
// those at the sizes of LogBins(10) up to the given number of blocks, all
// there are.
func Score(exact, estimate *Hist, blocks uint64) (s Scores, err error) {
	for _, c := range []struct {
		perOctave int
		to        *float64
	}{{1, &s.L2}, {10, &s.L10}} {
		b := LogBins(c.perOctave)
		if *c.to, err = Accuracy(exact.Rebin(b), estimate.Rebin(b)); err != nil {
			return s, err
		}
	}
	grid, n := LogBins(10), 0
	for i := 1; i < grid.Len() && (n == 0 || grid.Lo(i) <= blocks); i++ {
		e := math.Abs(exact.MissRatio(grid.Lo(i)) - estimate.MissRatio(grid.Lo(i)))
		s.MissMean += e
		s.MissMax = max(s.MissMax, e)
		n++
	}
	s.MissMean /= float64(n)
	return s, nil
}

// AtRate is the profile with its timed reuses as another access rate, in
// accesses per unit of the clock, makes them. Times that were counted stay.
// What Derive has filled in is that of the old rate.
func (p *Profile) AtRate(rate float64) *Profile {
	q := *p
	q.Records = slices.Clone(p.Records)
	if !(p.Clock.Rate > 0) {
		return &q
	}
	q.Clock.Rate = rate
	for i := range q.Records {
		if r := &q.Records[i]; !r.Exact {
			least := 0.0 // it was read ahead that there is no reuse so soon
			if r.After > 0 {
				least = float64(r.After) + 1
			}
			r.Time = toUint(math.Round(max(least, float64(r.Time)*rate/p.Clock.Rate)))
			r.PairTime = toUint(math.Round(max(least, float64(r.PairTime)*rate/p.Clock.Rate)))
		}
	}
	return &q
}
