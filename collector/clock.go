package collector

import (
	"math"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// elapsed is the time between two readings of a thread's clock as the target
// alone would have taken, after so many traps of its watchpoints.
//
// Each trap took its share, which the calibration knows: by a counter, what it
// found above the one access that truly lay between. Even counters of user
// mode have such a share where they count speculation, or are read late.
func (s *Session) elapsed(diff uint64, traps float64) (native float64, below bool) {
	native = s.smeared(diff, traps)
	if res := max(s.calibration.Resolution(), 1); native < res {
		return res, true
	}
	return native, false
}

// smeared is elapsed with what two traps take by chance: it may be negative.
func (s *Session) smeared(diff uint64, traps float64) float64 {
	share := s.calibration.P50
	if s.clock.Counted != nil {
		share--
	}
	// Every other trap between was the first or the last of a watchpoint.
	return float64(diff) - share - (traps-1)*(share+s.calibration.Limit/2)
}

// clockModel is the clock as the profile states it.
func (s *Session) clockModel() model.Clock {
	return model.Clock{
		Name:       s.clock.Name,
		Unit:       s.clock.Unit,
		Rate:       s.rates.mean(),
		Touches:    s.touchesPerAccess(),
		RateSource: s.rates.source,
		Resolution: s.calibration.Resolution(),
	}
}

// touchesIn is how many touches of blocks there are in so many units of the clock.
func (s *Session) touchesIn(native float64) float64 {
	n := s.rates.accesses(native)
	if s.touched > 0 {
		n *= s.touchesPerAccess()
	}
	return n
}

// touchesOf is how many there are in so many units of the clock at the observation's time.
func (s *Session) touchesOf(o *observation, native float64) float64 {
	n := s.touchesIn(native)
	if o.pace > 0 {
		n *= o.pace
	}
	return n
}

// reading is one of a thread's clock.
type reading struct {
	now, lag uint64
	ok       bool
}

// read reads the clock in which the slot's watchpoint measures.
func (s *Session) read(t *thread, w *watch) reading {
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

// totals sum over threads that are gone.
type totals struct {
	cpu     uint64  // ns in which the thread ran, as far as ticks tell
	ticked  float64 // in the source's unit: the ticks' gaps added up
	unheld  float64 // of ticked: when nothing could hold the thread
	counted float64 // likewise: by the source's own count, 0 if it has none
	cut     float64 // likewise: counted at most in periods that made no tick
	clock   float64 // in the clock's unit
	tally   float64 // in its own
	tallied float64 // of ticked: of threads with a tally
	traps   uint64  // of watchpoints
	spent   uint64  // ns in their programs
	shared  uint64  // ns in which the source's counter was not counting
	blind   int     // threads of which it can't be told whether their source was throttled
	// throttles is how often the kernel stopped an event of the source, and stopped
	// for how many ns altogether, at most.
	throttles, stopped uint64
	unclock            int // threads whose clock could not be read
}

// total of the session so far, threads at work included. Of these, those of
// a counting clock need a system call each: details says whether to make it.
func (s *Session) total(details bool) totals {
	sum := s.gone
	for _, t := range s.threads {
		s.addTotals(t, &sum, details)
	}
	return sum
}

// addTotals adds what thread t did.
func (s *Session) addTotals(t *thread, sum *totals, details bool) {
	t.account()
	sum.ticked += float64(t.cpu)
	sum.unheld += float64(t.unheld)
	sum.traps += uint64(t.shared.Traps)
	sum.spent += t.shared.Spent
	if t.ticker == nil || s.source.Unit() == sampler.Nanoseconds {
		sum.cpu += t.cpu
	} else if counted, ran, lag, err := t.ticker.Count(); err != nil {
		sum.unclock++
	} else {
		sum.cpu += ran
		sum.shared += lag
		sum.counted += float64(counted)
	}
	throttles, stopped, known, err := t.ticker.Throttled()
	if err != nil || !known {
		sum.blind++
	}
	sum.throttles += throttles
	sum.stopped += stopped
	if !details {
		return
	}
	if t.tally != nil {
		if n, _, err := t.tally.Read(); err == nil {
			sum.tally += float64(n)
			sum.tallied += float64(t.cpu)
		}
	}
	if t.counter == nil {
		return
	}
	if n, _, err := t.counter.Read(s.kernel); err != nil {
		sum.unclock++
	} else {
		sum.clock += float64(n)
	}
}

// unheldTime is the CPU time, in ns, in which nothing could hold the threads.
func (sum totals) unheldTime() uint64 {
	return uint64(math.Round(float64(sum.cpu) * (sum.unheld / max(sum.ticked, 1))))
}

// perTally is how much of the source's unit goes with a count of the tallies, 0 if there
// are none.
func (sum totals) perTally() float64 {
	if sum.tally == 0 {
		return 0
	}
	return sum.tallied / sum.tally
}

// missed is how many ticks did not come for what was counted: throttled by the
// kernel, or given up by rdx beyond what it knows of.
func (sum totals) missed(gap float64) uint64 {
	return uint64(max((sum.counted-sum.ticked-sum.cut)/gap, 0))
}

// unsampled is how many accesses the clock counted that the source did not,
// beyond the difference of two counters: while it was throttled, or had no
// counter, it stood still.
func (s *Session) unsampled(sum totals) uint64 {
	if s.source.Unit() != sampler.Accesses || s.clock.Unit != sampler.Accesses || sum.counted == 0 {
		return 0
	}
	return uint64(max(sum.clock-sum.counted-counterTolerance*sum.clock, 0))
}

const counterTolerance = 0.02

// sourceRate is how many accesses go with a unit of the source: by the clock's
// count, if there is one.
func (s *Session) sourceRate(sum totals) float64 {
	switch {
	case s.source.Unit() == sampler.Accesses && sum.tally > 0:
		return 1 / sum.perTally() // it counts accesses, too
	case s.source.Unit() == sampler.Accesses && sum.counted > 0:
		// More than were sampled if ticks were throttled, or gaps given up.
		return sum.counted / max(sum.ticked, 1)
	case s.source.Unit() == sampler.Accesses:
		return 1
	case s.source.Unit() == s.clock.Unit:
		return s.rates.mean()
	case s.clock.Counted == nil:
		// Nanoseconds of CPU time to accesses, spread over the ticks.
		return s.rates.mean() * float64(sum.cpu) / max(sum.ticked, 1)
	}
	return s.rates.mean() * sum.clock / max(sum.ticked, 1)
}
