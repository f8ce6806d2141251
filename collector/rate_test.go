package collector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/sampler"
)

// Noise of the clock must not raise the mean rate: the mean of 1/T does.
func TestRateIsUnbiased(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 1))
	var rs rates
	p := &process{}
	const sigma, ns, accesses = 60, 500, 1000
	for range 20000 {
		rs.add(&stretch{process: p, pc: 0x1000, accesses: accesses}, ns+sigma*r.NormFloat64(), sigma)
	}
	rs.settle(0, sampler.CPUTime())
	if got := rs.mean(); math.Abs(got-2) > 0.02 || rs.source != "measured" {
		t.Errorf("seed %d: rate %v (%s), want 2", seed, got, rs.source)
	}
	if e := rs.relativeError(); e <= 0 || e > 0.01 {
		t.Errorf("relative error %v", e)
	}
}

func TestRateSettles(t *testing.T) {
	few := rates{}
	few.add(&stretch{accesses: 1000}, 500, 1)
	for _, c := range []struct {
		r      rates
		flag   float64
		clock  sampler.Clock
		source string
		mean   float64
	}{
		{rates{}, 0, sampler.CPUTime(), "default", DefaultAccessRate},
		{few, 0, sampler.CPUTime(), "default", DefaultAccessRate},
		{few, 3, sampler.CPUTime(), "flag", 3},
		{rates{}, 3, sampler.CounterClock(accesses), "counted", 1},
		{rates{}, 0, sampler.CounterClock(instructions), "default", defaultPerInstruction},
	} {
		c.r.settle(c.flag, c.clock)
		if c.r.source != c.source || c.r.mean() != c.mean {
			t.Errorf("%s, flag %v: %v (%s), want %v (%s)", c.clock.Name, c.flag, c.r.mean(), c.r.source, c.mean, c.source)
		}
	}
}

func TestRateTooShort(t *testing.T) {
	var rs rates
	rs.add(&stretch{accesses: 100}, 30, 10)
	rs.add(&stretch{accesses: 100}, -5, 10)
	if rs.noise != 2 || rs.all.n != 0 {
		t.Errorf("%+v", rs)
	}
}

// A place's own rate counts the more, the more often it was measured; far from
// the sample in time, the mean does.
func TestLocalRate(t *testing.T) {
	var rs rates
	p := &process{}
	for range 1000 {
		rs.add(&stretch{process: p, pc: 0x1000, accesses: 1000}, 250, 1)
		rs.add(&stretch{process: p, pc: 0x9000, accesses: 1000}, 1000, 1)
	}
	rs.add(&stretch{process: p, pc: 0x5000, accesses: 1000}, 100_000, 1)
	rs.settle(0, sampler.CPUTime())
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 0.02*want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("mean", rs.mean(), 2.5)
	near("fast place", rs.at(p, 0x1abc), 4)
	near("slow place", rs.at(p, 0x9abc), 1)
	near("place measured once", rs.at(p, 0x5000), (0.01+localPrior*2.5)/(1+localPrior))
	near("unknown place", rs.at(p, 0x7000), 2.5)
	near("soon", rs.accesses(p, 0x1000, 100), 400)
	near("late", rs.accesses(p, 0x1000, 1e9), 2.5e9)
}
