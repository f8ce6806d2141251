package estimate

import (
	"math"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// rated has a source, a clock and a rate.
func rated(source sampler.Source, clock sampler.Clock, rate float64) *stage {
	s := NewStage(Input{Unit: source.Unit(), Clock: clock})
	s.Rates.Settle(rate, clock)
	return s
}

// Whatever source and clock measure in, an observation's weight is accesses.
func TestSourceRate(t *testing.T) {
	sum := Totals{CPU: 1e9, Ticked: 4e8, Clock: 3e9}
	throttled := sum
	throttled.Counted, throttled.Tally, throttled.Tallied = 5e8, 9e8, 3e8 // of three threads in four
	for _, tc := range []struct {
		name   string
		source sampler.Source
		clock  sampler.Clock
		sum    Totals
		want   float64
	}{
		{"both the clock", sampler.CPUClock{}, sampler.CPUTime(), sum, 2},
		{"both accesses", sampler.NewPMUSource(counterOfAccesses), sampler.CounterClock(counterOfAccesses), sum, 1},
		{"accesses by the clock", sampler.NewPMUSource(counterOfAccesses), sampler.CPUTime(), sum, 1},
		{"accesses by the clock, throttled", sampler.NewPMUSource(counterOfAccesses), sampler.CPUTime(), throttled, 9e8 / 3e8},
		{"accesses counted, clock sampled", sampler.CPUClock{}, sampler.CounterClock(counterOfAccesses), sum, 3e9 / 4e8},
		{"cycles sampled, instructions counted", sampler.NewPMUSource(counterOfCycles), sampler.CounterClock(counterOfInstructions), sum, 2 * 3e9 / 4e8},
		{"cycles sampled, no counter", sampler.NewPMUSource(counterOfCycles), sampler.CPUTime(), sum, 2 * 1e9 / 4e8},
		{"cycles sampled, no counter, throttled", sampler.NewPMUSource(counterOfCycles), sampler.CPUTime(), throttled, 2 * 1e9 / 4e8},
	} {
		if got := rated(tc.source, tc.clock, 2).sourceRate(tc.sum); got != tc.want {
			t.Errorf("%s: %v accesses per unit, want %v", tc.name, got, tc.want)
		}
	}
}

func TestClockModel(t *testing.T) {
	s := rated(sampler.CPUClock{}, sampler.CounterClock(counterOfAccesses), 2)
	if m := s.ClockModel(); m.Unit != "accesses" || m.Rate != 1 || m.RateSource != "counted" || m.Name != "loads+stores" {
		t.Errorf("%+v", m)
	}
}

var (
	counterOfAccesses     = sampler.Counted{Unit: sampler.Accesses, Events: []sampler.Event{{Label: "loads"}, {Label: "stores"}}}
	counterOfInstructions = sampler.Counted{Unit: sampler.Instructions, Events: []sampler.Event{{Label: "instructions"}}}
	counterOfCycles       = sampler.Counted{Unit: sampler.Cycles, Events: []sampler.Event{{Label: "cycles"}}}
)

// Where the resident memory bounds the rate, holds that stand for time stand for as many accesses fewer; those that stand for
// accesses do not.
func TestBoundRateWeights(t *testing.T) {
	const lines, holds, lap = 1 << 14, 100, 1 << 20 // a list of 1 MiB, gone through in 64 ns a line; one access a ns is taken for it
	for unit, want := range map[string]bool{sampler.Nanoseconds: true, sampler.Accesses: false} {
		s := NewStage(Input{Unit: unit, Resident: 64 * lines})
		p := &model.Profile{Block: 64, BinsPerOctave: 16,
			Clock:   model.Clock{Unit: "nanoseconds", Rate: 1, RateSource: model.AssumedRate, RateLow: 0.01, RateHigh: 10},
			Touches: []model.Touch{{Accesses: 1000, Fetches: 500}}}
		for h := range uint64(holds) {
			p.Records = append(p.Records, model.Record{Kind: model.Reuse, Timing: model.Timing{Time: lap, Native: lap},
				Lookahead: model.Lookahead{After: 2000, Distinct: 2000}, Cluster: model.Cluster{Hold: h + 1}, Weight: model.Weight{Observations: 1, Accesses: 10}})
		}
		s.boundRate(p)
		all := 0.0
		for i := range p.Records {
			all += p.Records[i].Accesses
		}
		if p.Clock.Rate > 0.1 {
			t.Fatalf("the rate is %g", p.Clock.Rate)
		}
		times := 1.0
		if want {
			times = p.Clock.Rate
		}
		if math.Abs(all/(10*holds*times)-1) > 1e-9 || math.Abs(p.Touches[0].Accesses/(1000*times)-1) > 1e-9 || math.Abs(p.Touches[0].Fetches/(500*times)-1) > 1e-9 {
			t.Errorf("%s: %g accesses, %+v, want %g times as many as before", unit, all, p.Touches[0], times)
		}
	}
}
