package model

import (
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// Of differences between profiles of one program, 5 % are called significant,
// and a real difference is found.
func TestPerAccessSignificance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rng := newRand(t, 51)
	const runs, observations = 2000, 2000
	misses := func(r *Record) float64 { return r.Misses[0] }
	// A place with about lambda observations of unequal weights.
	draw := func(lambda float64) Estimate {
		var records []*Record
		n := distuv.Poisson{Lambda: lambda, Src: rng}.Rand()
		for range int(n) {
			w := 500 + 1000*rng.Float64()
			records = append(records, &Record{Weight: Weight{Observations: 1}, Derived: Derived{Misses: []float64{w}}})
		}
		return new(Profile).PerAccess(records, misses, observations*1000, observations, 0.05)
	}
	for _, c := range []struct{ before, after, least, most float64 }{
		{40, 40, 0.02, 0.065},
		{400, 400, 0.03, 0.065},
		{400, 250, 0.9, 1},
	} {
		found := 0
		for range runs {
			if draw(c.after).Minus(draw(c.before)).Significant() {
				found++
			}
		}
		share := float64(found) / runs
		t.Logf("%v and %v observations: significant in %.1f %%", c.before, c.after, 100*share)
		if share < c.least || share > c.most {
			t.Errorf("%v and %v observations: significant in %.3f, want %v to %v", c.before, c.after, share, c.least, c.most)
		}
	}
}

func TestPerAccess(t *testing.T) {
	none := new(Profile).PerAccess(nil, nil, 1e6, 1000, 0.05)
	near(t, "nothing seen", none.Value, 0, 0)
	near(t, "but up to", none.High, 0.0036889, 1e-6)
	ten := new(Profile).PerAccess([]*Record{{Weight: Weight{Observations: 10}, Derived: Derived{Misses: []float64{1e4}}}}, func(r *Record) float64 { return r.Misses[0] }, 1e6, 1000, 0.05)
	near(t, "ten", ten.Value, 0.01, 1e-12)
	near(t, "low", ten.Low, 0.0047954, 1e-6)
	near(t, "high", ten.High, 0.0183904, 1e-6)
	d := Estimate{5, 4, 7}.Minus(Estimate{2, 1, 2.5})
	near(t, "difference", d.Value, 3, 0)
	near(t, "low", d.Low, 3-1.1180339887, 1e-9)
	near(t, "high", d.High, 3+2.2360679775, 1e-9)
	if !d.Significant() || (Estimate{1, -1, 2}).Significant() {
		t.Error("significance")
	}
}
