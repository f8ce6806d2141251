package model

import (
	"math"
	"slices"
	"testing"
)

// around is a profile of a list of so many lines, each touched twice, at a rate that is assumed: the second touch
// comes at once, the first one lap later, in ns.
func around(lines int, lap, rate float64) *Profile {
	p := &Profile{Block: 64, BinsPerOctave: 16, Resident: int64(lines)*64 + 1<<20,
		Clock: Clock{Unit: "nanoseconds", Rate: rate, RateSource: AssumedRate, RateLow: 0.01, RateHigh: 10}}
	for h := range 200 {
		p.Records = append(p.Records,
			Record{Kind: Reuse, Timing: Timing{Exact: true, Time: 1}, Lookahead: Lookahead{Distinct: 1}, Cluster: Cluster{Hold: uint64(h + 1)}, Weight: Weight{Observations: 1, Accesses: 1}},
			Record{Kind: Reuse, Timing: Timing{Time: uint64(lap * rate)}, Lookahead: Lookahead{After: 2000, Distinct: 1000}, Cluster: Cluster{Hold: uint64(h + 1)}, Weight: Weight{Observations: 1, Accesses: 1}})
	}
	return p
}

// A list of 8 MiB at 0.1 accesses a nanosecond, where 1 is assumed: the laps would go through 80 MiB, which
// the program does not have.
func TestRateCeiling(t *testing.T) {
	const lines = 1 << 17
	p := around(lines, 2*lines/0.1, 1)
	rate, ok, err := p.RateCeiling(10)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	near(t, "ceiling", rate, 0.1*residentSlack*9/8*math.Exp(distanceError), 0.01)
	factor, err := p.BoundRate()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "factor", factor, rate, 1e-9)
	near(t, "rate", p.Clock.Rate, rate, 1e-9)
	near(t, "highest", p.Clock.RateHigh, rate, 1e-9)
	c, err := p.MissRatios([]uint64{1 << 9, 1 << 19}, CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.5, 0} {
		near(t, "miss ratio", c.Points[i].MissRatio, want, 1e-6)
	}
	if q := c.Points[1]; q.High > 0.02 {
		t.Errorf("a cache that holds all of it misses up to %v", q.High)
	}
	// Of a faster one the same memory says nothing.
	if _, ok, err := around(lines, 2*lines/0.1, 0.001).RateCeiling(0.05); ok || err != nil {
		t.Errorf("bounded though all of it is less than what is resident: %v", err)
	}
}

// A ceiling below all that the rate may be leaves it as unsure as it was, below the ceiling.
func TestRateCeilingContradicts(t *testing.T) {
	const lines = 1 << 17
	p := around(lines, 2*lines/0.1, 1)
	p.Clock.RateLow, p.Clock.RateHigh = 0.5, 2
	if _, err := p.BoundRate(); err != nil {
		t.Fatal(err)
	}
	c := p.Clock
	if c.Rate != c.RateHigh || c.RateHigh > 0.3 || c.RateLow > 0.51*c.RateHigh {
		t.Errorf("the rate is %.3g [%.3g, %.3g], want an interval below a ceiling of some 0.2", c.Rate, c.RateLow, c.RateHigh)
	}
}

// TestRateCeilingOfColdCaches: a lap of 4 MiB takes several times as long after a hold, when each line comes from memory. That says
// nothing against the rate, by which a lap would have that much more data between its touches.
func TestRateCeilingOfColdCaches(t *testing.T) {
	const lines, lap = 1 << 16, 600_000
	cold := func(within float64) *Profile {
		p := around(lines, lap/1.4, 1) // as if lines that are fetched again took two sevenths of the time
		p.Clock.RateSource, p.Clock.RateLow, p.Clock.RateHigh = "measured", 0.7, 1.5
		p.Clock.ColdNS, p.Clock.ColdWithin = 0.4, within
		for i := range p.Records {
			if r := &p.Records[i]; !r.Exact {
				r.Native = lap
			}
		}
		return p
	}
	p := cold(30)
	if factor, err := p.BoundRate(); err != nil || factor != 1 || p.Clock.RateLow != 0.7 || p.Clock.RateHigh != 1.5 {
		t.Errorf("%v; the rate is %.3g [%.3g, %.3g], want it as it was: 1 [0.7, 1.5]", err, p.Clock.Rate, p.Clock.RateLow, p.Clock.RateHigh)
	}
	p = cold(1.1) // known so well that caches are not what it is
	if _, err := p.BoundRate(); err != nil || p.Clock.RateHigh > 0.75 {
		t.Errorf("%v; the rate is %.3g [%.3g, %.3g], want it bounded", err, p.Clock.Rate, p.Clock.RateLow, p.Clock.RateHigh)
	}
}

// The fewer holds have met a long reuse, the less it bounds the rate.
func TestRateCeilingOfFew(t *testing.T) {
	const lines = 1 << 17
	ceiling := func(holds int) float64 { // of as many accesses, met in so many holds of 200
		p := around(lines, 2*lines/0.1, 1)
		p.Records = slices.DeleteFunc(p.Records, func(r Record) bool { return !r.Exact && r.Hold > uint64(holds) })
		for i := range p.Records {
			if r := &p.Records[i]; !r.Exact {
				r.Accesses = 4 / float64(holds)
			}
		}
		rate, ok, err := p.RateCeiling(1000)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return rate
	}
	few, many := ceiling(4), ceiling(100)
	if few < 1.5*many || few > 3.5*many {
		t.Errorf("4 holds bound the rate by %.3g, 100 by %.3g", few, many)
	}
}

// Where code that waits may be found too often, the rate is bounded by what goes by if it waits as long as it may.
func TestRateCeilingOfWaits(t *testing.T) {
	const lines = 1 << 17
	ceiling := func(within float64) float64 {
		p := around(lines, 2*lines/0.1, 1)
		p.Clock.PlainNS, p.Clock.WaitNS, p.Clock.WaitWithin = 1, 10, within
		for i := range p.Records { // half of the holds, with all long reuses, are of code that waits
			r := &p.Records[i]
			if far := r.Hold%2 == 0; far {
				r.Open = 0.5
			} else if !r.Exact {
				r.Time = 1
				r.Exact = true
			}
		}
		rate, ok, err := p.RateCeiling(1000)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return rate
	}
	if sure, unsure := ceiling(1.001), ceiling(2.5); unsure < 1.3*sure || unsure > 3*sure {
		t.Errorf("bounded by %.3g, and by %.3g where waits are known within 2.5", sure, unsure)
	}
}

// No reuse has more data between its ends than the program has, nor misses where all of them fit, whatever the rate says.
func TestDistancesAreResident(t *testing.T) {
	const lines = 1 << 17
	p := around(lines, 2*lines/0.1, 1)
	p.Caches = []Cache{{Size: 32 << 10}, {Size: 64 << 20}}
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	for i := range p.Records {
		r := &p.Records[i]
		if r.Exact {
			continue
		}
		d, ok := r.MeanDistance()
		if !ok || d < 1<<20 || d > residentSlack*float64(p.Resident)+64 || !(r.Misses[0] > 0) || r.Misses[1] != 0 {
			t.Fatalf("%.0f bytes between, misses %v; the program has %d", d, r.Misses, p.Resident)
		}
	}
}

// Of a time in which n accesses are made at one a nanosecond, and 20 ns lost for each of sqrt(n) blocks, other rates leave room for more
// accesses or fewer, but not for as many times more as the rate: the blocks that these touch take their time, too.
func TestRateBesideColdCaches(t *testing.T) {
	const cold = 20
	for _, n := range []float64{500, 5000, 1e6} {
		native := n + cold*math.Sqrt(n)
		p := &Profile{Clock: Clock{Unit: "nanoseconds", Rate: 1, ColdNS: cold}, Records: []Record{{Kind: Reuse, Timing: Timing{Time: uint64(n), Native: uint64(native)}}}}
		for _, rate := range []float64{0.3, 0.9, 1, 1.5, 4} {
			x := float64(p.atRate(rate).Records[0].Time)
			near(t, "time that it takes", x/rate+cold*math.Sqrt(x), native, 0.01*native)
		}
		// Laps of 100 accesses to 100 blocks have told the cost, as what is left of 2,100 ns: a rate that is higher leaves more for it.
		p.Clock.ColdByRate = 1.0 / cold
		for _, rate := range []float64{0.5, 2, 4} {
			x := float64(p.atRate(rate).Records[0].Time)
			near(t, "time beside laps", x/rate+(2100-100/rate)/100*math.Sqrt(x), native, 0.01*native)
		}
		p.Clock.ColdNS = 0
		near(t, "without", float64(p.atRate(4).Records[0].Time), 4*n, 1)
	}
}
