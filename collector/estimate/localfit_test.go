package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
)

// ways makes legs of probes, and holds, of a program whose blocks of code take so many
// ns an access. phase says which share of its accesses each block has at a moment.
func ways(r *rand.Rand, ns []float64, probes, holds int, phase func(time float64) []float64) (legs []Leg, held []map[record.CodeBlock]float64) {
	const folds = 10
	for p := range probes {
		at := r.Float64()
		for range 5 {
			shares := phase(at)
			x := Leg{Probe: p, Warm: true, Accesses: 1e6, Code: make(map[record.CodeBlock]float64)}
			for b, s := range shares {
				if s > 0 {
					x.Code[record.CodeBlock{Number: uint64(b)}] = 1e6 * s
					x.Ns += 1e6 * s * ns[b]
				}
			}
			x.Ns *= 1 + 0.1*r.NormFloat64()
			legs = append(legs, x)
		}
	}
	held = make([]map[record.CodeBlock]float64, folds)
	for i := range held {
		held[i] = make(map[record.CodeBlock]float64)
	}
	for h := range holds {
		shares, all := phase(r.Float64()), 0.0
		for b := range shares {
			all += shares[b] * ns[b]
		}
		u := r.Float64() * all
		for b := range shares {
			if u -= shares[b] * ns[b]; u < 0 {
				held[h%folds][record.CodeBlock{Number: uint64(b)}]++
				break
			}
		}
	}
	return legs, held
}

// Blocks' times come out where they run in phases of their own and where they take turns within
// each leg, and are within three of the errors stated.
func TestLocalFit(t *testing.T) {
	const seed = 3
	for _, c := range []struct {
		name   string
		ns     []float64
		phase  func(time float64) []float64
		within float64
	}{
		{"phases", []float64{0.2, 5}, func(at float64) []float64 {
			if at < .5 {
				return []float64{1, 0}
			}
			return []float64{0, 1}
		}, .15},
		{"turns", []float64{0.3, 1, 0.5}, func(float64) []float64 { return []float64{.4, .3, .3} }, .3},
		{"phases of turns", []float64{0.1, 0.2, 1, 2}, func(at float64) []float64 {
			if at < .3 {
				return []float64{.5, .5, 0, 0}
			}
			return []float64{0, .1, .5, .4}
		}, .5},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			l := fitLocal(ways(r, c.ns, 12, 300, c.phase))
			if l.firm == 0 {
				t.Fatalf("the mean was taken: %+v", l)
			}
			for b, want := range c.ns {
				perNS, off := l.at(record.CodeBlock{Number: uint64(b)})
				got := 1 / perNS
				t.Logf("block %d: %.3f ns, error %.0f %%, want %.3f (the mean is %.3f)", b, got, 100*off, want, l.mean)
				if wrong := math.Abs(math.Log(got / want)); wrong > c.within {
					t.Errorf("block %d takes %.3f ns, want %.3f", b, got, want)
				}
			}
		})
	}
}

// Where all code takes as long, none is told apart from it by much; and code that no probe came
// by has the mean.
func TestLocalFitAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	l := fitLocal(ways(r, []float64{1, 1, 1, 1, 1}, 10, 200, func(at float64) []float64 {
		return []float64{at / 2, .5 - at/2, .2, .2, .1}
	}))
	for b := range 5 {
		if perNS, off := l.at(record.CodeBlock{Number: uint64(b)}); math.Abs(perNS-1) > .25 {
			t.Errorf("block %d: rate %.2f, error %.0f %%, want 1", b, perNS, 100*off)
		}
	}
	if perNS, _ := l.at(record.CodeBlock{Number: 99}); perNS != 1/l.mean {
		t.Errorf("unknown code: %v, want the mean's %v", perNS, 1/l.mean)
	}
}
