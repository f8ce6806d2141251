package model

import (
	"math"
	"math/rand/v2"
	"testing"
)

// newRand is a generator whose seed the test prints if it fails.
func newRand(t testing.TB, seed uint64) *rand.Rand {
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
}

// near fails unless got is within tol of want.
func near(t testing.TB, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s = %.10g, want %.10g within %g", what, got, want, tol)
	}
}

func randomHist(rng *rand.Rand, b *Bins, n int) *Hist {
	h := NewHist(b)
	for range n {
		h.AddKind(Kind(rng.IntN(int(NumKinds))), rng.Uint64()>>rng.IntN(64), float64(rng.IntN(100)))
	}
	return h
}

func sameHist(t *testing.T, a, b *Hist) {
	t.Helper()
	for i := range a.W {
		if a.W[i] != b.W[i] {
			t.Fatalf("bin %d: %v and %v", i, a.W[i], b.W[i])
		}
	}
	if a.Cold != b.Cold || a.Censored != b.Censored || a.Invalidated != b.Invalidated || a.Pruned != b.Pruned || a.Lost != b.Lost || a.N != b.N {
		t.Fatalf("masses differ: %+v and %+v", a, b)
	}
}

// Merging the histograms of parts is the histogram of the whole, in any order.
func TestHistMerge(t *testing.T) {
	rng := newRand(t, 1)
	for name, b := range allBins(t) {
		whole, parts := NewHist(b), [3]*Hist{NewHist(b), NewHist(b), NewHist(b)}
		for range 3000 {
			k, v, w := Kind(rng.IntN(int(NumKinds))), rng.Uint64()>>rng.IntN(64), float64(rng.IntN(100))
			whole.AddKind(k, v, w)
			parts[rng.IntN(3)].AddKind(k, v, w)
		}
		for _, order := range [][3]int{{0, 1, 2}, {2, 0, 1}} {
			sum := NewHist(b)
			for _, i := range order {
				if err := sum.Merge(parts[i]); err != nil {
					t.Fatal(name, err)
				}
			}
			sameHist(t, whole, sum)
		}
	}
	if err := NewHist(LogBins(1)).Merge(NewHist(LogBins(2))); err == nil {
		t.Error("merged histograms of different bins")
	}
}

func TestHistRebin(t *testing.T) {
	h := randomHist(newRand(t, 2), LogBins(10), 5000)
	// LogBins(1) nests in LogBins(10): nothing is approximated.
	coarse := NewHist(LogBins(1))
	coarse.addEndless(h)
	for i, w := range h.W {
		coarse.W[coarse.Bins.Index(h.Bins.Lo(i))] += w
	}
	sameHist(t, coarse, h.Rebin(LogBins(1)))
	// Elsewhere the total is kept.
	for name, b := range allBins(t) {
		near(t, name+" total", h.Rebin(b).Total(), h.Total(), 1e-9*h.Total())
	}
}

func TestHistScale(t *testing.T) {
	h := randomHist(newRand(t, 3), LogBins(4), 1000)
	s := h.Clone()
	s.Scale(3)
	near(t, "total", s.Total(), 3*h.Total(), 1e-6)
	if a, err := Accuracy(h, s); err != nil || math.Abs(a-1) > 1e-12 {
		t.Errorf("accuracy of a scaled histogram %v, %v", a, err)
	}
	for v := range uint64(2000) {
		near(t, "Above", s.Above(v), h.Above(v), 1e-12)
	}
}

func TestHistAbove(t *testing.T) {
	h := NewHist(LinearBins(1, 10))
	for _, v := range []uint64{1, 2, 2, 5} {
		h.Add(v, 1)
	}
	h.Cold = 1
	for v, want := range []float64{1, .8, .4, .4, .4, .2, .2} {
		near(t, "Above", h.Above(uint64(v)), want, 1e-15)
	}
	near(t, "MissRatio(0)", h.MissRatio(0), 1, 0)
	near(t, "MissRatio(2)", h.MissRatio(2), .8, 1e-15)
	if NewHist(LogBins(1)).Above(3) != 0 {
		t.Error("an empty histogram has mass")
	}
	// Uniform within a bin: values 8..15.
	h = NewHist(LogBins(1))
	h.Add(9, 8)
	near(t, "Above(7)", h.Above(7), 1, 0)
	near(t, "Above(11)", h.Above(11), 0.5, 1e-15)
	near(t, "Above(15)", h.Above(15), 0, 0)
}

func TestAccuracy(t *testing.T) {
	a, b := NewHist(LogBins(1)), NewHist(LogBins(1))
	if _, err := Accuracy(a, b); err == nil {
		t.Error("accuracy of nothing")
	}
	a.Add(3, 1)
	a.Cold = 1
	b.Add(3, 10)
	b.Add(100, 10)
	b.Lost = 1e9
	got, err := Accuracy(a, b)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "accuracy", got, 0.5, 1e-15)
	if _, err := Accuracy(a, NewHist(LogBins(2))); err == nil {
		t.Error("accuracy across different bins")
	}
}

func TestWeightMatch(t *testing.T) {
	ref := map[string]float64{"a": 50, "b": 30, "c": 15, "d": 5}
	est := map[string]float64{"a": 10, "c": 9, "b": 8, "x": 1}
	for n, want := range []float64{1, 1, 65. / 80, 1, .95, .95} {
		near(t, "WeightMatch", WeightMatch(ref, est, n), want, 1e-15)
	}
	near(t, "no misses", WeightMatch(map[int]float64{}, map[int]float64{1: 2}, 3), 1, 0)
}
