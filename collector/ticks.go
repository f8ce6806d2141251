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
	rand    *rand.Rand

	meanGap float64 // mean, in the source's unit
	gone    estimate.Totals
	budget  budget
}

// holdsPerGap: setting a gap costs ten microseconds, and a gap kept for some
// samples is as far from the program's own periods.
const holdsPerGap = 16

// drawGap draws the distance to the next ticks. Where most ticks become
// samples it is what makes their gaps geometric; where thinning does that, it
// keeps the ticks out of step with the program's own periods.
func (s *tickPace) drawGap() uint64 {
	if s.budget.counters {
		return uint64(min(max(s.rand.ExpFloat64(), 0.05), 6) * s.meanGap)
	}
	return uint64((leastGap + (mostGap-leastGap)*s.rand.Float64()) * s.meanGap)
}

// drawsFirst says whether a thread's first gap is drawn in another way than the
// next ones. Else a thread would have no tick before three quarters of a gap, and of
// a thousand threads that each run that little none would be seen. But
// the timer goes on with the first gap until it is given the next, which must
// not take long; and counters' gaps have no memory.
func (s *Session) drawsFirst() bool {
	return !s.ticks.budget.counters && s.src.source.Reports() == sampler.NoAccess && s.tracer.RealTime
}

// drawFirst draws the first gap as what is left of a gap at a random moment: so
// that each nanosecond of a thread's run, its first ones, too, has the same
// chance of a tick. (Gaps of length x are met with a probability that goes with
// x, at a place that is uniform in them.)
func (s *tickPace) drawFirst() uint64 {
	x := math.Sqrt(leastGap*leastGap + s.rand.Float64()*(mostGap*mostGap-leastGap*leastGap))
	return uint64(s.rand.Float64() * x * s.meanGap)
}

// A timer's gaps are uniform between these, in mean gaps.
const leastGap, mostGap = 0.75, 1.25

// account adds the ticks since the last call to the thread's CPU time.
func (t *thread) account() {
	d, ticks := t.shared.Sampled-t.read, t.shared.Ticks-t.ticks
	passive := min(t.shared.Unheld-t.passive, ticks) // it may have grown since
	t.read += d
	t.ticks += ticks
	t.passive += passive
	if t.ticker.Len() == 1 {
		// A timer's ticks go on to tell its first period when it has another.
		d = ticks * t.ticker.Gap(0)
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

// redraw gives the thread new gaps, each of its events one of its own.
func (t *thread) redraw(s *tickPace) {
	t.account()
	for i := range t.ticker.Len() {
		t.redrawOne(s, i)
	}
	s.cut(t)
}

// cut accounts for periods that are given up before they end, or that have
// only begun: what is counted in them makes no tick. They are one mean gap
// long on average, with random gaps.
func (s *tickPace) cut(t *thread) { s.gone.Cut += cutGaps * s.meanGap * float64(t.ticker.Len()) }

const cutGaps = 2

// redrawOne gives one event a new gap.
func (t *thread) redrawOne(s *tickPace, event int) {
	if event >= t.ticker.Len() {
		return // the source was replaced
	}
	if err := t.ticker.SetGapOf(event, t.drawGap(s)); err != nil {
		s.account.fail(err)
	}
	if t.first == 0 {
		t.shared.First = 0
	}
}

// drawGap draws the thread's next gap, which may be its first.
func (t *thread) drawGap(s *tickPace) uint64 {
	if t.first > 0 {
		return s.drawFirst()
	}
	return s.drawGap()
}

// endFirst gives the thread, which still runs, a gap after its first tick.
func (t *thread) endFirst(s *tickPace, ticked time.Duration) {
	t.account()
	t.first = 0 // also if the tick did not count
	gap := s.drawGap()
	t.passed = min(uint64(max(sampler.Monotonic()-ticked, 0)), gap/2)
	gap -= t.passed
	if t.ticker.Len() == 0 {
		return // the source was replaced
	}
	if err := t.ticker.SetGapOf(0, gap); err != nil {
		s.account.fail(err)
	}
	t.shared.First = 0
}
