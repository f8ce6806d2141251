package estimate

import (
	"math"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
)

// What is possible follows from the instructions of an access, and from how many accesses may wait.
func TestPossibleRates(t *testing.T) {
	s := NewStage(Input{Holds: []record.Hold{{Accesses: 1000, Instructions: 2000}, {Accesses: 1000, Instructions: 4000}, {}}})
	for i := range 20 {
		o := &record.Observation{Hold: 1 + i%2, Soon: 1}
		if i == 0 {
			o.Soon = 0
		}
		s.Seen = append(s.Seen, o)
	}
	got := s.possibleRates()
	// An access has 2 or 4 instructions; one of 20 may wait.
	if want := (0.5 + 0.25) / 2 * fastInstructions; math.Abs(got.high/want-1) > 1e-9 {
		t.Errorf("fastest %g, want %g", got.high, want)
	}
	if want := 1 / (2/(0.5+0.25)/slowInstructions + farNS/20.); math.Abs(got.low/want-1) > 1e-9 {
		t.Errorf("slowest %g, want %g", got.low, want)
	}
	if got := NewStage(Input{}).possibleRates(); got != (rateRange{}) {
		t.Errorf("of nothing %v", got)
	}
}

// Where probes are few or none the rate is what the instructions let expect, never a number without an
// interval; where there are more it is theirs.
func TestWeighedRates(t *testing.T) {
	possible := rateRange{0.2, 4}
	for _, c := range []struct {
		name      string
		values    []float64
		possible  rateRange
		modelled  bool
		source    string
		low, high float64 // that the rate lies between
		holds     []float64
		failed    int // further probes
	}{
		{"nothing", nil, rateRange{}, false, "default", 1, 1, nil, 0},
		{"instructions", nil, possible, false, "estimated", 0.89, 0.9, []float64{0.21, 3.9}, 0},
		{"one probe beside them", []float64{2}, possible, false, "estimated", 0.9, 2, []float64{0.5, 3}, 0},
		{"one that contradicts them", []float64{60}, possible, false, "estimated", 0.9, 60, []float64{0.9, 30}, 0},
		{"one that contradicts the model", []float64{0.01}, rateRange{2, 8}, true, "estimated", 3.9, 4.1, []float64{1.5, 11}, 0},
		{"few that contradict the model", []float64{.015, .016, .017, .018, .015}, rateRange{.4, 1.6}, true, "estimated", .02, .8, []float64{.016, .5, 1.5}, 0},
		{"a few that contradict the model, of many that failed", []float64{.015, .016, .017, .018, .015}, rateRange{.4, 1.6}, true, "estimated", .79, .81, []float64{.3, 2.1}, 40},
		{"two of many that failed", []float64{.00002, .00003}, rateRange{2, 8}, true, "estimated", 3.9, 4.1, []float64{1.5, 11}, 50},
		{"two that make much less than the model has", []float64{.171, .22}, rateRange{.447, 1.76}, true, "estimated", .5, .85, []float64{.25, 1.7}, 1},
		{"of slow code, as others failed", []float64{2.2, 2.1, 2, 2.3, 2.2, 2.1, 2, 2.3, 2.2, 2.1, 2, 2.3, 2.2, 2.1}, rateRange{4, 12}, true, "estimated", 3, 5, []float64{2, 5.4, 6}, 22},
		{"many probes", []float64{1.9, 2, 2.1, 2, 1.9, 2, 2.1, 2}, rateRange{0.4, 10}, false, "measured", 1.9, 2.1, []float64{1.4, 2.7}, 0},
		{"many that contradict them", []float64{19, 20, 21, 20, 19, 20, 21, 20}, possible, false, "measured", 19, 21, []float64{19, 21}, 0},
	} {
		r := Rates{Probes: Probes{Values: behindHolds(c.values...), Failed: map[model.Reason]int{"went another way": c.failed}}, possible: c.possible, modelled: c.modelled}
		r.Settle(0, sampler.CPUTime())
		low, high := r.reach()
		if r.Source != c.source || !(r.Mean() >= c.low && r.Mean() <= c.high) || !(low <= r.Mean() && r.Mean() <= high) {
			t.Errorf("%s: %q, %.3g within [%.3g, %.3g]", c.name, r.Source, r.Mean(), low, high)
		}
		for _, x := range c.holds {
			if x < low || x > high {
				t.Errorf("%s: [%.3g, %.3g] does not hold %g", c.name, low, high, x)
			}
		}
	}
}

// behindHolds is what probes find where so many accesses a nanosecond are made.
func behindHolds(rates ...float64) (found []float64) {
	for _, r := range rates {
		found = append(found, r*math.Exp(-ProbesSlow))
	}
	return found
}

// A few probes are believed against the model where by that all code is as fast: there is no other that they did not meet. Where it is
// not, they may have met one kind only.
func TestWeighedAlike(t *testing.T) {
	for _, c := range []struct {
		slow   int // windows that are ten times as slow
		source string
		high   float64
	}{{0, measuredRate, 4.5}, {10, estimatedRate, 14}} {
		windows := map[int]foretoldWindow{}
		for i := range 40 {
			near := 140.
			if i < c.slow {
				near *= 10
			}
			windows[i] = foretoldWindow{times: &pipeline.Times{Accesses: 1000, Near: near}}
		}
		r := Rates{Probes: Probes{Values: behindHolds(2.8, 2.9, 2.7, 3, 2.8)}, possible: rateRange{3.5, 14}, modelled: true, alike: foretoldOf(windows).alike()}
		r.Settle(0, sampler.CPUTime())
		if low, high := r.reach(); r.Source != c.source || low > 2.5 || high < 3.2 || high > c.high {
			t.Errorf("%d slow windows: %q, [%.3g, %.3g]", c.slow, r.Source, low, high)
		}
	}
}
