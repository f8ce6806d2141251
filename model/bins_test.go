package model

import (
	"math"
	"math/rand/v2"
	"testing"
)

func allBins(t *testing.T) map[string]*Bins {
	t.Helper()
	e, err := EdgeBins([]uint64{0, 1, 2, 7, 1000, 1 << 63})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*Bins{
		"log1": LogBins(1), "log2": LogBins(2), "log10": LogBins(10), "log100": LogBins(100),
		"log4096": LogBins(4096), "linear1": LinearBins(1, 500), "linear1000": LinearBins(1000, 77), "edges": e,
	}
}

func TestBinsPartition(t *testing.T) {
	for name, b := range allBins(t) {
		if b.Lo(0) != 0 || b.Hi(b.Len()-1) != math.MaxUint64 {
			t.Errorf("%s: covers %d..%d", name, b.Lo(0), b.Hi(b.Len()-1))
		}
		for i := range b.Len() {
			if i > 0 && b.Lo(i) != b.Hi(i-1) {
				t.Fatalf("%s: hole between bins %d and %d", name, i-1, i)
			}
			last := b.Hi(i) - 1
			if i == b.Len()-1 {
				last = math.MaxUint64
			}
			for _, v := range []uint64{b.Lo(i), b.Mid(i), last} {
				if got := b.Index(v); got != i {
					t.Fatalf("%s: Index(%d) = %d, want %d", name, v, got, i)
				}
			}
		}
	}
}

func TestLogBinsExactBelow(t *testing.T) {
	b := LogBins(10)
	for v := uint64(0); v < 14; v++ {
		if i := b.Index(v); b.Lo(i) != v || b.Hi(i) != v+1 {
			t.Errorf("value %d is in bin %d..%d, want it alone", v, b.Lo(i), b.Hi(i))
		}
	}
	for k := range 64 {
		if v := uint64(1) << k; b.Lo(b.Index(v)) != v {
			t.Errorf("2^%d is no edge", k)
		}
	}
	// No bin above the exact range is wider than asked for, one integer aside.
	for i := 1; i < b.Len()-1; i++ {
		lo, hi := float64(b.Lo(i)), float64(b.Hi(i))
		if hi > lo*math.Exp2(0.1)*(1+1e-12)+1 {
			t.Errorf("bin %d: %v..%v", i, lo, hi)
		}
	}
}

func TestEdgeBinsRefuses(t *testing.T) {
	for _, e := range [][]uint64{nil, {1}, {0, 0}, {0, 5, 4}} {
		if _, err := EdgeBins(e); err == nil {
			t.Errorf("EdgeBins(%v) accepted", e)
		}
	}
}

func TestBinsIndexAllocates(t *testing.T) {
	b := LogBins(10)
	if n := testing.AllocsPerRun(100, func() { b.Index(123456789) }); n != 0 {
		t.Errorf("Index allocates %v times", n)
	}
}

func BenchmarkBinsIndex(b *testing.B) {
	bins := LogBins(10)
	rng := rand.New(rand.NewPCG(1, 2))
	v := make([]uint64, 4096)
	for i := range v {
		v[i] = rng.Uint64() >> rng.IntN(64)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		bins.Index(v[i&4095])
		i++
	}
}
