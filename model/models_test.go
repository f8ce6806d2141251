package model

import (
	"math"
	"testing"
)

func newModels(t testing.TB) map[string]Model {
	t.Helper()
	models := map[string]Model{
		"shen basic": &Shen{Form: ShenBasic}, "shen printed": &Shen{Form: ShenPrinted},
	}
	for _, n := range ModelNames {
		m, err := NewModel(n)
		if err != nil {
			t.Fatal(err)
		}
		models[n] = m
	}
	if _, err := NewModel("oracle"); err == nil {
		t.Error("an unknown model was accepted")
	}
	return models
}

// Every model keeps the weight, gives a falling miss ratio, the same by both
// ways of computing it, and is indifferent to the scale of the weights.
func TestModelsKeepWeight(t *testing.T) {
	rng := newRand(t, 21)
	for name, m := range newModels(t) {
		largest := 30
		if name == "shen basic" {
			largest = 10 // it sums N terms
		}
		for range 10 {
			h := NewHist(LogBins(10))
			for range 1 + rng.IntN(100) {
				h.Add(1+rng.Uint64N(1<<rng.IntN(largest)), rng.Float64())
			}
			h.Cold = rng.Float64()
			h.Invalidated = rng.Float64()
			if err := m.Reset(h); err != nil {
				t.Fatal(name, err)
			}
			st := NewHist(LogBins(10))
			if err := m.Stacks(st, h); err != nil {
				t.Fatal(name, err)
			}
			near(t, name+" mass", st.Total(), h.Total(), 1e-9*h.Total())
			twice := h.Clone()
			twice.Scale(2)
			prev := 1.0
			for i := 1; i < 400; i += 3 {
				c := st.Bins.Lo(i)
				mr := m.MissRatio(h, c)
				if mr > prev+1e-7 { // lf(c+1)-lf(c) loses digits at 10^9 blocks
					t.Fatalf("%s: miss ratio rises from %v to %v at %d blocks", name, prev, mr, c)
				}
				prev = mr
				near(t, name+" miss ratio", st.MissRatio(c), mr, 1e-6)
			}
			if err := m.Reset(twice); err != nil {
				t.Fatal(name, err)
			}
			near(t, name+" scaled", m.MissRatio(twice, 77), m.MissRatio(h, 77), 1e-12)
		}
		if err := m.Reset(NewHist(LogBins(10))); err == nil {
			t.Errorf("%s: an empty histogram was accepted", name)
		}
	}
}

// D = 1 -> 0, D = 2 -> 1, and a loop over M blocks -> M-1, which the binomial
// of Shen & Shaw cannot give and does not claim to.
func TestModelsExact(t *testing.T) {
	for name, m := range newModels(t) {
		if name == "shen" || name == "shen basic" || name == "shen printed" {
			continue
		}
		for _, M := range []uint64{1, 2, 5, 300} {
			h := NewHist(LinearBins(1, 1000))
			h.Add(M, 10)
			if err := m.Reset(h); err != nil {
				t.Fatal(err)
			}
			st := NewHist(LinearBins(1, 1000))
			if err := m.Stacks(st, h); err != nil {
				t.Fatal(err)
			}
			near(t, name+" loop", st.W[M-1], 10, 1e-9)
		}
		h := NewHist(LinearBins(1, 1000))
		for d := uint64(1); d < 90; d++ {
			h.Add(d, 1)
		}
		if err := m.Reset(h); err != nil {
			t.Fatal(err)
		}
		only := NewHist(h.Bins)
		only.Add(1, 3)
		near(t, name+" D=1 in one block", m.MissRatio(only, 1), 0, 1e-12)
		only.Reset()
		only.Add(2, 3)
		if name == "footprint" {
			// It has a spread of its own: a full cache takes its next block
			// over the window lf(1)..lf(2).
			continue
		}
		near(t, name+" D=2 in one block", m.MissRatio(only, 1), 1, 1e-12)
		near(t, name+" D=2 in two blocks", m.MissRatio(only, 2), 0, 1e-12)
	}
}

// P2 of the model notes, (N-1) p(D) = sum of S(1)..S(D), on bins of any width
// against the double sum of Shen & Shaw's equation 1.
func TestP2BruteForce(t *testing.T) {
	rng := newRand(t, 22)
	for _, b := range []*Bins{LogBins(1), LogBins(2), LogBins(10), LinearBins(7, 300), LinearBins(1, 2000)} {
		h := NewHist(b)
		for range 300 {
			h.Add(1+uint64(rng.ExpFloat64()*150), rng.Float64())
		}
		h.Cold = 7 * rng.Float64()
		const n = 1000.0
		// p_T(delta), delta = 1.., spread uniformly in each bin.
		const longest = 4096
		pT := make([]float64, longest)
		for i, w := range h.W {
			lo, width := b.span(i)
			for at := lo; w > 0 && at < min(lo+width, longest); at++ {
				pT[int(at)] = w / width / h.Total()
			}
		}
		x := Shen{N: n}
		if err := x.Reset(h); err != nil {
			t.Fatal(err)
		}
		var p float64
		for d := 1; d < 1500; d++ {
			inner := h.Cold / h.Total()
			for delta := d + 1; delta < longest; delta++ {
				inner += pT[delta]
			}
			p += inner / (n - 1)
			near(t, "p", (x.s.area(float64(d+1))-1)/(n-1), p, 1e-9)
			if t.Failed() {
				t.FailNow()
			}
		}
	}
}

// The paper's P(b) for bins of width 1, where equation 5 is exact but for
// what lies within the bin itself.
func TestShenFormsAgreeOnNarrowBins(t *testing.T) {
	h := NewHist(LinearBins(1, 500))
	for d := uint64(1); d < 400; d++ {
		h.Add(d, math.Exp(-float64(d)/80))
	}
	fixed, printed, log1 := Shen{N: 100}, Shen{N: 100, Form: ShenPrinted}, Shen{N: 100, Form: ShenSimplified1}
	for _, x := range []*Shen{&fixed, &printed, &log1} {
		if err := x.Reset(h); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i < 400; i++ {
		near(t, "printed P", printed.P(i), fixed.P(i), 0.012)
		near(t, "simplified P", log1.P(i), printed.P(i), 0.004)
	}
}

func TestBinomial(t *testing.T) {
	for _, c := range []struct{ n, p float64 }{{1, .3}, {10, .5}, {1000, .01}, {1e6, 3e-5}, {99, .999}, {5, 0}, {5, 1}} {
		var sum, mean, second float64
		binomial(c.n, c.p, func(k, q float64) {
			sum += q
			mean += k * q
			second += k * k * q
		})
		near(t, "sum", sum, 1, 1e-8)
		near(t, "mean", mean, c.n*c.p, 1e-6*(1+c.n*c.p))
		near(t, "variance", second-mean*mean, c.n*c.p*(1-c.p), 1e-4*(1+c.n*c.p))
	}
}

func BenchmarkModels(b *testing.B) {
	h := timesOf300()
	sizes := LogBins(1)
	for _, name := range ModelNames {
		b.Run(name, func(b *testing.B) {
			m, err := NewModel(name)
			if err != nil {
				b.Fatal(err)
			}
			dst := NewHist(LogBins(10))
			b.ReportAllocs()
			for b.Loop() {
				dst.Reset()
				if err := m.Reset(h); err != nil {
					b.Fatal(err)
				}
				if err := m.Stacks(dst, h); err != nil {
					b.Fatal(err)
				}
				for i := range 40 {
					dst.MissRatio(sizes.Lo(i))
				}
			}
		})
	}
}

// In the steady state no conversion allocates.
func TestModelsDoNotAllocate(t *testing.T) {
	h := timesOf300()
	for name, m := range newModels(t) {
		dst := NewHist(LogBins(10))
		convert := func() {
			dst.Reset()
			if m.Reset(h) != nil || m.Stacks(dst, h) != nil {
				t.Fatal(name)
			}
			m.MissRatio(h, 100)
		}
		if name == "shen basic" {
			continue // sums N terms for every bin
		}
		convert()
		if n := testing.AllocsPerRun(20, convert); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
