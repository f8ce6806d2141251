package estimate

import (
	"math"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
)

// Two threads that run at once, each in a cycle of its own: between a use and a reuse of one the
// other makes as many touches on average, now more and now less, and brings as many words as its cycle has, or as it has time for, and not as many as the
// one touches itself.
func TestSharedReadAhead(t *testing.T) {
	const far, near = 700, 4 // words
	p := &target.Process{CPU: []target.CPUPoint{{Wall: 0, CPU: 0}, {Wall: 100e6, CPU: 200e6}}}
	e := &record.Epoch{Accepted: 1, CPU: 1}
	read := func(tid, cycle int) *record.Observation {
		return &record.Observation{Process: p, TID: tid, Epoch: e, State: record.Done, Kind: model.Reuse, Stack: model.StackShared, Soon: cycle, Counted: cycle, Distinct: cycle, Sharing: record.Sharing{End: 50e6}}
	}
	for name, many := range map[string]int{"each thread by itself": leastFootprint, "all threads": leastFootprint - 1} {
		s := NewStage(Input{Seed: 1})
		s.Rates.Settle(1, s.Clock)
		for range many {
			s.Seen = append(s.Seen, read(1, far), read(2, near))
		}
		s.foot = s.footprints()
		want := map[int]float64{far: far - 1 + near, near: near - 1 + near}
		if many < leastFootprint {
			// Of both together half of the words are far's, none of which comes again so soon.
			want = map[int]float64{far: far - 1 + (far+near)/2}
		}
		for tid, cycle := range map[int]int{1: far, 2: near} {
			if want[cycle] == 0 {
				continue
			}
			const draws = 4000
			var blocks, times, squares float64
			for range draws {
				var r model.Record
				s.setSharedTime(&r, read(tid, cycle), PerWall{})
				if !r.Exact || r.Distinct > r.Time {
					t.Fatalf("%s: %+v", name, r)
				}
				blocks += float64(r.Distinct-1) / draws
				others := float64(r.Time) - float64(cycle)
				times += others / draws
				squares += others * others / draws
			}
			if math.Abs(blocks-want[cycle]) > 0.02*want[cycle] {
				t.Errorf("%s: a cycle of %d: %.2f blocks in between, want %.2f", name, cycle, blocks, want[cycle])
			}
			// Poisson's variance is its mean.
			if v := squares - times*times; math.Abs(times/float64(cycle)-1) > 0.05 || math.Abs(v/times-1) > 0.15 {
				t.Errorf("%s: a cycle of %d: %.2f touches of the other thread, variance %.2f", name, cycle, times, v)
			}
		}
	}
}

// What had no reuse as far as was read ahead is touched for the first time for longer.
func TestFootprintOfUnfinished(t *testing.T) {
	s := NewStage(Input{})
	p, e := &target.Process{}, &record.Epoch{Accepted: 1, CPU: 1}
	for i := range 2 * leastFootprint {
		o := &record.Observation{Process: p, TID: 1, Epoch: e, State: record.Done, Soon: 10, Counted: 10}
		if i%2 == 0 {
			o.Soon, o.Counted, o.After = 0, 101, 100
		}
		s.Seen = append(s.Seen, o)
	}
	// Ten words, of which each is touched again after ten touches of ten, and each second one of
	// another that is not.
	if got := s.footprints().ofOthers(&record.Observation{Process: p, TID: 2}, 100); got < 54.9 || got > 55.1 {
		t.Errorf("%v blocks in 100 touches, want 10 + 90/2", got)
	}
}
