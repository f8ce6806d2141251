package model

import (
	"math"
	"testing"
)

// bruteStacks walks an LRU stack: the oracle for small traces. Cold accesses
// have time 0.
func bruteStacks(trace []uint64) (times, dists []uint64) {
	var stack []uint64
	last := map[uint64]int{}
	for i, a := range trace {
		if j, ok := last[a]; ok {
			times = append(times, uint64(i-j))
			for d := len(stack) - 1; ; d-- {
				if stack[d] == a {
					dists = append(dists, uint64(len(stack)-1-d))
					stack = append(stack[:d], stack[d+1:]...)
					break
				}
			}
		} else {
			times, dists = append(times, 0), append(dists, 0)
		}
		stack = append(stack, a)
		last[a] = i
	}
	return times, dists
}

// histsOf are the histograms of the trace's reuse times and stack distances.
func histsOf(trace []uint64, tb, db *Bins) (times, dists *Hist) {
	t, d := bruteStacks(trace)
	times, dists = NewHist(tb), NewHist(db)
	for i := range t {
		if t[i] == 0 {
			times.AddKind(Cold, 0, 1)
			dists.AddKind(Cold, 0, 1)
			continue
		}
		times.Add(t[i], 1)
		dists.Add(d[i], 1)
	}
	return times, dists
}

func convert(t testing.TB, times *Hist, b *Bins) *Hist {
	t.Helper()
	var x SSX
	if err := x.Reset(times); err != nil {
		t.Fatal(err)
	}
	h := NewHist(b)
	if err := x.Stacks(h, times); err != nil {
		t.Fatal(err)
	}
	return h
}

// The cases where the answer is exact: D=1 -> 0, D=2 -> 1, loops -> M-1.
func TestSSXExact(t *testing.T) {
	exact := LinearBins(1, 3000)
	for _, m := range []int{1, 2, 3, 7, 100, 1000} {
		trace := make([]uint64, 20*m)
		for i := range trace {
			trace[i] = uint64(i % m)
		}
		times, want := histsOf(trace, exact, exact)
		// The last round has no reuse, as the first had none before: what is
		// cold here is an end effect, and a loop that goes on has none.
		times.Cold, want.Cold = 0, 0
		a, err := Accuracy(want, convert(t, times, exact))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "loop accuracy", a, 1, 1e-9)
	}

	rng := newRand(t, 8)
	times := randomHist(rng, exact, 2000)
	times.W[0], times.W[1], times.W[2] = 0, 7, 9
	var x SSX
	if err := x.Reset(times); err != nil {
		t.Fatal(err)
	}
	for d, want := range []float64{1: 0, 2: 1} {
		if d == 0 {
			continue
		}
		c, v := x.Mean(uint64(d))
		near(t, "C", c, want, 1e-12)
		near(t, "V", v, 0, 1e-12)
		near(t, "below", x.Below(d, uint64(want)), 0, 0)
		near(t, "below", x.Below(d, uint64(want)+1), 1, 0)
	}
}

// C and V on wide bins are the sums of their definition.
func TestSSXSums(t *testing.T) {
	rng := newRand(t, 9)
	for _, b := range []*Bins{LogBins(1), LogBins(10), LinearBins(7, 300), LinearBins(1, 2000)} {
		h := NewHist(b)
		for range 400 {
			h.Add(1+uint64(rng.ExpFloat64()*200), rng.Float64())
		}
		h.Cold = 10
		total := h.Total()
		p := func(t int) float64 {
			i := b.Index(uint64(t))
			_, w := b.span(i)
			return h.W[i] / total / w
		}
		var x SSX
		if err := x.Reset(h); err != nil {
			t.Fatal(err)
		}
		s, c, v := 1.0, 0.0, 0.0
		for d := 1; d < 1900; d++ {
			gc, gv := x.Mean(uint64(d))
			near(t, "C", gc, c, 1e-9*(1+c))
			near(t, "V", gv, v, 1e-9*(1+c))
			s -= p(d)
			q := s / (1 - p(d))
			c += q
			v += q * (1 - q)
		}
	}
}

// Model notes: measured E[d|D] at D = 2, 3, 5, 10 on uniform random accesses
// follows C closely.
func TestSSXMeanOfRandom(t *testing.T) {
	rng := newRand(t, 10)
	trace := make([]uint64, 60000)
	for i := range trace {
		trace[i] = rng.Uint64N(64)
	}
	tm, ds := bruteStacks(trace)
	times, _ := histsOf(trace, LinearBins(1, 2000), LogBins(1))
	var x SSX
	if err := x.Reset(times); err != nil {
		t.Fatal(err)
	}
	for _, d := range []uint64{2, 3, 5, 10, 40, 100} {
		var sum, sum2, n float64
		for i := range tm {
			if tm[i] == d {
				sum += float64(ds[i])
				sum2 += float64(ds[i] * ds[i])
				n++
			}
		}
		mean := sum / n
		se := math.Sqrt(max(0, sum2/n-mean*mean)/n) + 1e-9
		c, _ := x.Mean(d)
		near(t, "C", c, mean, 5*se+0.002*mean)
	}
}

// Masses are kept and the miss ratio falls with the size, by both ways of
// computing it, which agree.
func TestSSXMonotone(t *testing.T) {
	rng := newRand(t, 11)
	for range 30 {
		h := NewHist(LogBins(10))
		for range 1 + rng.IntN(100) {
			h.Add(1+rng.Uint64N(1<<rng.IntN(40)), rng.Float64())
		}
		h.Cold = rng.Float64()
		var x SSX
		if err := x.Reset(h); err != nil {
			t.Fatal(err)
		}
		st := convert(t, h, LogBins(10))
		near(t, "mass", st.Total(), h.Total(), 1e-9)
		prev := 1.0
		for i := 1; i < st.Bins.Len(); i++ {
			c := st.Bins.Lo(i)
			mr := x.MissRatio(h, c)
			if mr > prev+1e-9 {
				t.Fatalf("miss ratio rises from %v to %v at %d blocks", prev, mr, c)
			}
			prev = mr
			near(t, "miss ratio", st.MissRatio(c), mr, 1e-6)
		}
	}
}

func TestSSXRefuses(t *testing.T) {
	var x SSX
	h := NewHist(LogBins(1))
	if err := x.Reset(h); err == nil {
		t.Error("empty histogram accepted")
	}
	for _, w := range []float64{-1, math.NaN(), math.Inf(1)} {
		h.W[3] = w
		if err := x.Reset(h); err == nil {
			t.Errorf("weight %v accepted", w)
		}
	}
	h.W[3], h.W[0] = 1, 1
	if err := x.Reset(h); err == nil {
		t.Error("reuse time 0 accepted")
	}
	h.W[0] = 0
	if err := x.Reset(h); err != nil {
		t.Fatal(err)
	}
	if err := x.Stacks(NewHist(LogBins(1)), NewHist(LogBins(2))); err == nil {
		t.Error("other bins accepted")
	}
}

func TestNormalTable(t *testing.T) {
	for z := -9.0; z < 9; z += 0.00137 {
		cdf := math.Erfc(-z/math.Sqrt2) / 2
		near(t, "cdf", normalCDF(z), cdf, 1e-8)
		near(t, "ramp", normalRamp(z), z*cdf+math.Exp(-z*z/2)/math.Sqrt(2*math.Pi), 1e-8)
	}
}

// timesOf300 is a histogram with 300 bins in use, as a sampled profile has.
func timesOf300() *Hist {
	h := NewHist(LogBins(10))
	for i := range 300 {
		h.W[i+1] = 1 / float64(i+1) * (1 + 0.5*math.Sin(float64(i)))
	}
	h.Cold = 0.05
	return h
}

func BenchmarkSSX(b *testing.B) {
	h := timesOf300()
	dst := NewHist(LogBins(10))
	var x SSX
	b.ReportAllocs()
	for b.Loop() {
		dst.Reset()
		if err := x.Reset(h); err != nil {
			b.Fatal(err)
		}
		if err := x.Stacks(dst, h); err != nil {
			b.Fatal(err)
		}
	}
}
