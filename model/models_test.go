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

// exactOf analyses a trace of blocks.
func exactOf(t *testing.T, trace []uint64, b *Bins) *Exact {
	t.Helper()
	e, err := NewExact(1, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range trace {
		if err := e.Add([]Access{{Addr: block}}); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// eachWindow is the footprint of all windows of each length, the first of 1.
func eachWindow(t *testing.T, trace []uint64) []FootprintPoint {
	t.Helper()
	return exactOf(t, trace, LinearBins(1, len(trace)+1)).Footprint()
}

// letters is a trace of one block per letter.
func letters(s string) (t []uint64) {
	for _, r := range s {
		t = append(t, uint64(r))
	}
	return t
}

// The worked examples of Ding & Xiang.
func TestPaperFootprintExamples(t *testing.T) {
	abbb := eachWindow(t, letters("abbb"))
	near(t, "abbb: fp(2)", abbb[1].Blocks, 4./3, 1e-12)
	t.Logf("abbb:  fp(2) = %.4f, paper 4/3", abbb[1].Blocks)

	trace := letters("wxyzy")
	fp := eachWindow(t, trace)
	exact := exactOf(t, trace, LinearBins(1, 9))
	for i, want := range []float64{1, 2, 8. / 3} {
		near(t, "wxyzy: fp", fp[i].Blocks, want, 1e-12)
		t.Logf("wxyzy: fp(%d) = %.4f, paper %.4f", fp[i].Window, fp[i].Blocks, want)
	}
	// Predicted and actual miss ratios of caches of 1 and 2 blocks, and the
	// accuracy, the smaller over the larger. The prediction is the theory's
	// gradient, fp(w+1) - fp(w) where fp(w) = c; here fp(c) = c.
	for i, want := range []struct{ predicted, actual, accuracy float64 }{{1, 1, 1}, {2. / 3, .8, .8333}} {
		c := uint64(i + 1)
		near(t, "fp(c)", fp[c-1].Blocks, float64(c), 1e-12)
		p, a := fp[c].Blocks-fp[c-1].Blocks, exact.Distances().MissRatio(c)
		near(t, "predicted", p, want.predicted, 1e-9)
		near(t, "actual", a, want.actual, 1e-12)
		near(t, "accuracy", min(p, a)/max(p, a), want.accuracy, 1e-3)
		t.Logf("wxyzy: mr(%d) predicted %.1f %%, actual %.1f %%, accuracy %.0f %%", c, 100*p, 100*a, 100*min(p, a)/max(p, a))
	}
	// The reuse windows: "yz" only, of length 2 and footprint 2, as all
	// windows of that length: the condition holds for it. In "abbb" both are
	// "b", of length 1.
	near(t, "wxyzy: gap", exact.WindowGap(), 0, 1e-12)
	near(t, "abbb: gap", exactOf(t, letters("abbb"), LinearBins(1, 9)).WindowGap(), 0, 1e-12)
	// In "abba" one window is "b", the other "abb", of 2 blocks as is "bba".
	near(t, "abba: gap", exactOf(t, letters("abba"), LinearBins(1, 9)).WindowGap(), 0, 1e-12)
	// In "abaccca" the windows are "ab" (2 blocks), "c" twice and "accc" (2);
	// those of 2 have (2+2+2+1+1+2)/6, those of 4 have (3+3+2+2)/4.
	near(t, "abaccca: gap", exactOf(t, letters("abaccca"), LinearBins(1, 9)).WindowGap(), ((2-10./6)/(10./6)+0+0+(2.5-2)/2.5)/4, 1e-12)
}

// In a stationary trace the footprint of the reuse times alone is that of the
// trace, it is concave, and lifetime, miss ratio and reuse distance follow
// from each other.
func TestFootprintTheory(t *testing.T) {
	rng := newRand(t, 24)
	trace := make([]uint64, 40000)
	for i := range trace {
		trace[i] = uint64(rng.ExpFloat64()*60) % 150
	}
	b := LinearBins(1, len(trace)+1)
	exact := eachWindow(t, trace)
	times, dists := histsOf(trace, b, b)
	times.Cold = 0 // the run is a window of one that goes on
	var x Footprint
	if err := x.Reset(times); err != nil {
		t.Fatal(err)
	}
	before, slope := 0.0, 2.0
	for w := uint64(1); w < 4000; w += 7 {
		near(t, "fp", x.At(float64(w)), exact[w-1].Blocks, 0.01*exact[w-1].Blocks)
	}
	for w := 1.0; w < 4000; w++ {
		f := x.At(w)
		if f-before > slope+1e-9 {
			t.Fatalf("footprint is not concave at %v: %v after %v", w, f-before, slope)
		}
		before, slope = f, f-before
		near(t, "lf(fp(w))", x.Lifetime(f), w, 1e-6*w+1e-6)
	}
	for c := uint64(2); c < 140; c++ {
		mr := x.MissRatio(times, c)
		near(t, "mr", mr, 1/(x.Lifetime(float64(c+1))-x.Lifetime(float64(c))), 1e-9)
		near(t, "mr against exact", mr, dists.MissRatio(c)-dists.Cold/dists.Total(), 0.02)
	}
	// Back: the reciprocal miss ratios add up to the lifetime.
	sum := x.Lifetime(1)
	for c := uint64(1); c < 140; c++ {
		sum += 1 / x.MissRatio(times, c)
		near(t, "lf from mr", sum, x.Lifetime(float64(c+1)), 1e-6*sum)
	}
	// rd(c) = mr(c) - mr(c+1)
	rd := NewHist(b)
	if err := x.Stacks(rd, times); err != nil {
		t.Fatal(err)
	}
	for c := uint64(2); c < 140; c++ {
		near(t, "rd", rd.W[c]/times.Total(), x.MissRatio(times, c)-x.MissRatio(times, c+1), 1e-9)
	}
	// The reuse-window condition nearly holds here and fails on a sawtooth.
	gap := func(trace []uint64) float64 { return exactOf(t, trace, LogBins(10)).WindowGap() }
	random := gap(trace)
	saw := make([]uint64, 8000)
	for i := range saw {
		if saw[i] = uint64(i % 200); i/200%2 == 1 {
			saw[i] = 199 - saw[i]
		}
	}
	sawtooth := gap(saw)
	t.Logf("reuse-window gap: random %.4f, sawtooth %.4f", random, sawtooth)
	if random > 0.05 || sawtooth < 0.2 {
		t.Errorf("gap: random %v, sawtooth %v", random, sawtooth)
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
