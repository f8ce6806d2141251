package model

import (
	"math"
	"math/rand/v2"
	"testing"
)

// observe adds n observations of a thread whose reuse times and times to being
// cut off are exponential with the given means, and never with the probability
// cold.
func observe(p *Profile, rng *rand.Rand, tid, n int, reuse, cutoff, cold float64) {
	for i := range n {
		t, c := 1+reuse*rng.ExpFloat64(), 1+cutoff*rng.ExpFloat64()
		r := Record{Kind: Reuse, Timing: Timing{Time: uint64(t)}, TID: tid, Epoch: 1 + 4*i/n, Weight: Weight{Observations: 1, Accesses: 1000}}
		if rng.Float64() < cold || c < t {
			r.Kind, r.Time = Censored, uint64(c)
		}
		p.Records = append(p.Records, r)
	}
}

// survivalError is the mean error of the estimated survival function over
// octaves, and the share of its signed part.
func survivalError(t *testing.T, p *Profile, truth func(x float64) float64) (abs, signed float64) {
	t.Helper()
	s, err := p.Survival()
	if err != nil {
		t.Fatal(err)
	}
	const octaves = 17
	for k := range octaves {
		x := uint64(1) << k
		d := s.Above(x) - truth(float64(x))
		abs += math.Abs(d) / octaves
		signed += d / octaves
	}
	return abs, signed
}

// pooled is the profile as if all observations were of one thread.
func pooled(p *Profile) *Profile {
	q := *p
	q.Records = append([]Record(nil), p.Records...)
	for i := range q.Records {
		q.Records[i].TID = 1
	}
	return &q
}

// Threads that differ in their reuse times and in how long they are watched:
// the condition of Kaplan-Meier holds in each and not in the pool of them. One
// is reused soon and watched long, the other late, and mostly cut off before.
func TestStrataDiffer(t *testing.T) {
	rng := newRand(t, 71)
	const runs = 40
	var apart, joint float64
	for range runs {
		p := testProfile()
		observe(p, rng, 1, 1500, 200, 1e5, 0.05)
		observe(p, rng, 2, 1500, 2e4, 5e3, 0.05)
		truth := func(x float64) float64 {
			return 0.05 + 0.95*(math.Exp(-x/200)+math.Exp(-x/2e4))/2
		}
		a, _ := survivalError(t, p, truth)
		b, _ := survivalError(t, pooled(p), truth)
		apart += a / runs
		joint += b / runs
	}
	t.Logf("mean error of S: by threads %.4f, pooled %.4f", apart, joint)
	if apart > 0.015 || joint < 2*apart {
		t.Errorf("mean error of S by threads %.4f, pooled %.4f: want at most 0.015 and half", apart, joint)
	}
}

// Threads that are all alike, half of their observations cut off, must not lose by being told apart.
func TestStrataAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rng := newRand(t, 72)
	const runs, threads = 40, 8
	truth := func(x float64) float64 { return 0.05 + 0.95*math.Exp(-x/2e3) }
	for _, ended := range []int{100, 220, 400} {
		var apart, joint, bias float64
		strata := 0
		for range runs {
			p := testProfile()
			for tid := range threads {
				observe(p, rng, 1+tid, 2*ended, 2e3, 2e3, 0.05)
			}
			e, err := p.estimate()
			if err != nil {
				t.Fatal(err)
			}
			strata += len(e.strata)
			a, s := survivalError(t, p, truth)
			b, _ := survivalError(t, pooled(p), truth)
			apart += a / runs
			joint += b / runs
			bias += s / runs
		}
		t.Logf("%3d ended each, %.1f strata: mean error of S by threads %.4f (bias %+.4f), pooled %.4f", ended, float64(strata)/runs, apart, bias, joint)
		if apart > 1.1*joint+0.001 {
			t.Errorf("%d ended each: mean error of S by threads %.4f, pooled %.4f", ended, apart, joint)
		}
	}
}

// Whatever the profile, miss ratios fall with the size of the cache, by every
// model, and depend on weights only relative to each other.
func TestCurveProperties(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rng := newRand(t, 73)
	sizes := []uint64{1, 2, 3, 5, 8, 16, 30, 64, 100, 256, 1000, 4096, 1 << 16, 1 << 20}
	for range 5 {
		p := testProfile()
		for tid := range 3 {
			observe(p, rng, 1+tid, 50+rng.IntN(400), math.Exp2(3+12*rng.Float64()), math.Exp2(6+12*rng.Float64()), 0.1*rng.Float64())
		}
		q := *p
		q.Records = append([]Record(nil), p.Records...)
		for i := range q.Records {
			q.Records[i].Accesses *= 7
		}
		for _, m := range CurveModels {
			o := CurveOptions{Model: m}
			a, err := p.MissRatios(sizes, o)
			if err != nil {
				t.Fatal(err)
			}
			b, err := q.MissRatios(sizes, o)
			if err != nil {
				t.Fatal(err)
			}
			before := 1.0
			for i, x := range a.Points {
				if x.MissRatio > before+1e-9 || !(x.Low <= x.MissRatio && x.MissRatio <= x.High) {
					t.Errorf("%s: %+v after a miss ratio of %v", m, x, before)
				}
				before = x.MissRatio
				near(t, m+" scaled", b.Points[i].MissRatio, x.MissRatio, 1e-6)
				near(t, m+" misses scaled", b.Points[i].Misses/7, x.Misses, 1e-6*(1+x.Misses))
			}
		}
	}
}
