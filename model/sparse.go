package model

import "slices"

// Sparse is a histogram without bins: each distinct value has a weight of its
// own, so that nothing is rounded. It is for what takes few distinct values, such as
// the stack distances that reading ahead counts; its memory grows with their
// number, and an Add of a new one moves the greater ones. Its masses are those of
// Hist.
type Sparse struct {
	values []uint64 // increasing
	weight []float64

	Cold, Censored, Invalidated, Pruned, Lost float64
	N                                         int64
}

// Add counts an access of the given reuse time or distance.
func (s *Sparse) Add(v uint64, weight float64) {
	i, found := slices.BinarySearch(s.values, v)
	if !found {
		s.values, s.weight = slices.Insert(s.values, i, v), slices.Insert(s.weight, i, 0)
	}
	s.weight[i] += weight
	s.N++
}

// Len is the number of distinct values.
func (s *Sparse) Len() int { return len(s.values) }

// Merge adds o to s: O(values of both).
func (s *Sparse) Merge(o *Sparse) {
	values := make([]uint64, 0, len(s.values)+len(o.values))
	weight := make([]float64, 0, cap(values))
	for i, j := 0, 0; i < len(s.values) || j < len(o.values); {
		switch {
		case j == len(o.values) || i < len(s.values) && s.values[i] < o.values[j]:
			values, weight = append(values, s.values[i]), append(weight, s.weight[i])
			i++
		case i == len(s.values) || o.values[j] < s.values[i]:
			values, weight = append(values, o.values[j]), append(weight, o.weight[j])
			j++
		default:
			values, weight = append(values, s.values[i]), append(weight, s.weight[i]+o.weight[j])
			i, j = i+1, j+1
		}
	}
	s.values, s.weight = values, weight
	s.Cold += o.Cold
	s.Censored += o.Censored
	s.Invalidated += o.Invalidated
	s.Pruned += o.Pruned
	s.Lost += o.Lost
	s.N += o.N
}

// Total is the weight of all accesses counted, lost ones excepted.
func (s *Sparse) Total() float64 { return s.from(0) + s.Cold + s.Censored + s.Invalidated + s.Pruned }

// MissRatio is the fraction of accesses that miss in a fully associative LRU
// cache of the given number of blocks, where s is a histogram of stack
// distances; exact. 0 for an empty histogram.
func (s *Sparse) MissRatio(blocks uint64) float64 {
	total := s.Total()
	if !(total > 0) {
		return 0
	}
	return (total - (s.from(0) - s.from(blocks))) / total
}

// from is the weight of the values of v or more.
func (s *Sparse) from(v uint64) (w float64) {
	i, _ := slices.BinarySearch(s.values, v)
	for _, x := range s.weight[i:] {
		w += x
	}
	return w
}

// Hist is s on the given bins.
func (s *Sparse) Hist(b *Bins) *Hist {
	h := NewHist(b)
	s.addTo(h)
	h.Cold, h.Censored, h.Invalidated, h.Pruned, h.Lost, h.N = s.Cold, s.Censored, s.Invalidated, s.Pruned, s.Lost, s.N
	return h
}

// addTo adds the weight of the values to h, and nothing else.
func (s *Sparse) addTo(h *Hist) {
	for i, v := range s.values {
		h.W[h.Bins.Index(v)] += s.weight[i]
	}
}
