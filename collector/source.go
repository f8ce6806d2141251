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
	account *account
	cfg     *Config
	holds   *holds
	kept    *observations
	kernel  *sampler.Kernel
	targets *targets
	ticks   *tickPace
	timing  *timing
	watches *watches

	source    sampler.Source
	whySource error
	replaced  []string // sources that failed in the course of the session
	health    health
	healthRan health // by the time that threads ran, in user mode or not
	healthDue health // for ticks that are due
	addressed addressed
	throttled bool   // the user has been told that the source is
	unweighed uint64 // ns in which it can't be told what a throttled source missed
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
	// throttles: so often the kernel has stopped it.
	throttles uint64
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
// interrupt, nil if it did. period is the mean distance of its ticks. One that is throttled and ticks is weighed, and not dead:
// its ticks are few, and their periods, which last from hold to hold, may all be short ones.
func (h health) silent(now health, source sampler.Source, period float64) error {
	counted := now.counted - h.counted
	missed := counted - (now.sampled - h.sampled) - (now.cut - h.cut)
	weighed := now.throttles > h.throttles && now.ticks >= h.ticks+fewestTicks
	if weighed || missed <= max(deadShare*counted, fewestTicks*period) {
		return nil
	}
	return fmt.Errorf("%s does not interrupt: %d times where %.0f were due (%s)", source.Name(), now.ticks-h.ticks, counted/period, unthrottle)
}

// watch looks after the source.
func (s *sourceState) watch(sum estimate.Totals, stats sampler.Stats) {
	if sum.Throttles > 0 && !s.throttled {
		s.throttled = true
		s.cfg.Log.Warn(s.source.Name() + " is " + unthrottle)
	}
	if good, err := s.check(sum, stats); err != nil {
		s.fails(err, good)
	}
}

// check says what is wrong with the source, nil if nothing is known to be, and
// how many nanoseconds of the threads' it was good for.
func (s *sourceState) check(sum estimate.Totals, stats sampler.Stats) (good uint64, err error) {
	reports := addressed{stats.Ticks, stats.Ticks - stats.InKernel - stats.NoMemory - stats.NoAddress}
	if reports.accesses != s.addressed.accesses {
		s.addressed = reports
	}
	if err := s.addressed.judge(reports, s.source); err != nil {
		if reports.accesses == 0 {
			return 0, err // it never was
		}
		return s.health.ran, err
	}
	if s.source.Unit() == sampler.Nanoseconds {
		return 0, nil // a timer of the kernel's own
	}
	if time.Since(s.health.at) < healthInterval {
		return 0, nil
	}
	now := health{
		at: time.Now(), user: s.targets.processes.UserTime(),
		ran: sum.CPU, lag: sum.Shared, counted: sum.Counted, sampled: sum.Ticked, cut: sum.Cut, ticks: stats.Ticks, throttles: sum.Throttles,
	}
	before, ranBefore := s.health, s.healthRan
	// Time is less than before if a process has ended.
	if before.at.IsZero() || now.user < before.user {
		s.health, s.healthRan, s.healthDue = now, now, now
		return 0, nil
	}
	// Who has the counter does not depend on what the threads do. Their time in
	// user mode may not be known: it is told by where timer ticks fall, which a
	// program in step with them can have fall into the kernel.
	var starved bool
	if now.ran-ranBefore.ran >= uint64(healthUser) {
		s.healthRan = now
		if starved = ranBefore.starved(now); starved {
			before = ranBefore
		}
	}
	if now.user-before.user < healthUser && !starved {
		return 0, nil
	}
	s.health = now
	if err := before.stands(now, s.source); err != nil {
		return before.ran, err
	}
	// Where periods are long it takes more than one interval for ticks to be missed.
	due := s.healthDue
	if now.counted-due.counted < fewestDue*s.ticks.meanPeriod {
		return 0, nil
	}
	s.healthDue = now
	return due.ran, due.silent(now, s.source, s.ticks.meanPeriod)
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

// throttles says how often the kernel has stopped the source, "" if it never did.
func throttles(sum estimate.Totals) string {
	if sum.Throttles == 0 {
		return ""
	}
	return fmt.Sprintf("source %s: %d times, up to the next timer tick each", unthrottle, sum.Throttles)
}

// fails goes on by CPU time if the user has left the choice to us, and
// else ends the session. The source was good for so many nanoseconds.
func (s *sourceState) fails(err error, good uint64) {
	err = fmt.Errorf("the access source failed: %w", err)
	if s.cfg.Source != Auto {
		s.account.abort(err)
		return
	}
	s.fallBack(err, good)
}

// fallBack replaces the source by the clock in all threads. What was sampled
// while it was good keeps its weight: it is now counted in CPU time, too.
func (s *sourceState) fallBack(why error, good uint64) {
	s.cfg.Log.Warn("source replaced by the CPU clock: " + why.Error())
	for _, t := range s.targets.threads {
		s.ticks.addTotals(t, &s.ticks.gone, s.timing.clock.Counted == nil)
		t.epoch.To = t.marks(s.kernel)
		if err := t.stop(); err != nil {
			s.account.fail(err)
		}
	}
	if s.timing.clock.Counted == nil {
		s.unweighed += estimate.WeighEpochs(s.kept.seen, s.ticks.gone.PerTally(), s.source.Unit() == sampler.Nanoseconds)
		s.ticks.gone.Tally, s.ticks.gone.Tallied = 0, 0
	}
	good = min(good, s.ticks.gone.CPU)
	s.account.count(model.CPUNoSource, int64(s.ticks.gone.CPU-good))
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
	s.replaced = append(s.replaced, s.source.Name())
	s.whySource = errors.Join(s.whySource, why)
	s.set(sampler.CPUClock{})
	if err := s.askForHolds(); err != nil {
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
func (s *sourceState) openTicker(t *thread) error {
	tally := s.openTally(t.tid)
	ticker, err := s.source.Open(s.kernel, t.tid, t.drawPeriod(s.ticks))
	if err == nil {
		t.begin(ticker, tally)
		s.ticks.cut(t)
		return nil
	}
	if err := tally.Close(); err != nil {
		s.account.fail(err)
	}
	if s.cfg.Source != Auto || s.source.Unit() == sampler.Nanoseconds || gone(err) {
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

// openTally starts a tally of the thread if weights need one, nil if none or if it can't be had: with the clock CPU time,
// nothing else counts while a source that counts is stopped.
func (s *sourceState) openTally(tid int) *sampler.Tally {
	c := s.source.Counts()
	if s.timing.clock.Counted != nil || c == nil {
		return nil
	}
	tally, err := sampler.OpenTally(*c, tid)
	if err != nil && !gone(err) {
		s.account.count(model.ThreadsUncounted, 1)
	}
	return tally
}

// askForHolds tells the kernel which samples are held besides those that have won a slot and
// can be held by a signal: those without a slot, where the thread is read ahead of; and
// by an interrupt, if that was asked for, unless the access is over by then.
func (s *sourceState) askForHolds() error {
	var err error
	if s.holds.readsLosers() {
		err = s.kernel.HoldLosers()
	}
	if s.cfg.Interrupt && s.source.Reports() == sampler.NoAccess {
		err = errors.Join(err, s.kernel.HoldByInterrupt())
	}
	return err
}
