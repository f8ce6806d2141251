package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/sampler"
)

// codePhase has a share of a program's time, in which blocks of code of its own take so many ns an access, each
// as many accesses.
type codePhase struct {
	time float64
	ns   []float64
}

// drawn is a session of so many probes and holds at random moments of the phases.
func drawn(r *rand.Rand, phases []codePhase, probes, holds int) *stage {
	s := NewStage(Input{Holds: make([]record.Hold, holds), Unit: sampler.Nanoseconds, PerHold: 1})
	p := new(target.Process)
	moment := func() (which, first int) {
		u := r.Float64()
		for u -= phases[0].time; u >= 0 && which < len(phases)-1; u -= phases[which].time {
			first += len(phases[which].ns)
			which++
		}
		return which, first
	}
	for i := range probes {
		which, first := moment()
		var accesses, ns float64
		like := math.Exp(.15 * r.NormFloat64()) // data differ, too
		for range 5 {
			x := Leg{Probe: i, Warm: true, Code: make(map[record.CodeBlock]float64)}
			for b, each := range phases[which].ns {
				x.Code[record.CodeBlock{Process: p, Number: uint64(first + b)}] = 1e5
				x.Accesses += 1e5
				x.Ns += 1e5 * each * like * math.Exp(ProbesSlow+.05*r.NormFloat64())
			}
			s.Rates.Legs = append(s.Rates.Legs, x)
			accesses, ns = accesses+x.Accesses, ns+x.Ns
		}
		s.Rates.Values = append(s.Rates.Values, accesses/ns)
	}
	e := &record.Epoch{Number: 1, Holds: holds, CPU: uint64(holds) * 10e6, Accepted: float64(holds)}
	for h := range holds {
		which, first := moment()
		all := 0.0
		for _, each := range phases[which].ns {
			all += each
		}
		b, u := 0, r.Float64()*all
		for u -= phases[which].ns[0]; u >= 0 && b < len(phases[which].ns)-1; u -= phases[which].ns[b] {
			b++
		}
		s.Seen = append(s.Seen, &record.Observation{Process: p, Epoch: e, Hold: h + 1, State: record.Done, Code: record.CodeBlock{Process: p, Number: uint64(first + b)}})
	}
	return s
}

// The interval stated holds the true mean over time in about 95 of 100 sessions, also where a phase
// of a tenth of the time makes several times as many accesses, and most sessions' probes are few or none in it.
func TestRateInterval(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	const draws = 50
	for _, c := range []struct {
		name   string
		phases []codePhase
		probes int
	}{
		{"one phase", []codePhase{{1, []float64{.5, .4, .6}}}, 6},
		{"a fast tenth, 5 probes", []codePhase{{.9, []float64{1, .8, 1.4}}, {.1, []float64{.2, .25}}}, 5},
		{"a fast tenth, 12 probes", []codePhase{{.9, []float64{1, .8, 1.4}}, {.1, []float64{.2, .25}}}, 12},
		{"a slow tenth, 5 probes", []codePhase{{.9, []float64{.3, .4}}, {.1, []float64{4, 6}}}, 5},
		{"halves, 5 probes", []codePhase{{.5, []float64{.3, .4}}, {.5, []float64{4, 6}}}, 5},
		{"halves, 12 probes", []codePhase{{.5, []float64{.3, .4}}, {.5, []float64{4, 6}}}, 12},
	} {
		truth := 0.0
		for _, p := range c.phases {
			all := 0.0
			for _, each := range p.ns {
				all += each
			}
			truth += p.time * float64(len(p.ns)) / all * math.Exp(square(.15)/2)
		}
		r := rand.New(rand.NewPCG(5, uint64(c.probes)))
		covered, coveredByProbes, width, local, assumed := 0, 0, 0.0, 0, 0
		for range draws {
			s := drawn(r, c.phases, c.probes, 250)
			s.fitLocal()
			if low, high := s.Rates.interval(); low <= truth && truth <= high {
				covered++
			}
			low, high := s.Rates.interval()
			width += math.Log(high/low) / 2 / draws
			if s.Rates.whole > 0 {
				local++
			}
			if min(s.Rates.error(), s.Rates.RelativeError()) > largestError {
				assumed++
			}
			if e := 1.96 * s.Rates.RelativeError(); math.Abs(s.Rates.measured()*math.Exp(ProbesSlow)/truth-1) <= e {
				coveredByProbes++
			}
		}
		t.Logf("%s: %d of %d intervals hold the truth, within a factor of %.2f on average; %d by the standard error of the probes; %d with local rates, %d too uncertain", c.name, covered, draws, math.Exp(width), coveredByProbes, local, assumed)
		if covered < 90*draws/100 {
			t.Errorf("want 90")
		}
	}
}
