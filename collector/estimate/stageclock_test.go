package estimate

import (
	"testing"

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
