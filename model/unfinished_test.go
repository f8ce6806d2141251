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
