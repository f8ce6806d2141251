package model

import (
	"math"
	"testing"
)

// Of 1000 uses 40 have no reuse as far as was read ahead, and few of these were
// watched for longer, in vain: how low the miss ratio of a large cache may be
// depends on how many.
func TestFewFollowed(t *testing.T) {
	for _, c := range []struct {
		watched int
		low     float64 // share of the estimate
	}{{0, 0}, {1, 0.05}, {4, math.Pow(0.05, 1./4)}, {40, 0.76}} {
		p := testProfile()
		for range 960 {
			p.Records = append(p.Records, rec(Reuse, 100, 5))
		}
		for i := range 40 {
			r := rec(Censored, 2048, 5)
			if i < c.watched {
				r.Time = 1e9
			}
			p.Records = append(p.Records, r)
		}
		curve, err := p.MissRatios([]uint64{50, 1000}, CurveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		small, large := curve.Points[0], curve.Points[1]
		t.Logf("%d watched: %.4f [%.4f, %.4f], %v", c.watched, large.MissRatio, large.Low, large.High, large.Quote)
		near(t, "miss ratio", large.MissRatio, 0.04, 1e-9)
		// The bootstrap's own band of 40 of 1000 begins at 0.76 of them.
		near(t, "low", large.Low, 0.04*c.low, 0.04*0.04)
		if beyond := c.watched < 5; beyond != (large.Quote == BeyondObservation) {
			t.Errorf("%d watched: %v", c.watched, large.Quote)
		}
		// What had no reuse in 2047 accesses misses in a cache that is full by then.
		if c.watched > 0 && small.Low < 0.04*0.6 {
			t.Errorf("a cache that was seen full: %+v", small)
		}
	}
}

// Of uses that were not watched it is known how many blocks were touched as far as was read ahead: they miss in caches of as
// many, however few of them were followed for longer.
func TestSurelyFar(t *testing.T) {
	for _, seen := range []uint64{0, 500, 2000} {
		p := testProfile()
		for range 960 {
			p.Records = append(p.Records, rec(Reuse, 100, 5))
		}
		for range 40 {
			r := rec(Censored, 2048, 5)
			r.Distinct = seen
			p.Records = append(p.Records, r)
		}
		curve, err := p.MissRatios([]uint64{400, 1000, 10_000}, CurveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range curve.Points {
			sure := seen > q.Blocks
			if sure != (q.Quote == Quoted) || sure && (q.Low < 0.02 || q.High > 0.08) || !sure && q.Low > 0 {
				t.Errorf("%d blocks seen, at %d: %v %.4f [%.4f, %.4f]", seen, q.Blocks, q.Quote, q.MissRatio, q.Low, q.High)
			}
			near(t, "miss ratio", q.MissRatio, 0.04, 1e-9)
		}
	}
}

// A cache that holds all the program has misses only what is touched for the last time, or the first: once each block, however
// much was not seen reused. So say the curve, its band and what is derived of single records.
func TestLastUses(t *testing.T) {
	p := testProfile()
	p.Caches = []Cache{{Level: "L2", Size: 1000 * 64}, {Level: "L3", Size: 100_000 * 64}}
	p.Block, p.Resident = 64, 50_000*64
	for range 960 {
		p.Records = append(p.Records, rec(Reuse, 100, 1e6))
	}
	for range 40 {
		p.Records = append(p.Records, rec(Censored, 2048, 1e6))
	}
	for _, c := range []struct {
		touched     int64
		miss, above float64
	}{{0, 0.04, 0.05}, {60_000 * 64, 66e-6, 67e-6}, {1e15, 0.04, 0.05}} {
		p.Touched = c.touched
		curve, err := p.MissRatios([]uint64{1000, 100_000}, CurveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		small, large := curve.Points[0], curve.Points[1]
		near(t, "miss ratio of the small cache", small.MissRatio, 0.04, 1e-9)
		near(t, "miss ratio", large.MissRatio, c.miss, 1e-3*c.miss)
		if c.touched == 60_000*64 && large.High > c.above || c.touched != 60_000*64 && large.High < 0.04 {
			t.Errorf("touched %d: %+v", c.touched, large)
		}
		if err := p.Derive(); err != nil {
			t.Fatal(err)
		}
		sums := []float64{0, 0}
		for i := range p.Records {
			for k, m := range p.Records[i].Misses {
				sums[k] += m
			}
		}
		near(t, "misses of records", sums[0], small.Misses, 1e-6*small.Misses)
		near(t, "misses of records", sums[1], large.Misses, 1e-6*large.Misses)
	}
	// At the lowest rate possible there are fewer accesses, and as many last uses.
	p.Touched, p.Clock.Rate, p.Clock.RateLow = 60_000*64, 1, 0.5
	curve, err := p.MissRatios([]uint64{100_000}, CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if high := curve.Points[0].High; high < 131e-6 || high > 134e-6 {
		t.Errorf("at half the rate: up to %v", high)
	}
}
