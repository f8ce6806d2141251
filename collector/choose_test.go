// Needs: nothing.
package collector

import (
	"errors"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

func TestCheckChoice(t *testing.T) {
	for _, tc := range []struct {
		source, clock, grain, stack, err string
	}{
		{"", "", "", "", ""},
		{Auto, Auto, Auto, OwnStack, ""},
		{PMU, PMU, "", "", ""},
		{Clock, CPUTime, "", "", ""},
		{PEBS, PMU, "", "", ""},
		{IBS, "", Word, OwnStack, ""},
		{PEBS, "", Line, "", "a line can't be watched"},
		{IBS, "", Line, "", "a line can't be watched"},
		{PEBS, "", "", SharedStack, "other threads can't be watched"},
		{IBS, "", Word, BothStacks, "other threads can't be watched"},
		{"spe", "", "", "", "unknown source"},
		{"", "clock", "", "", "unknown clock"},
	} {
		c := Config{PID: 1, Burst: AutoBurst, Source: tc.source, Clock: tc.clock, Granularity: tc.grain, Stack: tc.stack}
		err := c.setDefaults()
		var bad BadConfig
		if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || !errors.As(err, &bad)) {
			t.Errorf("%q: %v, want %q", tc, err, tc.err)
		}
	}
}

// What is asked for by name is refused where it can't be had.
func TestChooseInterrupt(t *testing.T) {
	for source, want := range map[string]bool{Auto: true, Clock: true, PMU: true, PEBS: false, IBS: false} {
		c := Config{PID: 1, Source: source, Interrupt: true}
		if err := c.setDefaults(); (err == nil) != (want && ptrace.MendsSyscalls) {
			t.Errorf("interrupts with source %s: %v", source, err)
		}
	}
}

// Of an access that its source reports nothing is read ahead, which a line takes.
func TestChooseLines(t *testing.T) {
	c := Config{PID: 1, Burst: AutoBurst}
	if err := c.setDefaults(); err != nil {
		t.Fatal(err)
	}
	for reports, want := range map[sampler.Report]bool{
		sampler.NoAccess: true, sampler.AtAccess: false, sampler.AfterAccess: false,
	} {
		if got := c.chooseLines(reports); got != want {
			t.Errorf("lines %t with report %d, want %t", got, reports, want)
		}
	}
}

func session(source sampler.Source, clock sampler.Clock, rate float64) *Session {
	s := &Session{source: source, clock: clock}
	s.rates.settle(rate, clock)
	return s
}

var (
	accesses     = sampler.Counted{Unit: sampler.Accesses, Events: []sampler.Event{{Label: "loads"}, {Label: "stores"}}}
	instructions = sampler.Counted{Unit: sampler.Instructions, Events: []sampler.Event{{Label: "instructions"}}}
	cycles       = sampler.Counted{Unit: sampler.Cycles, Events: []sampler.Event{{Label: "cycles"}}}
)

// Whatever source and clock measure in, an observation's weight is accesses.
func TestSourceRate(t *testing.T) {
	sum := totals{cpu: 1e9, ticked: 4e8, clock: 3e9}
	throttled := sum
	throttled.counted, throttled.tally, throttled.tallied = 5e8, 9e8, 3e8 // of three threads in four
	for _, tc := range []struct {
		name   string
		source sampler.Source
		clock  sampler.Clock
		sum    totals
		want   float64
	}{
		{"both the clock", sampler.CPUClock{}, sampler.CPUTime(), sum, 2},
		{"both accesses", sampler.NewPMUSource(accesses), sampler.CounterClock(accesses), sum, 1},
		{"accesses by the clock", sampler.NewPMUSource(accesses), sampler.CPUTime(), sum, 1},
		{"accesses by the clock, throttled", sampler.NewPMUSource(accesses), sampler.CPUTime(), throttled, 9e8 / 3e8},
		{"accesses counted, clock sampled", sampler.CPUClock{}, sampler.CounterClock(accesses), sum, 3e9 / 4e8},
		{"cycles sampled, instructions counted", sampler.NewPMUSource(cycles), sampler.CounterClock(instructions), sum, 2 * 3e9 / 4e8},
		{"cycles sampled, no counter", sampler.NewPMUSource(cycles), sampler.CPUTime(), sum, 2 * 1e9 / 4e8},
		{"cycles sampled, no counter, throttled", sampler.NewPMUSource(cycles), sampler.CPUTime(), throttled, 2 * 1e9 / 4e8},
	} {
		if got := session(tc.source, tc.clock, 2).sourceRate(tc.sum); got != tc.want {
			t.Errorf("%s: %v accesses per unit, want %v", tc.name, got, tc.want)
		}
	}
}

func TestElapsed(t *testing.T) {
	s := session(sampler.CPUClock{}, sampler.CPUTime(), 1)
	s.calibration = sampler.TwoTrap{P10: 900, P50: 1000, P90: 1100}
	for _, tc := range []struct {
		diff   uint64
		traps  float64
		native float64
		below  bool
	}{
		{51_000, 1, 50_000, false},
		{53_000, 3, 50_000, false}, // two traps of other slots
		{1_100, 1, 200, true},
		{900, 1, 200, true},
	} {
		if native, below := s.elapsed(tc.diff, tc.traps); native != tc.native || below != tc.below {
			t.Errorf("CPU time: %d after %v traps: %v, %v", tc.diff, tc.traps, native, below)
		}
	}
	// An exact counter: adjacent accesses are one apart.
	s = session(sampler.CPUClock{}, sampler.CounterClock(accesses), 1)
	s.calibration = sampler.TwoTrap{P10: 1, P50: 1, P90: 1}
	for _, diff := range []uint64{1, 2, 1000} {
		if native, below := s.elapsed(diff, 1); native != float64(diff) || below {
			t.Errorf("counter: %d: %v, %v", diff, native, below)
		}
	}
	if m := s.clockModel(); m.Unit != "accesses" || m.Rate != 1 || m.RateSource != "counted" || m.Name != "loads+stores" {
		t.Errorf("%+v", m)
	}
}

func TestNotes(t *testing.T) {
	s := session(sampler.CPUClock{}, sampler.CPUTime(), 1)
	s.whySource = errors.Join(errors.New("no counter"), errors.Join(errors.New("no cycles")))
	got := strings.Join(s.notes(), "|")
	if want := "source: cpu-clock, because: no counter; no cycles|clock: cpu-time"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
