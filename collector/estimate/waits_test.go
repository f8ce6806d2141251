package estimate

import (
	"math"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/sampler"
)

// halves is a session whose holds find, one after the other, code that waits for each tenth access and code that
// doesn't.
func halves(holds int) *stage {
	s := NewStage(Input{Unit: sampler.Nanoseconds, Clock: sampler.CPUTime(), PerHold: 1})
	e := &record.Epoch{Number: 1, CPU: 1e9, Accepted: float64(holds)}
	for h := range holds {
		s.Holds = append(s.Holds, record.Hold{Accesses: 1000, Instructions: 4500})
		near := record.Observation{Epoch: e, Hold: h + 1, State: record.Done, Stands: 1, Soon: 5}
		if h%2 == 0 {
			near.Stands = .9
			s.Seen = append(s.Seen, &record.Observation{Epoch: e, Hold: h + 1, State: record.Done, Stands: .1, After: 2000})
		}
		s.Seen = append(s.Seen, &near)
	}
	return s
}

// A hold in code that waits stands for the fewer accesses; where the rates of the code are known, or accesses are
// counted, for as many as these say.
func TestWeighByWaits(t *testing.T) {
	s := halves(10)
	s.weighByWaits()
	waits, runs := s.Seen[0].Fits, s.Seen[2].Fits
	if want := 1 / (1 + .1*openWait); math.Abs(waits/runs/want-1) > 1e-9 || math.Abs((waits+runs)/2-1) > 1e-9 {
		t.Errorf("holds stand for %.3g where they wait, %.3g where not; want %.3g of that, and 1 on average", waits, runs, want)
	}
	if s.Seen[0].Open != .1 || s.Seen[2].Open != 0 || s.plainNS != 1 {
		t.Errorf("open %v and %v, %v ns an access; want 0.1, 0 and 1", s.Seen[0].Open, s.Seen[2].Open, s.plainNS)
	}
	if m := s.ClockModel(); m.PlainNS != 1 || m.WaitNS != openWait {
		t.Errorf("the clock says %v and %v ns", m.PlainNS, m.WaitNS)
	}
	known := halves(10)
	known.Rates.Source, known.Rates.whole = measuredRate, 1
	known.weighByWaits()
	counted := halves(10)
	counted.Clock = sampler.CounterClock(sampler.Counted{Unit: sampler.Accesses})
	counted.weighByWaits()
	for _, s := range []*stage{known, counted} {
		if s.Seen[0].Fits != 0 || s.ClockModel().WaitNS != 0 {
			t.Errorf("holds are weighed by waits beside what is known")
		}
	}
}
