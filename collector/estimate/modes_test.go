package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/sampler"
)

// TestUserTime: what is timed between two touches has the kernel's time in it, which comes at moments by chance.
func TestUserTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	for _, m := range []modes{{user: .2, each: 4e4, between: 1e4}, {user: .64, each: 2e3, between: 3.6e3}, {user: .9, each: 1e5, between: 9e5}} {
		type bin struct{ user, told, n float64 }
		bins := map[int]*bin{}
		for range 400_000 {
			user := math.Exp(rng.Float64() * math.Log(1e8)) // as many in each octave
			took := user
			for at := rng.ExpFloat64() * m.between; at < user; at += rng.ExpFloat64() * m.between {
				took += m.each
				if took > 1e9 {
					break
				}
			}
			b := int(2 * math.Log2(took))
			if bins[b] == nil {
				bins[b] = new(bin)
			}
			bins[b].user, bins[b].told, bins[b].n = bins[b].user+user, bins[b].told+m.userTime(took), bins[b].n+1
		}
		for i, b := range bins {
			if b.n > 2000 && i < 2*26 && math.Abs(math.Log(b.told/b.user)) > .2 {
				t.Errorf("%+v: of %.3g ns %.3g are user mode, told %.3g", m, math.Exp2(float64(i)/2), b.user/b.n, b.told/b.n)
			}
		}
	}
}

// TestModes: a program that is in the kernel for three quarters of its time, a time for each thousand accesses.
func TestModes(t *testing.T) {
	in := Input{Unit: sampler.Nanoseconds, Clock: sampler.CPUTime(), Modes: target.Modes{User: 1e9, Kernel: 3e9}, AccessRate: 1}
	for range 20 {
		in.Holds = append(in.Holds, record.Hold{Accesses: 1000, Instructions: 2000, Touches: 1000, End: record.SystemCall})
	}
	s := NewStage(in)
	s.settleRates()
	// The flag's rate is over all time.
	if got := s.Rates.Mean(); got != 1 {
		t.Errorf("%v accesses a ns, want 1, as given", got)
	}
	if got := s.touchesIn(1e8); math.Abs(got-1e8) > 1e6 {
		t.Errorf("%v touches in 1e8 ns, want 1e8", got)
	}
	if got := s.touchesIn(100); math.Abs(got-400) > 40 { // too short for a time in the kernel
		t.Errorf("%v touches in 100 ns, want 400", got)
	}
	if got := s.sourceRate(Totals{}); got != 4 {
		t.Errorf("%v accesses go with a ns of ticks, want 4: they fall on user mode", got)
	}

	in.AccessRate = 0
	foretold := s.possibleRates()
	s = NewStage(in)
	s.settleRates()
	// Caches are cold after each call: of the low end that is a part.
	cold := 1 + (150+s.Rates.modes.each/3)/s.Rates.modes.between
	if low, high := s.Rates.reach(); math.Abs(low*cold/foretold.low-.25) > .01 || math.Abs(high/foretold.high-.25) > .01 || !(cold > 1.5) {
		t.Errorf("between %v and %v accesses a ns of CPU time; between %v and %v of user mode", low, high, foretold.low, foretold.high)
	}
	for name, change := range map[string]func(*Input){
		"hardly any":        func(in *Input) { in.Modes.Kernel = 1e7 },
		"too short to tell": func(in *Input) { in.Modes = target.Modes{User: 1e7, Kernel: 3e7} },
		"counted":           func(in *Input) { in.Clock.Unit = sampler.Instructions },
	} {
		in := in
		change(&in)
		s := NewStage(in)
		if s.settleRates(); s.Rates.modes.inUser() != 1 || s.Rates.Mean() != s.Rates.perUser() {
			t.Errorf("%s: %v of the time is user mode", name, s.Rates.modes.inUser())
		}
	}

	// Where it is there for pages, probes have that in their time, and the model does not.
	in.Modes.Faults = 1e9
	for i := range in.Holds {
		in.Holds[i].End = "instruction limit"
	}
	in.Probes.Values = behindHolds(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	s = NewStage(in)
	s.settleRates()
	_, off := s.Rates.probed()
	possible := s.Rates.possible // has a part in it, as the errors say
	want := math.Exp(possible.middle() / (1 + square(possible.spread()/off)))
	if math.Abs(s.Rates.Mean()/want-1) > .01 || math.Abs(want-1) > .02 {
		t.Errorf("%v accesses a ns by probes that had the kernel's time in theirs, want %v", s.Rates.Mean(), want)
	}
}
