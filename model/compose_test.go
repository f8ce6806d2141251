package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// cyclic is the footprint of a loop over m blocks.
func cyclic(m float64) func(float64) float64 {
	return func(w float64) float64 { return min(w, m) }
}

// randomFootprint is that of uniform random accesses to m blocks.
func randomFootprint(m float64) func(float64) float64 {
	return func(w float64) float64 { return -m * math.Expm1(w*math.Log1p(-1/m)) }
}

func mustCompose(t *testing.T, programs []Corunner, blocks float64) []Corun {
	t.Helper()
	got, err := Compose(programs, blocks)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestComposeClosedForm(t *testing.T) {
	// A stream of new blocks next to a loop: the loop survives as long as the
	// stream brings fewer blocks during one round than the cache has left.
	stream := Corunner{Name: "stream", Rate: 1, Footprint: func(w float64) float64 { return w }, Cold: 1}
	loop := Corunner{Name: "loop", Rate: 2, Footprint: cyclic(100)}
	for _, c := range []struct{ blocks, loopMiss float64 }{{160, 0}, {151, 0}, {148, 1}, {50, 1}} {
		got := mustCompose(t, []Corunner{stream, loop}, c.blocks)
		near(t, "stream", got[0].MissRatio, 1, 1e-9)
		near(t, "loop", got[1].MissRatio, c.loopMiss, 1e-9)
		near(t, "cache in use", got[0].Blocks+got[1].Blocks, c.blocks, 1e-6)
	}
	// Alone and fitting: only cold misses.
	got := mustCompose(t, []Corunner{{Rate: 1, Footprint: cyclic(100), Cold: 0.01}}, 101)
	near(t, "fits", got[0].MissRatio, 0.01, 0)
	near(t, "fits, blocks", got[0].Blocks, 100, 1e-9)
	// Uniform random over m blocks in c blocks misses 1-c/m.
	got = mustCompose(t, []Corunner{{Rate: 3, Footprint: randomFootprint(1000)}}, 400)
	near(t, "random", got[0].MissRatio, 0.6, 2e-3)
	// Two of the same kind share evenly, whatever unit rates are in.
	two := []Corunner{{Rate: 5, Footprint: randomFootprint(1000)}, {Rate: 5, Footprint: randomFootprint(1000)}}
	got = mustCompose(t, two, 800)
	near(t, "two random", got[0].MissRatio, 0.6, 2e-3)
	near(t, "half each", got[0].Blocks, 400, 1e-6)
}

func TestComposeBadInput(t *testing.T) {
	good := Corunner{Rate: 1, Footprint: cyclic(5)}
	for name, f := range map[string]func() error{
		"no programs": func() error { _, err := Compose(nil, 5); return err },
		"no cache":    func() error { _, err := Compose([]Corunner{good}, 0); return err },
		"NaN cache":   func() error { _, err := Compose([]Corunner{good}, math.NaN()); return err },
		"no rate":     func() error { _, err := Compose([]Corunner{{Footprint: cyclic(5)}}, 5); return err },
		"NaN cold": func() error {
			_, err := Compose([]Corunner{{Rate: 1, Footprint: cyclic(5), Cold: math.NaN()}}, 5)
			return err
		},
		"group of none":    func() error { _, err := Group(nil, 5, 1, 1); return err },
		"too many to fit":  func() error { _, err := Group([]Corunner{good, good, good}, 5, 1, 2); return err },
		"too many to try":  func() error { _, err := Group(make([]Corunner, 17), 5, 17, 17); return err },
		"no costs":         func() error { _, _, err := Partition(nil, 0); return err },
		"ragged costs":     func() error { _, _, err := Partition([][]float64{{1, 2}, {1}}, 0); return err },
		"NaN cost":         func() error { _, _, err := Partition([][]float64{{1, math.NaN()}}, 0); return err },
		"too few units":    func() error { _, _, err := Partition([][]float64{{1, 2}, {1, 2}}, 1); return err },
		"negative minimum": func() error { _, _, err := Partition([][]float64{{1, 2}}, -1); return err },
	} {
		if err := f(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestFootprintCurve(t *testing.T) {
	f := FootprintCurve([]FootprintPoint{{1, 1}, {3, 2}, {10, 9}})
	for w, want := range map[float64]float64{-1: 0, 0: 0, 0.5: 0.5, 1: 1, 2: 1.5, 3: 2, 4: 3, 10: 9, 1e9: 9} {
		near(t, "curve", f(w), want, 1e-12)
	}
	if FootprintCurve(nil)(5) != 0 {
		t.Error("a curve without points is not 0")
	}
}

// partitions calls f with every way to divide units.
func partitions(programs, units, least int, f func([]int)) {
	var rec func(got []int, left int)
	rec = func(got []int, left int) {
		if len(got) == programs-1 {
			if left >= least {
				f(append(got, left))
			}
			return
		}
		for k := least; k <= left; k++ {
			rec(append(slices.Clone(got), k), left-k)
		}
	}
	rec(nil, units)
}

func TestPartitionAgainstAll(t *testing.T) {
	r := newRand(t, rand.Uint64())
	for range 300 {
		programs, units, least := 1+r.IntN(4), r.IntN(9), r.IntN(2)
		if programs*least > units {
			continue
		}
		cost := make([][]float64, programs)
		for i := range cost {
			for range units + 1 {
				cost[i] = append(cost[i], r.Float64())
			}
		}
		want := math.Inf(1)
		partitions(programs, units, least, func(u []int) {
			sum := 0.0
			for i, k := range u {
				sum += cost[i][k]
			}
			want = min(want, sum)
		})
		got, total, err := Partition(cost, least)
		if err != nil {
			t.Fatal(err)
		}
		sum, used := 0.0, 0
		for i, k := range got {
			sum += cost[i][k]
			used += k
			if k < least {
				t.Errorf("program %d gets %d, want at least %d", i, k, least)
			}
		}
		if math.Abs(total-want) > 1e-12 || math.Abs(sum-want) > 1e-12 || used != units {
			t.Fatalf("cost %v: %v costs %v (said %v), best is %v", cost, got, sum, total, want)
		}
	}
}

func TestGroupAgainstAll(t *testing.T) {
	r := newRand(t, rand.Uint64())
	for range 20 {
		n, caches, perCache := 1+r.IntN(5), 1+r.IntN(3), 1+r.IntN(4)
		if caches*perCache < n {
			continue
		}
		programs := make([]Corunner, n)
		for i := range programs {
			programs[i] = Corunner{Rate: 0.5 + r.Float64(), Footprint: randomFootprint(100 + 2000*r.Float64())}
		}
		const blocks = 1000
		// Every assignment of programs to caches.
		want := math.Inf(1)
		for code := range int(math.Pow(float64(caches), float64(n))) {
			sum, fits := 0.0, true
			for cache := range caches {
				var p []Corunner
				for i, c := 0, code; i < n; i, c = i+1, c/caches {
					if c%caches == cache {
						p = append(p, programs[i])
					}
				}
				if len(p) == 0 {
					continue
				}
				fits = fits && len(p) <= perCache
				for i, x := range mustCompose(t, p, blocks) {
					sum += p[i].Rate * x.MissRatio
				}
			}
			if fits {
				want = min(want, sum)
			}
		}
		got, err := Group(programs, blocks, caches, perCache)
		if err != nil {
			t.Fatal(err)
		}
		sum, seen := 0.0, 0
		for _, g := range got.Groups {
			seen += len(g)
			if len(g) == 0 || len(g) > perCache {
				t.Errorf("a group of %d", len(g))
			}
		}
		for i, x := range got.Corun {
			sum += programs[i].Rate * x.MissRatio
		}
		if math.Abs(got.Misses-want) > 1e-9 || math.Abs(sum-want) > 1e-9 || seen != n || len(got.Groups) > caches {
			t.Errorf("%d programs on %d caches: %+v, want %v misses", n, caches, got, want)
		}
	}
}

func BenchmarkCompose(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	programs := make([]Corunner, 4)
	for i := range programs {
		programs[i] = Corunner{Rate: 1, Footprint: randomFootprint(1000 + 1e5*r.Float64())}
	}
	for b.Loop() {
		if _, err := Compose(programs, 50_000); err != nil {
			b.Fatal(err)
		}
	}
}
