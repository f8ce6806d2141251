package estimate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// pairNoise is a draw of what two traps take by themselves, like those of a virtual machine: narrow on one side, a
// long tail on the other. In ns, its median 0 and p90 - p10 the spread.
func pairNoise(r *rand.Rand, spread float64) float64 {
	x := spread * 0.35 * r.NormFloat64()
	if r.IntN(10) == 0 {
		x += spread * r.ExpFloat64()
	}
	return x
}

// octaves is the share of times in each octave.
func octaves(times []float64) map[int]float64 {
	out := make(map[int]float64)
	for _, t := range times {
		out[int(math.Floor(math.Log2(max(t, 1))))] += 1 / float64(len(times))
	}
	return out
}

func apart(a, b map[int]float64) (d float64) {
	for o := range 64 {
		d += math.Abs(a[o]-b[o]) / 2
	}
	return d
}

// A known population with noise comes out nearer to the truth than without noise taken out.
// A smooth one is not made spiky: that would be in wrong octaves.
func TestUnsmear(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	const least, spread, draws = 700, 2000, 400
	for _, c := range []struct {
		name string
		n    int
		law  func(r *rand.Rand) float64
	}{
		{"falling", 300, func(r *rand.Rand) float64 { return least / max(r.Float64(), 1e-3) }},
		{"even in octaves", 300, func(r *rand.Rand) float64 { return least * math.Exp2(5*r.Float64()) }},
		{"soon", 300, func(r *rand.Rand) float64 { return least * (1 + r.Float64()) }},
		{"one time", 300, func(r *rand.Rand) float64 { return 3 * spread }},
		{"few", 40, func(r *rand.Rand) float64 { return least / max(r.Float64(), 1e-3) }},
	} {
		with, without := 0.0, 0.0
		const runs = 20
		for seed := range uint64(runs) {
			r := rand.New(rand.NewPCG(seed, 5))
			var noise, truth, clamped []float64
			for range draws {
				noise = append(noise, pairNoise(r, spread))
			}
			var all []smeared
			for range c.n {
				x := c.law(r)
				o := smeared{time: x + pairNoise(r, spread), least: least, weight: 1}
				seen := o.time
				if seen < spread { // all that is known: the model spreads it evenly in octaves
					seen = least * math.Pow(spread/least, r.Float64())
				}
				all, truth, clamped = append(all, o), append(truth, x), append(clamped, seen)
			}
			got := unsmear(all, noise, spread)
			with += apart(octaves(got), octaves(truth)) / runs
			without += apart(octaves(clamped), octaves(truth)) / runs
		}
		t.Logf("%s: %.3f of the mass in a wrong octave, %.3f with the noise", c.name, with, without)
		if with >= without {
			t.Errorf("%s: %.3f of the mass in a wrong octave, %.3f with the noise", c.name, with, without)
		}
	}
}

// Where the noise is far below the times nothing changes but by less than a bin of an octave.
func TestUnsmearFar(t *testing.T) {
	const spread = 10
	r := rand.New(rand.NewPCG(1, 5))
	var noise, seen []float64
	var all []smeared
	for range 1000 {
		noise = append(noise, pairNoise(r, spread))
		x := 100 * math.Exp2(1+r.Float64()*.1+4*float64(r.IntN(2)))
		all = append(all, smeared{time: x + pairNoise(r, spread), least: 50, weight: 1 + float64(r.IntN(3))})
	}
	for i := range leastUnsmeared {
		all[i].time = 100 // near enough
	}
	got := unsmear(all, noise, spread)
	for _, o := range all {
		seen = append(seen, o.time)
	}
	if d := apart(octaves(got), octaves(seen)); d > .01 {
		t.Errorf("%.3f of the mass moved", d)
	}
	if unsmear(all[:10], noise, spread) != nil || unsmear(all, nil, spread) != nil {
		t.Error("of ten, or without noise, there is nothing to take out")
	}
}
