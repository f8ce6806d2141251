package model

import (
	"fmt"
	"math"
)

// Hist is a weighted histogram of reuse times or stack distances.
//
// What has no place on the axis has a mass of its own and is never dropped:
// Cold, Censored, Invalidated and Pruned are part of Total; Lost, of which
// nothing is known, is not.
type Hist struct {
	Bins *Bins
	W    []float64 // weight per bin, len == Bins.Len()

	Cold        float64 // first accesses; in an estimated histogram also what is never reused
	Censored    float64
	Invalidated float64
	Pruned      float64
	Lost        float64

	N int64 // observations added, exact; Lost ones not included
}

// NewHist returns an empty histogram.
func NewHist(b *Bins) *Hist { return &Hist{Bins: b, W: make([]float64, b.Len())} }

// Add counts an access of the given reuse time or distance.
func (h *Hist) Add(v uint64, weight float64) {
	h.W[h.Bins.Index(v)] += weight
	h.N++
}

// AddKind counts an access by how its observation ended; v matters for Reuse
// only. An unknown kind counts as lost.
func (h *Hist) AddKind(k Kind, v uint64, weight float64) {
	switch k {
	case Reuse:
		h.Add(v, weight)
		return
	case Cold:
		h.Cold += weight
	case Censored:
		h.Censored += weight
	case Invalidated:
		h.Invalidated += weight
	case Pruned:
		h.Pruned += weight
	default:
		h.Lost += weight
		return
	}
	h.N++
}

// Finite is the weight that lies in bins.
func (h *Hist) Finite() float64 {
	var s float64
	for _, w := range h.W {
		s += w
	}
	return s
}

// endless is the weight that has no finite value but is not lost.
func (h *Hist) Endless() float64 { return h.Cold + h.Censored + h.Invalidated + h.Pruned }

// Total is the weight of all accesses counted, lost ones excepted.
func (h *Hist) Total() float64 { return h.Finite() + h.Endless() }

// Merge adds o to h. Their bins must be equal.
func (h *Hist) Merge(o *Hist) error {
	if !h.Bins.Equal(o.Bins) {
		return fmt.Errorf("merge histograms: bins differ (%d and %d bins; rebin one of them first)", h.Bins.Len(), o.Bins.Len())
	}
	for i, w := range o.W {
		h.W[i] += w
	}
	h.Cold += o.Cold
	h.Censored += o.Censored
	h.Invalidated += o.Invalidated
	h.Pruned += o.Pruned
	h.Lost += o.Lost
	h.N += o.N
	return nil
}

// Scale multiplies every weight by f.
func (h *Hist) Scale(f float64) {
	for i := range h.W {
		h.W[i] *= f
	}
	h.Cold *= f
	h.Censored *= f
	h.Invalidated *= f
	h.Pruned *= f
	h.Lost *= f
}

// Reset empties the histogram and keeps its memory.
func (h *Hist) Reset() {
	w := h.W
	clear(w)
	*h = Hist{Bins: h.Bins, W: w}
}

// Clone is a deep copy (the immutable bins are shared).
func (h *Hist) Clone() *Hist {
	c := *h
	c.W = append([]float64(nil), h.W...)
	return &c
}

// Rebin returns the histogram on other bins. The weight of a bin that
// straddles several is spread uniformly over its values; where the new edges
// are a subset of the old ones nothing is approximated.
func (h *Hist) Rebin(b *Bins) *Hist {
	r := &Hist{Bins: b, W: make([]float64, b.Len()), Cold: h.Cold, Censored: h.Censored,
		Invalidated: h.Invalidated, Pruned: h.Pruned, Lost: h.Lost, N: h.N}
	for i, w := range h.W {
		if w == 0 {
			continue
		}
		lo, hi := h.Bins.Lo(i), h.Bins.Hi(i)
		if h.Bins.IsOpen(i) {
			hi = lo + 1
		}
		first, last := b.Index(lo), b.Index(hi-1)
		if first == last {
			r.W[first] += w
			continue
		}
		for j := first; j <= last; j++ {
			part := float64(min(hi, b.Hi(j)) - max(lo, b.Lo(j)))
			r.W[j] += w * part / float64(hi-lo)
		}
	}
	return r
}

// Above is the fraction of accesses with a value greater than v, the endless
// ones included: the survival function P(T > v) of reuse times, or for
// distances the miss ratio of a fully associative LRU cache of v+1 blocks.
// A bin's weight is uniform over its values. 0 for an empty histogram.
func (h *Hist) Above(v uint64) float64 {
	total := h.Total()
	if !(total > 0) {
		return 0
	}
	i := h.Bins.Index(v)
	s := h.Endless()
	for _, w := range h.W[i+1:] {
		s += w
	}
	if lo, width := h.Bins.span(i); h.W[i] > 0 && width > 1 {
		s += h.W[i] * (lo + width - 1 - math.Max(float64(v), lo-1)) / width
	}
	return min(1, max(0, s/total))
}

// MissRatio is the fraction of accesses that miss in a fully associative LRU
// cache of the given number of blocks, where h is a histogram of stack
// distances: those at a distance of blocks or more, and the endless ones.
func (h *Hist) MissRatio(blocks uint64) float64 {
	if blocks == 0 {
		return 1
	}
	return h.Above(blocks - 1)
}

// check reports a weight that is negative, NaN or infinite.
func (h *Hist) Check() error {
	for i, w := range h.W {
		if !(w >= 0) || math.IsInf(w, 0) {
			return fmt.Errorf("histogram: bin %d has weight %v (weights are finite and not negative)", i, w)
		}
	}
	for _, m := range [...]struct {
		name string
		w    float64
	}{{"cold", h.Cold}, {"censored", h.Censored}, {"invalidated", h.Invalidated}, {"pruned", h.Pruned}, {"lost", h.Lost}} {
		if !(m.w >= 0) || math.IsInf(m.w, 0) {
			return fmt.Errorf("histogram: %s weight is %v (weights are finite and not negative)", m.name, m.w)
		}
	}
	return nil
}
