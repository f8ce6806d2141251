package collector

import (
	"fmt"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// timing is how time is told: the clock, what rdx's own traps take of it, and how long holds took.
// It belongs to the tracing thread.
type timing struct {
	account *account
	kept    *observations
	kernel  *sampler.Kernel
	targets *targets

	clock       sampler.Clock
	why         error // why no better clock, nil if it is the best
	health      clockHealth
	unread      uint64 // ticks of threads whose clock does not go on, since one's did
	calibration sampler.TwoTrap
	calibrated  time.Duration // when the constant was measured last
	tickCost    float64       // of the CPU clock, ns; 0: could not be measured
	resumes     durations     // waits to run again after a hold
	busy        bool          // no processor was idle, when it was looked last
	held        durations
	interrupts  durations // from ticks to the interrupts that hold
	wakes       durations // of the tracing thread, for a hold
}

// use is told what the clock is, and what a tick of CPU time costs, in ns.
func (s *timing) use(clock sampler.Clock, tickCost float64) { s.clock, s.tickCost = clock, tickCost }

// notBest is told why there is no better clock, nil if there is none.
func (s *timing) notBest(why error) { s.why = why }

// calibrate measures the constant of two traps.
func (s *timing) calibrate() (err error) {
	s.calibration, err = s.kernel.Calibrate(calibrations)
	return err
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

// noteBusy is told whether no processor is idle.
func (s *timing) noteBusy(busy bool) { s.busy = busy }

// between is the time from the use to a later trap.
func (s *timing) between(o *observation, trap *sampler.Trap) (native float64, below bool) {
	return s.elapsed(s.clockBetween(o, trap), float64(trap.Traps-o.traps))
}

// clockBetween is without what the programs of other traps took.
func (s *timing) clockBetween(o *observation, trap *sampler.Trap) uint64 {
	return s.withoutTraps(o, trap.Clock-o.useClock, trap.Spent)
}

// withoutTraps is a time since the use without what the programs of traps took of it, by when they had taken so much in all.
func (s *timing) withoutTraps(o *observation, since, spent uint64) uint64 {
	if s.clock.Counted != nil {
		return since
	}
	return since - min(spent-o.spent, since)
}

// wallSince is the time from the use to a trap, in ns, without what the use's
// own trap took.
func (s *timing) wallSince(trap *sampler.Trap) float64 {
	return max(float64(trap.Wall)-s.calibration.Cost, 1)
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

// clockHealth is of how many uses the clock was read, and of how many traps it
// could not be.
type clockHealth struct {
	read, failed uint64
}

// dead says whether the clock has gone since h: it could not be read for so many
// traps, and for none it could. now is the present state, h what to go on from.
func (h *clockHealth) dead(now clockHealth) bool {
	if now.read != h.read {
		*h = now
	}
	return now.failed-h.failed >= fewestReadings
}

// watch looks after the clock.
func (s *timing) watch(stats sampler.Stats) {
	err := s.fails(s.readClock)
	if s.health.dead(clockHealth{s.kept.timed, stats.ClockFailed}) && err == nil {
		err = s.unreadable()
	}
	if err != nil && !s.account.failed {
		// The clock is part of the programs: it cannot be replaced.
		s.account.abort(err)
	}
}

// unreadable is the error of a clock whose counters others have.
func (s *timing) unreadable() error {
	return fmt.Errorf("the clock %s can't be read any more: %w", s.clock.Name, sampler.ErrNotRunning)
}

// fails says what is wrong with the clock: it can't be read in any thread that
// runs, for some ticks, as others have the counter, which a pinned event does not get
// back; or it stands still in all of them, as one that reads zero from some time on. It
// does not wait for traps, which may be few; where it is so for some threads only, these
// tell, and reuse times by a clock that stood still are lost. A thread that sleeps has
// lost nothing yet, and says nothing.
func (s *timing) fails(read func(*thread) (uint64, error)) error {
	if s.clock.Counted == nil {
		return nil // CPU time
	}
	var unread uint64
	good, standing := false, make(map[threadOf]time.Duration)
	for _, t := range s.targets.threads {
		ticks := t.shared.Ticks - t.looked
		if ticks == 0 {
			continue
		}
		now, err := read(t)
		goesOn := t.lookAtClock(now, err)
		if good = good || goesOn; goesOn {
			continue
		}
		if unread += ticks; err == nil {
			standing[t.of()] = t.wentOn
		}
	}
	s.kept.loseTimes(standing)
	if s.unread += unread; good {
		s.unread = 0
	}
	switch {
	case s.unread < fewestReadings:
		return nil
	case len(standing) > 0:
		return fmt.Errorf("the clock %s counts nothing any more (the hypervisor fakes the PMU: use --clock cpu-time)", s.clock.Name)
	}
	return s.unreadable()
}

// readClock reads the thread's clock.
func (s *timing) readClock(t *thread) (uint64, error) {
	now, _, err := t.counter.Read(s.kernel)
	return now, err
}

const (
	// The constant of two traps is measured again so often, in the tracing
	// thread, by so many immediate reuses: about a millisecond.
	recalibrateEvery = 10 * time.Second
	recalibrations   = 20
)

// recalibrate follows the constant of two traps, which other load on the
// machine moves. What waits in the ring meanwhile goes to pair.
func (s *timing) recalibrate(pair func(*sampler.Trap)) {
	now := sampler.Monotonic()
	if s.calibrated == 0 {
		s.calibrated = now
	}
	if now-s.calibrated < recalibrateEvery {
		return
	}
	s.calibrated = now
	times, _, err := s.kernel.ImmediateReuses(recalibrations, pair)
	if err != nil {
		s.account.lose(model.ConstantUnknown)
		return
	}
	if len(times) > 0 {
		s.calibration = s.calibration.Join(times)
	}
}

// A thread that is let go runs when an idle processor has woken up, or when it has
// its turn on a busy one. How long that took is told by the first trap behind the
// hold, if that is the use, some microseconds of the thread's time later.

// mostResume bounds what a hold is charged for the wait: who waits for longer, waits
// while others run, of the target's threads or not, and has that turn later. Of a
// thousand busy threads each waits for a second between two holds, held or not.
const mostResume = time.Millisecond

// busyResume is the bound where no processor was idle: one that was asleep takes no longer to wake up. Whoever waits for longer
// there waits while another has its turn, and none of its own is lost by that.
const busyResume = 200 * time.Microsecond

// noteLetGo is called in a hold, at its end.
func (t *thread) noteLetGo(now time.Duration) {
	t.letGo, t.letGoTraps = now, t.shared.Traps
}

// noteResume takes the trap of a use for when the thread ran again, if it had none
// since it was let go. Half of what a trap costs lies before its time is taken.
func (s *timing) noteResume(t *thread, trap *sampler.Trap) {
	if trap.Traps != t.letGoTraps+1 || trap.Holds != t.shared.Holds {
		return
	}
	wait := time.Duration(trap.Time) - t.letGo - time.Duration(s.calibration.Cost/2)
	most := mostResume
	if s.busy {
		most = busyResume
	}
	s.resumes.add(min(max(wait, 0), most))
}

// resumed is how long all holds' threads waited to run again: those without such a
// trap waited as long as the others.
func (s *timing) resumed() time.Duration {
	if s.resumes.last.n == 0 {
		return 0
	}
	return s.resumes.sum / time.Duration(s.resumes.last.n) * time.Duration(s.held.last.n)
}
