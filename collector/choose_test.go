// Needs: nothing.
package collector

import (
	"errors"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
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

var (
	accesses     = sampler.Counted{Unit: sampler.Accesses, Events: []sampler.Event{{Label: "loads"}, {Label: "stores"}}}
	instructions = sampler.Counted{Unit: sampler.Instructions, Events: []sampler.Event{{Label: "instructions"}}}
)

func TestElapsed(t *testing.T) {
	s := (&sampling{src: sourceState{source: sampler.CPUClock{}}, timing: timing{clock: sampler.CPUTime()}}).wire()
	s.timing.calibration = sampler.TwoTrap{P10: 900, P50: 1000, P90: 1100}
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
		if native, below := s.timing.elapsed(tc.diff, tc.traps); native != tc.native || below != tc.below {
			t.Errorf("CPU time: %d after %v traps: %v, %v", tc.diff, tc.traps, native, below)
		}
	}
	// An exact counter: adjacent accesses are one apart.
	s = (&sampling{src: sourceState{source: sampler.CPUClock{}}, timing: timing{clock: sampler.CounterClock(accesses)}}).wire()
	s.timing.calibration = sampler.TwoTrap{P10: 1, P50: 1, P90: 1}
	for _, diff := range []uint64{1, 2, 1000} {
		if native, below := s.timing.elapsed(diff, 1); native != float64(diff) || below {
			t.Errorf("counter: %d: %v, %v", diff, native, below)
		}
	}
}

func TestNotes(t *testing.T) {
	s := (&sampling{src: sourceState{source: sampler.CPUClock{}}, timing: timing{clock: sampler.CPUTime()}}).wire()
	s.src.whySource = errors.Join(errors.New("no counter"), errors.Join(errors.New("no cycles")))
	got := strings.Join(s.notes(), "|")
	if want := "source: cpu-clock, because: no counter; no cycles|clock: cpu-time"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What goes by the block is settled once it is known whether that is a line: holds of lines may read farther where nothing is watched.
func TestChosenLines(t *testing.T) {
	for _, tc := range []struct {
		granularity  string
		burst, block int
		none         error
		farther      bool
	}{{Line, AutoBurst, 64, errors.ErrUnsupported, true}, {Line, AutoBurst, 64, nil, false}, {Word, AutoBurst, 8, errors.ErrUnsupported, false}, {Line, timedBurst, 64, errors.ErrUnsupported, false}} {
		s := (&sampling{cfg: Config{Granularity: tc.granularity, Burst: tc.burst}, locate: ahead.NewLocator(), src: sourceState{source: sampler.CPUClock{}}}).wire()
		s.holds.burst = timedBurst
		s.watches.none = tc.none
		s.holds.chooseLines()
		if s.holds.hot.Block != tc.block || s.holds.farther.Begun() != tc.farther {
			t.Errorf("%s, burst %d: blocks of %d, reads farther: %v", tc.granularity, tc.burst, s.holds.hot.Block, s.holds.farther.Begun())
		}
	}
}
