package model

import "math"

// SetAssociative is the miss ratio of an LRU cache of the given number of
// blocks in sets of ways blocks each, from a histogram of stack distances
// (A. J. Smith's correction, 1976): blocks fall into sets at random, so a
// reuse at distance d misses if at least ways of the d blocks between went to
// its own set, K ~ Binomial(d, 1/sets).
//
// 0 ways, or as many as there are blocks, is a fully associative cache. A
// bin's weight is uniform over its values.
func SetAssociative(h *Hist, blocks uint64, ways int) float64 {
	if ways <= 0 || uint64(ways) >= blocks {
		return h.MissRatio(blocks)
	}
	total := h.Total()
	if !(total > 0) {
		return 0
	}
	sets := float64(blocks) / float64(ways)
	miss := h.Endless()
	for i, w := range h.W {
		if w == 0 {
			continue
		}
		lo, hi := float64(h.Bins.Lo(i)), float64(h.Bins.Hi(i))
		if h.Bins.IsOpen(i) {
			hi = lo + 1
		}
		n := min(hi-lo, exactWidth)
		for k := 0.0; k < n; k++ {
			d := lo + math.Floor((k+0.5)*(hi-lo)/n)
			miss += w / n * atLeast(ways, d, 1/sets)
		}
	}
	return miss / total
}

// atLeast is P(Binomial(n, p) >= k) for p < 1.
func atLeast(k int, n, p float64) float64 {
	if n < float64(k) {
		return 0
	}
	log := n * math.Log1p(-p) // of P(0)
	if log < -700 {
		return 1 // the mean is beyond 700; ways are few
	}
	q := math.Exp(log)
	below := 0.0
	for j := 0.0; j < float64(k); j++ {
		below += q
		q *= (n - j) / (j + 1) * p / (1 - p)
	}
	return max(0, 1-below)
}
