package estimate

import (
	"fmt"
	"math"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
)

// What was watched runs on in caches that have gone cold while its thread was held: lines that were near are fetched again from
// the last cache. A reuse that takes t then has come after n accesses with
//
//	t = n/rate + w fp(n),
//
// where fp(n) is how many blocks n accesses touch, but no more than the second cache has, as what is farther is fetched from the
// last one at any time; and w what fetching one of them again takes on average. The kernel comes by lines of its own: of what it takes as
// many as the program in that time.
type coldCaches struct {
	lineCost         // w
	laps     int     // that tell it, 0 if the processor's model does
	most     float64 // blocks of the second cache
	footfall *model.SSX
	modes    *modes
}

// coldShare of a fetch from the last cache is what a line costs that is touched again after a hold: some are still in the second cache
// or were not in the first before. 0.33 to 0.6 was measured on some machines, far more on others: docs/explanation/clock.md.
const coldShare = 0.5

// newColdCaches is of the profile as it would be; nil where it does not tell.
func (s *stage) newColdCaches(q *model.Profile, f *foretold) *coldCaches {
	fp, err := q.Footprint()
	if err != nil {
		return nil
	}
	c := &coldCaches{lineCost: lineCost{each: coldShare * f.coldLine(), within: coldWithin}, most: math.Inf(1), footfall: fp, modes: &s.Rates.modes}
	if cost, ok := coldByLaps(s.Laps, f, &q.Clock, c.each); ok {
		c.lineCost, c.laps = cost, len(s.Laps)
	}
	if last := len(q.Caches) - 1; last > 0 {
		c.most = float64(q.Caches[min(1, last)].Size) / float64(s.Block)
	}
	return c
}

// coldWithin is the factor within which coldShare of a fetch is right, with 95 %: 0.3 and 70 times that were seen.
const coldWithin = 30

// comment says what a block costs that is fetched again.
func (c *coldCaches) comment() string {
	if c == nil {
		return ""
	}
	by := "by that model"
	if c.laps > 0 {
		by = fmt.Sprintf("by %d laps that were timed behind holds", c.laps)
	}
	return fmt.Sprintf("; a block that is fetched again after a hold takes %.3g ns more, known within a factor of %.2g, %s", c.each, c.within, by)
}

// warm is how many touches came in so many ns after a hold. before is the number that follows from the rate alone.
func (c *coldCaches) warm(ns, before float64) float64 {
	if c == nil || !(ns > 0) || !(before > 1) {
		return before
	}
	perNS, all := before/ns, ns/c.modes.userTime(ns)
	low, high := 0.0, before
	for range 40 {
		n := (low + high) / 2
		blocks, _ := c.footfall.Mean(uint64(math.Round(max(all*n, 1))))
		if n/perNS+c.each*min(blocks, c.most) > ns {
			high = n
		} else {
			low = n
		}
		if high-low < 0.01*high {
			break
		}
	}
	return high
}

// timedTouches is how many touches of blocks an observation was timed to take.
func (s *stage) timedTouches(o *record.Observation, native float64) float64 {
	n := s.touchesOf(o, native)
	if s.foretold == nil || o.Stack != model.StackOwn {
		return n
	}
	return s.foretold.cold.warm(native, n)
}

// lineCost is what a line costs that is fetched again after a hold, nothing where nothing is taken for it.
func (s *stage) lineCost() lineCost {
	if s.foretold == nil || s.foretold.cold == nil || s.foretold.cold.each == 0 {
		return lineCost{}
	}
	return s.foretold.cold.lineCost
}
