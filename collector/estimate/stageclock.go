package estimate

import (
	"math"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// ClockModel is the clock as the profile states it.
func (s *stage) ClockModel() model.Clock {
	low, high := s.Rates.reach()
	within, misplaced := 0.0, 0.0
	if s.foretold != nil {
		misplaced = s.foretold.misplaced
	}
	if s.Rates.byCode() {
		misplaced = max(misplaced, s.misplacedByCode())
	}
	if s.foretold != nil && s.plainNS > 0 && !s.Rates.torn { // else how long accesses wait is not known
		within = s.foretold.within
	}
	waits, cold := s.waitsByRate(), s.lineCost()
	return model.Clock{
		WaitsLow:   waits.low,
		WaitsHigh:  waits.high,
		WaitsError: waits.off,
		PlainNS:    s.plainNS,
		WaitNS:     s.waitNS,
		WaitWithin: within,
		Misplaced:  misplaced,
		ColdNS:     cold.each,
		ColdWithin: cold.within,
		ColdByRate: cold.byRate,
		RateLow:    low,
		RateHigh:   high,
		Name:       s.Clock.Name,
		Unit:       s.Clock.Unit,
		Rate:       s.Rates.Mean(),
		Touches:    s.touchesPerAccess(),
		RateSource: s.Rates.Source,
		Resolution: s.Calibration.Resolution(),
	}
}

// nearError is the standard error, as a logarithm, of what the model says that code takes whose lines are near.
const nearError = 0.25

// waitsByRate is between what shares of the time in user mode data are waited for, with 95 %, by how much slower the program is than the
// model says of code whose lines are near, and the standard error of the logarithm of that.
type waitsByRate struct{ low, high, off float64 }

// waitsByRate is 0 where no model tells, and of a draft, which nobody asks.
func (s *stage) waitsByRate() (w waitsByRate) {
	r := &s.Rates
	if s.foretold == nil || s.bare || !(r.settled > 0) || !(r.likely.low > 0) {
		return w
	}
	w.off = math.Hypot(r.likely.spread(), nearError)
	factor := math.Exp(1.96 * w.off)
	rate := math.Exp(r.likely.middle())
	w.low, w.high = s.foretold.waiting(rate*factor), s.foretold.waiting(rate/factor)
	return w
}

// touchesIn is how many touches of blocks there are in so many units of the clock.
func (s *stage) touchesIn(native float64) float64 {
	n := s.Rates.perUser() * s.Rates.modes.userTime(native)
	if s.touched > 0 {
		n *= s.touchesPerAccess()
	}
	return n
}

// touchesOf is how many there are in so many units of the clock at the observation's time.
func (s *stage) touchesOf(o *record.Observation, native float64) float64 {
	n := s.touchesIn(native)
	if o.Pace > 0 {
		n *= o.Pace
	}
	return n
}

// sourceRate is how many accesses go with a unit of the source: by the clock's
// count, if there is one.
func (s *stage) sourceRate(sum Totals) float64 {
	switch {
	case s.Unit == sampler.Accesses && sum.Tally > 0:
		return 1 / sum.PerTally() // it counts accesses, too
	case s.Unit == sampler.Accesses && sum.Counted > 0:
		// More than were sampled if ticks were throttled, or periods given up.
		return sum.Counted / max(sum.Ticked, 1)
	case s.Unit == sampler.Accesses:
		return 1
	case s.Unit == s.Clock.Unit: // ticks fall on user mode
		return s.Rates.perUser()
	case s.Clock.Counted == nil:
		// Nanoseconds of CPU time to accesses, spread over the ticks.
		return s.Rates.Mean() * float64(sum.CPU) / max(sum.Ticked, 1)
	}
	return s.Rates.Mean() * sum.Clock / max(sum.Ticked, 1)
}
