package collector

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/sampler"
)

// tickPace spaces the source's ticks, and says how many may become samples. It belongs to the
// tracing thread.
type tickPace struct {
	account *account
	cfg     *Config
	kernel  *sampler.Kernel
	rand    *rand.Rand
	src     *sourceState
	targets *targets
	tracing *tracing

	meanPeriod float64         // between two ticks, in the source's unit
	gone       estimate.Totals // of threads that are not sampled any more
	budget     budget
	reaccept   bool // the kernel is to be told what is accepted now
}

// holdsPerPeriod: setting a period costs ten microseconds, and a period kept for some
// samples is as far from keeping step with the program.
const holdsPerPeriod = 16

// drawPeriod draws the distance to the next ticks. Where most ticks become
// samples it is what makes their periods geometric; where thinning does that, it
// keeps the ticks out of step with what the program repeats.
func (s *tickPace) drawPeriod() uint64 {
	if s.budget.counters {
		return uint64(min(max(s.rand.ExpFloat64(), 0.05), 6) * s.meanPeriod)
	}
	return uint64((leastPeriod + (mostPeriod-leastPeriod)*s.rand.Float64()) * s.meanPeriod)
}

// drawsFirst says whether a thread's first period is drawn in another way than the
// next ones. Else a thread would have no tick before three quarters of a period, and of
// a thousand threads that each run that little none would be seen. But
// the timer goes on with the first period until it is given the next, which must
// not take long; and counters' periods have no memory.
func (s *tickPace) drawsFirst() bool {
	return !s.budget.counters && s.src.source.Reports() == sampler.NoAccess && s.tracing.tracer.RealTime
}

// drawFirst draws the first period as what is left of a period at a random moment: so
// that each nanosecond of a thread's run, its first ones, too, has the same
// chance of a tick. (Periods of length x are met with a probability that goes with
// x, at a place that is uniform in them.)
func (s *tickPace) drawFirst() uint64 {
	x := math.Sqrt(leastPeriod*leastPeriod + s.rand.Float64()*(mostPeriod*mostPeriod-leastPeriod*leastPeriod))
	return uint64(s.rand.Float64() * x * s.meanPeriod)
}

// A timer's periods are uniform between these, in mean periods.
const leastPeriod, mostPeriod = 0.75, 1.25

// account adds the ticks since the last call to the thread's CPU time.
func (t *thread) account() {
	d, ticks := t.shared.Sampled-t.read, t.shared.Ticks-t.ticks
	passive := min(t.shared.Unheld-t.passive, ticks) // it may have grown since
	t.read += d
	t.ticks += ticks
	t.passive += passive
	if t.ticker.Len() == 1 {
		// A timer's ticks go on to tell its first period when it has another.
		d = ticks * t.ticker.Period(0)
		if t.first > 0 && ticks > 0 {
			d, t.first = t.first, 0
		} else if ticks > 0 {
			d, t.passed = d+t.passed, 0
		}
	}
	unheld := uint64(float64(d) * float64(passive) / float64(max(ticks, 1)))
	t.cpu += d
	t.unheld += unheld
	if t.epoch == nil {
		t.nextEpoch(record.Marks{})
	}
	t.epoch.CPU += d - unheld
	t.epoch.Unheld += unheld
}

// redraw gives the thread new periods, each of its events one of its own.
func (t *thread) redraw(s *tickPace) {
	t.account()
	for i := range t.ticker.Len() {
		t.redrawOne(s, i)
	}
	s.cut(t)
}

// cut accounts for periods that are given up before they end, or that have
// only begun: what is counted in them makes no tick. They are one mean period
// long on average, with random periods.
func (s *tickPace) cut(t *thread) { s.gone.Cut += cutPeriods * s.meanPeriod * float64(t.ticker.Len()) }

const cutPeriods = 2

// redrawOne gives one event a new period.
func (t *thread) redrawOne(s *tickPace, event int) {
	if event >= t.ticker.Len() {
		return // the source was replaced
	}
	if err := t.ticker.SetPeriodOf(event, t.drawPeriod(s)); err != nil {
		s.account.fail(err)
	}
	if t.first == 0 {
		t.shared.First = 0
	}
}

// drawPeriod draws the thread's next period, which may be its first.
func (t *thread) drawPeriod(s *tickPace) uint64 {
	if t.first > 0 {
		return s.drawFirst()
	}
	return s.drawPeriod()
}

// endFirst gives the thread, which still runs, a period after its first tick.
func (t *thread) endFirst(s *tickPace, ticked time.Duration) {
	t.account()
	t.first = 0 // also if the tick did not count
	period := s.drawPeriod()
	t.passed = min(uint64(max(sampler.Monotonic()-ticked, 0)), period/2)
	period -= t.passed
	if t.ticker.Len() == 0 {
		return // the source was replaced
	}
	if err := t.ticker.SetPeriodOf(0, period); err != nil {
		s.account.fail(err)
	}
	t.shared.First = 0
}

// aim has the budget follow how much the target has run by now, in ns, and says what was accepted before.
func (s *tickPace) aim(ran uint64) (accepted float64) {
	accepted = s.budget.accepted()
	if s.src.source.Unit() == sampler.Nanoseconds {
		s.budget.ticksEvery(s.meanPeriod)
	}
	s.budget.aim(s.budget.floor.look(ran, sampler.Monotonic()))
	return accepted
}

// heldTogether is how many holds come soon after each other where threads are joined: two tell what their threads do at the same time.
const heldTogether = 2

// holdTogether says whether there are threads to be joined.
func (s *tickPace) holdTogether(several bool) {
	n := 1
	if several {
		n = heldTogether
	}
	s.budget.holdTogether(n)
}

// keep keeps to the budget: the period and what is accepted follow what holds, which took held, and traps and waits, which took waits,
// have cost by now. accepted is as of before the budget's aim.
func (s *tickPace) keep(sum estimate.Totals, ran uint64, accepted float64, stats sampler.Stats, held, waits time.Duration) {
	if s.budget.update(ran, stats, held, waits) || s.budget.accepted() != accepted {
		s.adjust(sum)
		s.accept()
	}
}

// counters says whether a counter of the processor's makes the ticks.
func (s *tickPace) counters() bool { return s.budget.counters }

// held charges a hold that has just ended; the kernel is told of it once the thread runs again, by tell.
func (s *tickPace) held() { s.reaccept = s.budget.held() || s.reaccept }

func (s *tickPace) tell() {
	if s.reaccept {
		s.accept()
	}
}

// accept tells the kernel what is accepted now.
func (s *tickPace) accept() {
	s.reaccept = false
	if err := s.kernel.SetAccept(s.budget.accepted()); err != nil {
		s.account.fail(err)
	}
}

// adjust spaces the ticks so that some more come than can become samples: for
// the periods between samples to be geometric, but not so many that ticks are what
// the budget is spent on.
//
// Of many threads each gets its new period when it is held: to set it between two
// ticks begins the period anew, and if each runs little none would come to its end. Few
// get it at once: they are held seldom where it is the ticks that cost too much.
func (s *tickPace) adjust(sum estimate.Totals) {
	if s.cfg.Period != 0 || s.cfg.period != 0 {
		return
	}
	perNS := 1.0
	if s.src.source.Unit() != sampler.Nanoseconds && sum.CPU > 0 && sum.Ticked > 0 {
		perNS = sum.Ticked / float64(sum.CPU)
	}
	period := float64(s.budget.period()) * perNS
	if ratio := period / s.meanPeriod; ratio > 1/adjustRatio && ratio < adjustRatio {
		return
	}
	atOnce := s.targets.threads
	if len(atOnce) > adjustAtOnce {
		atOnce = nil // there are ticks of both periods for a while
	} else {
		s.budget.ticksApart(s.meanPeriod/perNS, period/perNS)
	}
	for _, t := range atOnce {
		s.cut(t)
	}
	s.meanPeriod = period
	for _, t := range atOnce {
		t.redraw(s)
	}
}

const (
	// adjustRatio: smaller changes of the period are not worth a system call a thread.
	adjustRatio  = 1.3
	adjustAtOnce = 16 // threads
)

// total of the session so far, threads at work included. Of these, those of
// a counting clock need a system call each: details says whether to make it.
func (s *tickPace) total(details bool) estimate.Totals {
	sum := s.gone
	for _, t := range s.targets.threads {
		s.addTotals(t, &sum, details)
	}
	return sum
}

// addTotals adds what thread t did.
func (s *tickPace) addTotals(t *thread, sum *estimate.Totals, details bool) {
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

// begin has threads tick by a source, as often as it can be afforded.
func (s *tickPace) begin(source sampler.Source, timing *timing, steps bool) {
	s.budget = newBudget(s.cfg.Overhead, timing.calibration, source.Unit())
	s.budget.floor.share = s.cfg.Floor
	if s.cfg.HoldCost > 0 && !s.budget.counters {
		s.budget.measured(float64(s.cfg.HoldCost))
	}
	if steps {
		s.budget.expectSteps()
	}
	if s.cfg.turns != nil {
		s.budget.force(0)
	}
	if !s.budget.counters && timing.tickCost > 0 {
		s.budget.tickCosts(timing.tickCost)
	}
	period := s.budget.firstPeriod()
	if s.cfg.Period > 0 {
		s.budget.ticksApart(float64(period), float64(s.cfg.Period))
		period = s.cfg.Period
	}
	s.meanPeriod = float64(period) * unitsPerNS[source.Unit()]
	if s.cfg.period != 0 {
		s.meanPeriod = s.cfg.period
	}
}
