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
