package collector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// Two threads that run at once, each in a cycle of its own: between a use and a reuse of one the
// other makes as many touches on average, now more and now less, and brings as many words as its cycle has, or as it has time for, and not as many as the
// one touches itself.
func TestSharedReadAhead(t *testing.T) {
	const far, near = 700, 4 // words
	p := &process{cpu: []cpuPoint{{0, 0}, {100e6, 200e6}}}
	e := &epoch{accepted: 1, cpu: 1}
	read := func(tid, cycle int) *observation {
		return &observation{process: p, tid: tid, epoch: e, state: done, kind: model.Reuse, stack: model.StackShared, soon: cycle, counted: cycle, distinct: cycle, end: 50e6}
	}
	for name, many := range map[string]int{"each thread by itself": leastFootprint, "all threads": leastFootprint - 1} {
		s := &Session{rand: rand.New(rand.NewPCG(1, 2))}
		s.rates.settle(1, s.clock)
		for range many {
			s.seen = append(s.seen, read(1, far), read(2, near))
		}
		s.feet = s.footprints()
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
				s.setSharedTime(&r, read(tid, cycle), perWall{})
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
	s := &Session{}
	p, e := &process{}, &epoch{accepted: 1, cpu: 1}
	for i := range 2 * leastFootprint {
		o := &observation{process: p, tid: 1, epoch: e, state: done, soon: 10, counted: 10}
		if i%2 == 0 {
			o.soon, o.counted, o.after = 0, 101, 100
		}
		s.seen = append(s.seen, o)
	}
	// Ten words, of which each is touched again after ten touches of ten, and each second one of
	// another that is not.
	if got := s.footprints().beside(&observation{process: p, tid: 2}, 100); got < 54.9 || got > 55.1 {
		t.Errorf("%v blocks in 100 touches, want 10 + 90/2", got)
	}
}
