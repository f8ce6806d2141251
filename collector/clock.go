package collector

import (
	"time"

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
