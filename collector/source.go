package collector

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// sourceState is the access source, and how it has done. It belongs to the tracing thread.
type sourceState struct {
	source      sampler.Source
	whySource   error
	replaced    []string // sources that failed in the course of the session
	health      health
	healthRan   health // by the time that threads ran, in user mode or not
	healthDue   health // for ticks that are due
	addressed   addressed
	clockHealth clockHealth
	unread      uint64 // ticks of threads whose clock does not go on, since one's did
	throttled   bool   // the user has been told that the source is
	unweighed   uint64 // ns in which it can't be told what a throttled source missed
}

// health is what the source has done up to a moment.
type health struct {
	at      time.Time
	user    time.Duration // CPU time of the target in user mode
	ran     uint64        // ns in which threads ran
	lag     uint64        // of these, ns in which others had the source's counter
	counted float64       // by the source's events, in its unit
	sampled float64       // of it: in periods that ended in a tick
	cut     float64       // and at most in periods that did not
	ticks   uint64
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

const (
	// The source is judged so often, if the target has done enough by then.
	healthInterval = 300 * time.Millisecond
	healthUser     = 200 * time.Millisecond
	// A source that leaves more than this share of what it counts without ticks
	// is dead.
	deadShare = 0.9
	// fewestTicks are expected at least before their absence says anything, and so
	// many periods are looked at for that.
	fewestTicks = 20
	fewestDue   = 1.2 * fewestTicks / deadShare
	// fewestReadings of the clock that fail, of one a hold, tell that it is gone, and
	// so many ticks of threads in which it can't be read or stands still.
	fewestReadings = 5
	// fewestOperations stand in for fewestTicks where only one in six, as of IBS, is of
	// an access.
	fewestOperations = 100
)

// addressed is how many ticks there were, and how many of an access with an
// address, when there was such an access last.
type addressed struct{ ticks, accesses uint64 }

// judge says what is wrong with a source that went from a to now, nil if nothing is
// or it does not report addresses. It goes by ticks alone, however far apart.
func (a addressed) judge(now addressed, source sampler.Source) error {
	ticks, fewest := now.ticks-a.ticks, uint64(fewestTicks)
	if source.Unit() == sampler.Operations {
		fewest = fewestOperations
	}
	if source.Reports() == sampler.NoAccess || now.accesses != a.accesses || ticks < fewest {
		return nil
	}
	return fmt.Errorf("none of %d samples of %s has an address (a virtual PMU without them: use --source pmu)", ticks, source.Name())
}

// unthrottle is what to do about a source that the kernel throttles.
const unthrottle = "throttled: raise /proc/sys/kernel/perf_event_max_sample_rate, which the kernel may have lowered by itself; " +
	"/proc/sys/kernel/perf_cpu_time_max_percent says how soon it does"

// starved says whether nearly all the time from h to now others had the source's
// counter.
func (h health) starved(now health) bool {
	ran := now.ran - h.ran
	return ran > 0 && float64(now.lag)-float64(h.lag) > deadShare*float64(ran)
}

// stands says what is wrong with a source that went from h to now and counted
// nothing, nil if it did count.
func (h health) stands(now health, source sampler.Source) error {
	switch {
	case h.starved(now):
		return fmt.Errorf("%s stands still: others have its counter (another profiler or the NMI watchdog: echo 0 | sudo tee /proc/sys/kernel/nmi_watchdog; or its CPUs are offline)", source.Name())
	case now.counted <= h.counted:
		return fmt.Errorf("%s counts nothing (the hypervisor fakes the PMU, or its CPUs are offline: use --source clock)", source.Name())
	}
	return nil
}

// silent says what is wrong with a source that counted from h to now and did not
// interrupt, nil if it did. period is the mean distance of its ticks.
func (h health) silent(now health, source sampler.Source, period float64) error {
	counted := now.counted - h.counted
	missed := counted - (now.sampled - h.sampled) - (now.cut - h.cut)
	if missed <= max(deadShare*counted, fewestTicks*period) {
		return nil
	}
	return fmt.Errorf("%s does not interrupt: %d times where %.0f were due (%s)", source.Name(), now.ticks-h.ticks, counted/period, unthrottle)
}

// watch looks after the source and the clock.
func (s *sampling) watch(sum estimate.Totals, stats sampler.Stats) {
	err := s.clockFails(s.timing.readClock)
	if s.src.clockHealth.dead(clockHealth{s.kept.timed, stats.ClockFailed}) && err == nil {
		err = s.timing.unreadable()
	}
	if err != nil && !s.account.failed {
		// The clock is part of the programs: it cannot be replaced.
		s.account.abort(err)
	}
	if sum.Throttles > 0 && !s.src.throttled {
		s.src.throttled = true
		s.cfg.Log.Warn(s.src.source.Name() + " is " + unthrottle)
	}
	if good, err := s.checkSource(sum, stats); err != nil {
		s.sourceFailed(err, good)
	}
}

// checkSource says what is wrong with the source, nil if nothing is known to be, and
// how many nanoseconds of the threads' it was good for.
func (s *sampling) checkSource(sum estimate.Totals, stats sampler.Stats) (good uint64, err error) {
	reports := addressed{stats.Ticks, stats.Ticks - stats.InKernel - stats.NoMemory - stats.NoAddress}
	if reports.accesses != s.src.addressed.accesses {
		s.src.addressed = reports
	}
	if err := s.src.addressed.judge(reports, s.src.source); err != nil {
		if reports.accesses == 0 {
			return 0, err // it never was
		}
		return s.src.health.ran, err
	}
	if s.src.source.Unit() == sampler.Nanoseconds {
		return 0, nil // a timer of the kernel's own
	}
	if time.Since(s.src.health.at) < healthInterval {
		return 0, nil
	}
	now := health{
		at: time.Now(), user: s.targets.processes.UserTime(),
		ran: sum.CPU, lag: sum.Shared, counted: sum.Counted, sampled: sum.Ticked, cut: sum.Cut, ticks: stats.Ticks,
	}
	before, ranBefore := s.src.health, s.src.healthRan
	// Time is less than before if a process has ended.
	if before.at.IsZero() || now.user < before.user {
		s.src.health, s.src.healthRan, s.src.healthDue = now, now, now
		return 0, nil
	}
	// Who has the counter does not depend on what the threads do. Their time in
	// user mode may not be known: it is told by where timer ticks fall, which a
	// program in step with them can have fall into the kernel.
	var starved bool
	if now.ran-ranBefore.ran >= uint64(healthUser) {
		s.src.healthRan = now
		if starved = ranBefore.starved(now); starved {
			before = ranBefore
		}
	}
	if now.user-before.user < healthUser && !starved {
		return 0, nil
	}
	s.src.health = now
	if err := before.stands(now, s.src.source); err != nil {
		return before.ran, err
	}
	// Where periods are long it takes more than one interval for ticks to be missed.
	due := s.src.healthDue
	if now.counted-due.counted < fewestDue*s.ticks.meanPeriod {
		return 0, nil
	}
	s.src.healthDue = now
	return due.ran, due.silent(now, s.src.source, s.ticks.meanPeriod)
}

// unreadable is the error of a clock whose counters others have.
func (s *timing) unreadable() error {
	return fmt.Errorf("the clock %s can't be read any more: %w", s.clock.Name, sampler.ErrNotRunning)
}

// clockFails says what is wrong with the clock: it can't be read in any thread that
// runs, for some ticks, as others have the counter, which a pinned event does not get
// back; or it stands still in all of them, as one that reads zero from some time on. It
// does not wait for traps, which may be few; where it is so for some threads only, these
// tell, and reuse times by a clock that stood still are lost. A thread that sleeps has
// lost nothing yet, and says nothing.
func (s *sampling) clockFails(read func(*thread) (uint64, error)) error {
	if s.timing.clock.Counted == nil {
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
		// Ticks while it was being read say nothing of what comes after.
		t.looked = t.shared.Ticks
		switch {
		case err != nil:
			unread += ticks
		case now <= t.clockAt:
			unread += ticks
			standing[t.of()] = t.wentOn
		default:
			good = true
			t.wentOn, t.lookedAt = t.lookedAt, sampler.Monotonic()
		}
		t.clockAt = now
	}
	s.kept.loseTimes(standing)
	if s.src.unread += unread; good {
		s.src.unread = 0
	}
	switch {
	case s.src.unread < fewestReadings:
		return nil
	case len(standing) > 0:
		return fmt.Errorf("the clock %s counts nothing any more (the hypervisor fakes the PMU: use --clock cpu-time)", s.timing.clock.Name)
	}
	return s.timing.unreadable()
}

// readClock reads the thread's clock.
func (s *timing) readClock(t *thread) (uint64, error) {
	now, _, err := t.counter.Read(s.kernel)
	return now, err
}

// threadOf tells the threads of all times apart.
type threadOf struct {
	process *target.Process
	tid     int
}

func (t *thread) of() threadOf { return threadOf{t.process, t.tid} }

// loseTimes gives up the threads' observations that were timed after a moment, of each its own: their
// clocks stand still.
func (s *observations) loseTimes(since map[threadOf]time.Duration) {
	if len(since) == 0 {
		return
	}
	for _, o := range s.seen {
		from, stood := since[threadOf{o.Process, o.TID}]
		if stood && o.State == record.Done && o.Counted == 0 && o.End > float64(from) {
			s.account.loseObserved(o, model.ClockStood)
		}
	}
}

// countThrottles says in the profile how often and how long the kernel had
// stopped the source. What it still lets through is as random as before, and has the
// weight of what was missed, see weigh.
func countThrottles(p *model.Profile, sum estimate.Totals, count func(model.CountName, uint64)) {
	count(model.ThreadsBlind, uint64(sum.Blind))
	count(model.SourceThrottles, sum.Throttles)
	count(model.SourceThrottled, sum.Stopped)
	if sum.Throttles > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("source %s: %d times, up to the next timer tick each", unthrottle, sum.Throttles))
	}
}

// sourceFailed goes on by CPU time if the user has left the choice to us, and
// else ends the session. The source was good for so many nanoseconds.
func (s *sampling) sourceFailed(err error, good uint64) {
	err = fmt.Errorf("the access source failed: %w", err)
	if s.cfg.Source != Auto {
		s.account.abort(err)
		return
	}
	s.fallBack(err, good)
}

// fallBack replaces the source by the clock in all threads. What was sampled
// while it was good keeps its weight: it is now counted in CPU time, too.
func (s *sampling) fallBack(why error, good uint64) {
	s.cfg.Log.Warn("source replaced by the CPU clock: " + why.Error())
	for _, t := range s.targets.threads {
		s.ticks.addTotals(t, &s.ticks.gone, s.timing.clock.Counted == nil)
		t.epoch.To = t.marks(s.kernel)
		if err := errors.Join(t.ticker.Close(), t.tally.Close()); err != nil {
			s.account.fail(err)
		}
		t.ticker, t.tally, t.cpu = nil, nil, 0
	}
	if s.timing.clock.Counted == nil {
		s.src.unweighed += estimate.WeighEpochs(s.kept.seen, s.ticks.gone.PerTally(), s.src.source.Unit() == sampler.Nanoseconds)
		s.ticks.gone.Tally, s.ticks.gone.Tallied = 0, 0
	}
	good = min(good, s.ticks.gone.CPU)
	s.account.losses[model.CPUNoSource] += int64(s.ticks.gone.CPU - good)
	s.ticks.gone.CPU = good
	perUnit := float64(s.ticks.gone.CPU) / max(s.ticks.gone.Ticked, 1)
	s.ticks.gone.Ticked *= perUnit
	s.ticks.gone.Counted, s.ticks.gone.Cut = 0, 0
	scaled := make(map[*record.Epoch]bool)
	for _, o := range s.kept.seen {
		if o.Epoch != nil && !scaled[o.Epoch] {
			scaled[o.Epoch] = true
			o.Epoch.CPU = uint64(float64(o.Epoch.CPU) * perUnit)
			o.Epoch.Unheld = uint64(float64(o.Epoch.Unheld) * perUnit)
		}
	}
	s.src.replaced = append(s.src.replaced, s.src.source.Name())
	s.src.whySource = errors.Join(s.src.whySource, why)
	s.setSource(sampler.CPUClock{})
	if err := s.chooseHolds(); err != nil {
		s.account.fail(err)
	}
	for _, t := range s.targets.threads {
		t.nextEpoch(t.marks(s.kernel))
		if err := s.openTicker(t); err != nil {
			s.account.lose(model.ThreadNotSampled)
		}
	}
}

// openTicker starts the source in a thread. If it can't and the user has left
// the choice to us, the clock is the source from here on.
func (s *sampling) openTicker(t *thread) error {
	var err error
	s.openTally(t)
	t.ticker, err = s.src.source.Open(s.kernel, t.tid, t.drawPeriod(&s.ticks))
	if err == nil {
		t.read, t.ticks, t.passive = t.shared.Sampled, t.shared.Ticks, t.shared.Unheld
		s.ticks.cut(t)
		return nil
	}
	if err := t.tally.Close(); err != nil {
		s.account.fail(err)
	}
	t.tally = nil
	if s.cfg.Source != Auto || s.src.source.Unit() == sampler.Nanoseconds || gone(err) {
		return err
	}
	s.fallBack(err, math.MaxUint64)
	return s.openTicker(t)
}

// unsampled is how many accesses the clock counted that the source did not,
// beyond the difference of two counters: while it was throttled, or had no
// counter, it stood still.
func (s *sourceState) unsampled(sum estimate.Totals, clock sampler.Clock) uint64 {
	if s.source.Unit() != sampler.Accesses || clock.Unit != sampler.Accesses || sum.Counted == 0 {
		return 0
	}
	return uint64(max(sum.Clock-sum.Counted-counterTolerance*sum.Clock, 0))
}

const counterTolerance = 0.02
