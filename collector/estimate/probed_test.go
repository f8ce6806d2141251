// Needs: nothing.
package estimate

import (
	"math"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
)

// Of holds in code that probes came by these tell how long it waits, as far as the model of the processor is less sure; of others, and
// where all is weighed by the code's rates, it is the model's.
func TestProbedHolds(t *testing.T) {
	process := &target.Process{}
	list, other := record.CodeAt(process, 0x1000), record.CodeAt(process, 0x2000)
	epoch := &record.Epoch{CPU: 1e9, Accepted: 10}
	saw := func(hold int, at record.CodeBlock, n float64) *record.Observation {
		return &record.Observation{Hold: hold, Process: process, Code: at, State: record.Done, Stands: n, Epoch: epoch}
	}
	s := &stage{Input: Input{Seen: []*record.Observation{saw(1, list, 8), saw(2, other, 8), saw(3, list, 6), saw(3, other, 2)}}}
	if got := s.probedHolds(); got != nil {
		t.Errorf("without probes: %v", got)
	}
	s.Rates.local = &localRates{index: map[record.CodeBlock]int{list: 0}, ns: []float64{80}, off: []float64{0.1}, firm: 10, timesOff: 0.2}
	got := s.probedHolds()
	if want := math.Hypot(math.Hypot(0.1, 0.2), coldProbes); len(got) != 1 || math.Abs(got[1].ns-80*math.Exp(-ProbesSlow)) > 1e-9 || math.Abs(got[1].off-want) > 1e-9 {
		t.Errorf("%v, want hold 1 alone, of 80 ns behind a hold, within %.3g", got, want)
	}
	s.Rates.whole, s.Rates.localError = 1, modelError/2
	if got := s.probedHolds(); got != nil {
		t.Errorf("where observations are weighed by their code: %v", got)
	}

	sure, unsure := probed{80, 0.01}, probed{80, 10}
	for _, c := range []struct {
		probed
		ns, off float64
	}{{sure, 80, 0.01}, {unsure, 10, modelError}, {probed{}, 10, modelError}, {probed{40, modelError}, 20, modelError / math.Sqrt2}} {
		if ns := c.toward(10); math.Abs(ns/c.ns-1) > 0.01 || math.Abs(c.error()/c.off-1) > 0.01 {
			t.Errorf("the model says 10 ns, probes %v: %.3g within %.3g, want %.3g within %.3g", c.probed, ns, c.error(), c.ns, c.off)
		}
	}
}

// Behind holds code that waits is told to wait longer. Where all code is as fast that makes no difference to the ratios.
func TestMisplacedByCode(t *testing.T) {
	process := &target.Process{}
	s := &stage{}
	for i, rate := range []float64{1, 1, 1, 1} {
		s.Seen = append(s.Seen, &record.Observation{Hold: i + 1, State: record.Done, Rate: rate, Code: record.CodeAt(process, 0), Epoch: &record.Epoch{CPU: 1e9, Accepted: 4}})
	}
	if got := s.misplacedByCode(); got != 1 {
		t.Errorf("all as fast: within %v", got)
	}
	s.Seen[0].Rate, s.Seen[1].Rate = 0.01, 0.01
	if got, want := s.misplacedByCode(), math.Exp(1.96*coldProbes); math.Abs(got-want) > 1e-9 {
		t.Errorf("half a hundred times as fast: within %v, want %v", got, want)
	}
}
