package collector

import (
	"time"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/sampler"
)

// timing is how time is told: the clock, what rdx's own traps take of it, and how long holds took.
// It belongs to the tracing thread.
type timing struct {
	kernel *sampler.Kernel

	clock       sampler.Clock
	calibration sampler.TwoTrap
	calibrated  time.Duration // when the constant was measured last
	tickCost    float64       // of the CPU clock, ns; 0: could not be measured
	resumes     durations     // waits to run again after a hold
	busy        bool          // no processor was idle, when it was looked last
	held        durations
	interrupts  durations // from ticks to the interrupts that hold
	wakes       durations // of the tracing thread, for a hold
}

// elapsed is the time between two readings of a thread's clock as the target
// alone would have taken, after so many traps of its watchpoints.
//
// Each trap took its share, which the calibration knows: by a counter, what it
// found above the one access that truly lay between. Even counters of user
// mode have such a share where they count speculation, or are read late.
func (s *timing) elapsed(diff uint64, traps float64) (native float64, below bool) {
	native = s.smeared(diff, traps)
	if res := max(s.calibration.Resolution(), 1); native < res {
		return res, true
	}
	return native, false
}

// smeared is elapsed with what two traps take by chance: it may be negative.
func (s *timing) smeared(diff uint64, traps float64) float64 {
	share := s.calibration.P50
	if s.clock.Counted != nil {
		share--
	}
	// Every other trap between was the first or the last of a watchpoint.
	return float64(diff) - share - (traps-1)*(share+s.calibration.Limit/2)
}

// reading is one of a thread's clock.
type reading struct {
	now, lag uint64
	ok       bool
}

// read reads the clock in which the slot's watchpoint measures.
func (s *timing) read(t *thread, w *watch) reading {
	var r reading
	var err error
	if t.counter == nil {
		r.now, err = w.point.Age()
	} else {
		r.now, r.lag, err = t.counter.Read(s.kernel)
	}
	r.ok = err == nil
	return r
}

// since is how long before the reading a use was; ok is false if that cannot
// be told.
func (r reading) since(use, lag uint64) (age uint64, ok bool) {
	return r.now - use, r.ok && r.now >= use && r.lag == lag
}

// total of the session so far, threads at work included. Of these, those of
// a counting clock need a system call each: details says whether to make it.
func (s *sampling) total(details bool) estimate.Totals {
	sum := s.ticks.gone
	for _, t := range s.targets.threads {
		s.addTotals(t, &sum, details)
	}
	return sum
}

// addTotals adds what thread t did.
func (s *sampling) addTotals(t *thread, sum *estimate.Totals, details bool) {
	t.account()
	sum.Ticked += float64(t.cpu)
	sum.Unheld += float64(t.unheld)
	sum.Traps += uint64(t.shared.Traps)
	sum.Spent += t.shared.Spent
	if t.ticker == nil || s.src.source.Unit() == sampler.Nanoseconds {
		sum.CPU += t.cpu
	} else if counted, ran, lag, err := t.ticker.Count(); err != nil {
		sum.Unclock++
	} else {
		sum.CPU += ran
		sum.Shared += lag
		sum.Counted += float64(counted)
	}
	throttles, stopped, known, err := t.ticker.Throttled()
	if err != nil || !known {
		sum.Blind++
	}
	sum.Throttles += throttles
	sum.Stopped += stopped
	if !details {
		return
	}
	if t.tally != nil {
		if n, _, err := t.tally.Read(); err == nil {
			sum.Tally += float64(n)
			sum.Tallied += float64(t.cpu)
		}
	}
	if t.counter == nil {
		return
	}
	if n, _, err := t.counter.Read(s.kernel); err != nil {
		sum.Unclock++
	} else {
		sum.Clock += float64(n)
	}
}

// unsampled is how many accesses the clock counted that the source did not,
// beyond the difference of two counters: while it was throttled, or had no
// counter, it stood still.
func (s *sampling) unsampled(sum estimate.Totals) uint64 {
	if s.src.source.Unit() != sampler.Accesses || s.timing.clock.Unit != sampler.Accesses || sum.Counted == 0 {
		return 0
	}
	return uint64(max(sum.Clock-sum.Counted-counterTolerance*sum.Clock, 0))
}

const counterTolerance = 0.02
