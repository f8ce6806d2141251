package exact

import (
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// exactOf analyses a trace of blocks.
func exactOf(t *testing.T, trace []uint64, b *model.Bins) *Analysis {
	t.Helper()
	e, err := New(1, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range trace {
		if err := e.Add([]model.Access{{Addr: block}}); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// eachWindow is the footprint of all windows of each length, the first of 1.
func eachWindow(t *testing.T, trace []uint64) []model.FootprintPoint {
	t.Helper()
	return exactOf(t, trace, model.LinearBins(1, len(trace)+1)).Footprint()
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
	exact := exactOf(t, trace, model.LinearBins(1, 9))
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
	near(t, "wxyzy: gap", exact.WindowError(), 0, 1e-12)
	near(t, "abbb: gap", exactOf(t, letters("abbb"), model.LinearBins(1, 9)).WindowError(), 0, 1e-12)
	// In "abba" one window is "b", the other "abb", of 2 blocks as is "bba".
	near(t, "abba: gap", exactOf(t, letters("abba"), model.LinearBins(1, 9)).WindowError(), 0, 1e-12)
	// In "abaccca" the windows are "ab" (2 blocks), "c" twice and "accc" (2);
	// those of 2 have (2+2+2+1+1+2)/6, those of 4 have (3+3+2+2)/4.
	near(t, "abaccca: gap", exactOf(t, letters("abaccca"), model.LinearBins(1, 9)).WindowError(), ((2-10./6)/(10./6)+0+0+(2.5-2)/2.5)/4, 1e-12)
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
	b := model.LinearBins(1, len(trace)+1)
	analysis := exactOf(t, trace, b)
	exact, times, dists := analysis.Footprint(), analysis.Times(), analysis.Distances()
	times.Cold = 0 // the run is a window of one that goes on
	var x model.Footprint
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
	rd := model.NewHist(b)
	if err := x.Stacks(rd, times); err != nil {
		t.Fatal(err)
	}
	for c := uint64(2); c < 140; c++ {
		near(t, "rd", rd.W[c]/times.Total(), x.MissRatio(times, c)-x.MissRatio(times, c+1), 1e-9)
	}
	// The reuse-window condition nearly holds here and fails on a sawtooth.
	windowError := func(trace []uint64) float64 { return exactOf(t, trace, model.LogBins(10)).WindowError() }
	random := windowError(trace)
	saw := make([]uint64, 8000)
	for i := range saw {
		if saw[i] = uint64(i % 200); i/200%2 == 1 {
			saw[i] = 199 - saw[i]
		}
	}
	sawtooth := windowError(saw)
	t.Logf("reuse-window gap: random %.4f, sawtooth %.4f", random, sawtooth)
	if random > 0.05 || sawtooth < 0.2 {
		t.Errorf("gap: random %v, sawtooth %v", random, sawtooth)
	}
}
