package model

import (
	"math"
	"slices"
	"testing"
)

// Of the values 3, 3, 7 and 100 and one first access, a cache of 7 blocks hits the
// 3s alone, and one of 8 the 7 as well: no bin stands between.
func TestSparse(t *testing.T) {
	var s Sparse
	for _, v := range []uint64{7, 3, 100, 3} {
		s.Add(v, 2)
	}
	s.Cold, s.Lost = 2, 5
	if s.Len() != 3 || s.Total() != 10 || s.N != 4 {
		t.Errorf("%d values, total %v of %d", s.Len(), s.Total(), s.N)
	}
	for blocks, want := range map[uint64]float64{0: 1, 3: 1, 4: 0.6, 7: 0.6, 8: 0.4, 100: 0.4, 101: 0.2, Infinite: 0.2} {
		if m := s.MissRatio(blocks); math.Abs(m-want) > 1e-15 {
			t.Errorf("miss ratio with %d blocks %v, want %v", blocks, m, want)
		}
	}
	var empty Sparse
	if empty.MissRatio(1) != 0 || empty.Total() != 0 {
		t.Error("an empty histogram has accesses")
	}
}

// On bins it is what a Hist of the same accesses is, at the edges of the range,
// too; and merging is adding to one.
func TestSparseIsHist(t *testing.T) {
	rng := newRand(t, 71)
	values := []uint64{0, 1, 2, 31, 32, 33, 1 << 40, Infinite - 1, Infinite}
	for range 50 {
		bins := LogBins(1 + rng.IntN(40))
		want := NewHist(bins)
		var all, part [2]Sparse
		for range rng.IntN(200) {
			v := values[rng.IntN(len(values))]
			if rng.IntN(2) == 0 {
				v = rng.Uint64N(300)
			}
			w := float64(rng.IntN(9)) // sums of integers are exact in any order
			want.Add(v, w)
			all[0].Add(v, w)
			part[rng.IntN(2)].Add(v, w)
		}
		part[0].Merge(&part[1])
		for i, s := range []*Sparse{&all[0], &part[0]} {
			got := s.Hist(bins)
			if !slices.Equal(got.W, want.W) || got.N != want.N || s.Total() != want.Total() {
				t.Errorf("%d: %v of %d, want %v of %d", i, got.W, got.N, want.W, want.N)
			}
			if !slices.IsSorted(s.values) || len(slices.Compact(slices.Clone(s.values))) != s.Len() {
				t.Errorf("%d: values %v", i, s.values)
			}
		}
	}
}
