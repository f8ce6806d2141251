package collector

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// Without a PMU nothing counts accesses, and nanoseconds must be turned into them
// by a rate. A probe finds it: of a held thread a checkpoint is taken, the thread
// is let go, and stamped some times within the next milliseconds. Then it
// is interpreted, from the checkpoint, while it runs on: when it stands where
// a stamp was made it has made as many accesses as it had made then. Two stamps
// tell how many accesses it makes in how much time, exactly; and the first of them
// is so long after the hold that caches and branch history are warm again.
//
// Holds begin at random moments of CPU time, so that the probes' mean is the mean
// over time, which is what turns time into accesses.

const (
	// probeShare of the budget goes into probes.
	probeShare = 0.2
	// replayFirst and a replayShare of the time may go into interpreting, beside the
	// target: the first probes tell most.
	replayFirst, replayShare = 3 * time.Second, 0.15
	// replayNice gives way to the target, and comes to an end on a busy machine, too.
	replayNice = 19
	// replayInstructions are to be interpreted for a probe, 0.5 to 0.8 s: code that is fast
	// is followed less far. It has warm caches the sooner.
	replayInstructions = 40e6
	// A probe follows a thread for so long.
	shortestLead, longestLead = 4 * time.Millisecond, 8 * time.Millisecond
	// warmAfter a hold the time of a thread is taken.
	warmAfter = time.Millisecond
	// ownShare of the time between two stamps must be the thread's own.
	ownShare = 0.8
	// fewestProbes there must be for the rate to be theirs, and the largest standard error
	// that it may have: the assumed one is off by as much, for programs make 0.1 to 6.
	fewestProbes, largestError = 4, 0.8
	// unmetFaster is how many times as fast as the mean code is taken to be that no probe came by, as one
	// standard error: parts of bzip2 are 4 times as fast as others.
	unmetFaster = 3
	// probeJitter is within what a probe is put off, by chance: it shall not keep step with the program.
	probeJitter = 200 * time.Millisecond
	// probeTimeout is when a probe whose thread does not get to its stamps is given up.
	probeTimeout = time.Second
)

// rates are the access rates that probes found, in accesses per nanosecond.
type rates struct {
	fixed  float64 // if not measured
	source string
	values []float64
	later  []float64 // of the later part of what is timed, where it was reached
	before []float64 // of the part before it
	perNS  float64   // instructions a nanosecond, of the latest probes
	probe  probe
	held   time.Duration // by probes
	stamps int
	// stampNS is what one of them costs its thread.
	stampNS float64
	failed  map[string]int
	busy    time.Duration // of replaying

	legs  []leg
	local *localRates // nil where the whole's mean is all that is known
	// whole is the mean over time by way of the local rates, 0 without these, and wholeError
	// its standard error as a share, but for unmet, the share of the time in holds in whose code no probe came by;
	// localError is that of an observation's own. explained is the mean of the observations' own.
	whole, wholeError, unmet, localError, explained float64
}

// probe is the one at work.
type probe struct {
	state   probeState
	process *process
	thread  *thread
	since   time.Duration
	point   *ahead.Checkpoint
	stamps  *sampler.Stamps
	planned chan error
	done    chan replayed
}

type probeState uint8

const (
	idle probeState = iota
	planning
	ready
	stamping
	replaying
)

type replayed struct {
	ahead.Replayed
	process *process
	stamps  []sampler.Stamp
	took    time.Duration // CPU time
}

// settle decides on the rate, in accesses per unit of the clock.
func (r *rates) settle(flag float64, clock sampler.Clock) {
	switch {
	case clock.Unit == sampler.Accesses:
		r.fixed, r.source = 1, "counted"
	case flag > 0:
		r.fixed, r.source = flag, "flag"
	case clock.Unit == sampler.Instructions:
		r.fixed, r.source = defaultPerInstruction, "default"
	case len(r.values) >= fewestProbes && min(r.error(), r.relativeError()) <= largestError:
		r.source = "measured"
	default:
		r.fixed, r.source = DefaultAccessRate, "default"
	}
}

// stampsAfter are the moments after a hold at which a thread is stamped. What is timed is
// about the second half of the way to the last that was reached.
func (r *rates) stampsAfter() []time.Duration {
	lead := shortestLead
	if r.perNS > 0 {
		lead = min(max(time.Duration(replayInstructions/r.perNS), shortestLead), longestLead)
	}
	first := warmAfter + warmAfter/10 // the clock is without what the profiler took
	var after []time.Duration
	for _, part := range []float64{0, .2, .4, .7, 1} {
		after = append(after, first+time.Duration(part*float64(lead-first)))
	}
	return after
}

// mean over the session's CPU time.
func (r *rates) mean() float64 {
	if r.fixed > 0 {
		return r.fixed
	}
	return r.found()
}

// found is the mean over time by the probes; there must be one.
func (r *rates) found() float64 {
	if r.whole > 0 {
		return r.whole
	}
	return r.measured()
}

// measured is the mean of the probes' rates; there must be one.
func (r *rates) measured() float64 {
	return mean(r.values)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// accesses in ns nanoseconds.
func (r *rates) accesses(ns float64) float64 { return ns * r.mean() }

// error is the standard error of the mean over time, as a share of it, as far as probes tell.
func (r *rates) error() float64 {
	if r.whole > 0 {
		return r.wholeError
	}
	return r.relativeError()
}

// fullError has besides what may be in phases that no probe has met.
func (r *rates) fullError() float64 { return math.Hypot(r.error(), r.unmet*(unmetFaster-1)) }

// interval holds the mean over time in 95 of 100 sessions; it is as wide as a few probes leave it (Student's t).
func (r *rates) interval() (low, high float64) {
	parts := len(r.values)
	if r.whole > 0 {
		parts = min(parts, mostFolds)
	}
	factor := math.Exp(distuv.StudentsT{Sigma: 1, Nu: float64(parts - 1)}.Quantile(.975) * r.fullError())
	return r.found() / factor, r.found() * factor
}

// relativeError is the standard error of the probes' mean, as a share of it; NaN of a single
// probe.
func (r *rates) relativeError() float64 {
	m, n := r.measured(), float64(len(r.values))
	squares := 0.0
	for _, v := range r.values {
		squares += (v - m) * (v - m)
	}
	return math.Sqrt(squares/(n-1)/n) / m
}

// quantile of the probes' rates; there must be one.
func (r *rates) quantile(q float64) float64 {
	slices.Sort(r.values)
	return r.values[int(q*float64(len(r.values)-1))]
}

// fail counts a probe that gave nothing.
func (r *rates) fail(why string) {
	if r.failed == nil {
		r.failed = make(map[string]int)
	}
	r.failed[why]++
	r.probe.state = idle
}

// hasProbes says whether the session has any.
func (s *Session) hasProbes() bool {
	return s.cfg.MeasureRate && s.burst > 0 && s.cfg.AccessRate == 0 && s.clock.Counted == nil && s.source.Reports() == sampler.NoAccess
}

// stampCost is what probes cost the target, besides their holds.
func (s *Session) stampCost() time.Duration {
	return time.Duration(float64(s.rates.stamps) * s.rates.stampNS)
}

// driveProbe moves the probe on, between holds.
func (s *Session) driveProbe(cpu uint64) {
	p := &s.rates.probe
	now := sampler.Monotonic()
	switch p.state {
	case idle:
		cost := (1+s.budget.cold)*float64(s.rates.held) + float64(s.stampCost())
		replays := s.rates.busy <= replayFirst+time.Duration(replayShare*float64(time.Since(s.start))) || s.cfg.replayEagerly
		if s.lastHeld == nil || !replays || cost > probeShare*s.budget.target*float64(cpu) {
			return
		}
		if p.point == nil {
			p.point, p.planned, p.done = ahead.NewCheckpoint(), make(chan error, 1), make(chan replayed, 1)
		}
		p.state, p.process = planning, s.lastHeld
		go func(pid int) { p.planned <- p.point.Plan(pid) }(p.process.via)
	case planning:
		select {
		case err := <-p.planned:
			p.state, p.since = ready, now+time.Duration(s.rand.Int64N(int64(probeJitter)))
			if err != nil {
				s.rates.failProbe(err)
			}
		default:
		}
	case ready:
		if now-p.since > probeTimeout {
			p.state = idle // the process has not been held since: its pages are others by now
		}
	case stamping:
		if p.stamps.All() || now-p.since > probeTimeout {
			s.replay()
		}
	case replaying:
		select {
		case r := <-p.done:
			s.rates.busy += r.took
			s.takeProbe(r)
		default:
		}
	}
}

func (r *rates) failProbe(err error) {
	var declined *ahead.Declined
	if errors.As(err, &declined) {
		r.fail(declined.Label())
	} else {
		r.fail("process not readable")
	}
}

// wantProbe says whether this hold is to be a probe.
func (s *Session) wantProbe(t *thread) bool {
	s.lastHeld = t.process
	p := &s.rates.probe
	return p.state == ready && p.process == t.process && sampler.Monotonic() >= p.since
}

// startProbe takes the held thread's checkpoint.
func (s *Session) startProbe(t *thread) {
	p := &s.rates.probe
	start := sampler.Monotonic()
	err := p.point.Take(s.locate, t.tid)
	if err == nil {
		after := s.rates.stampsAfter()
		s.rates.stamps += len(after)
		p.stamps, err = s.kernel.Stamps(t.index, t.tid, after)
	}
	s.rates.held += sampler.Monotonic() - start
	if err != nil {
		s.rates.failProbe(err)
		return
	}
	p.state, p.thread, p.since = stamping, t, start
}

// replay has the checkpoint interpreted, on a low priority.
func (s *Session) replay() {
	p := &s.rates.probe
	stamps := p.stamps.Read()
	if err := p.stamps.Close(); err != nil {
		s.fail(err)
	}
	p.thread = nil
	if len(stamps) == 0 || s.closing {
		s.rates.fail("not run on in time")
		return
	}
	p.state = replaying
	nice := replayNice
	if s.cfg.replayEagerly {
		nice = 0
	}
	go func() {
		runtime.LockOSThread() // which ends with the goroutine
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), nice)
		before := threadTime()
		r := replayed{Replayed: p.point.Replay(stamps), process: p.process, stamps: stamps}
		r.took = threadTime() - before
		p.done <- r
	}()
}

// threadTime is the CPU time of the calling OS thread.
func threadTime() time.Duration { return clockTime(unix.CLOCK_THREAD_CPUTIME_ID) }

func clockTime(clock int32) time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(clock, &ts)
	return time.Duration(ts.Nano())
}

// dropProbe ends the stamps of a thread that is gone.
func (s *Session) dropProbe(t *thread) {
	p := &s.rates.probe
	if p.state == stamping && p.thread == t {
		s.replay()
	}
}

// takeProbe takes what came of a probe.
func (s *Session) takeProbe(r replayed) {
	s.rates.probe.state = idle
	if r.PerNS > 0 {
		if s.rates.perNS == 0 {
			s.rates.perNS = r.PerNS
		}
		s.rates.perNS = (s.rates.perNS + r.PerNS) / 2
	}
	from, middle, last, why := chooseStamps(&r)
	if why != "" {
		s.rates.fail(why)
		return
	}
	rate, why := s.rateBetween(&r, from, last)
	if why != "" {
		s.rates.fail(why)
		return
	}
	s.addLegs(&r, from)
	s.rates.values = append(s.rates.values, rate)
	if middle < 0 {
		return
	}
	before, why1 := s.rateBetween(&r, from, middle)
	later, why2 := s.rateBetween(&r, middle, last)
	if why1 == "" && why2 == "" {
		s.rates.before, s.rates.later = append(s.rates.before, before), append(s.rates.later, later)
	}
}

// rateBetween is the rate between two stamps of a replay, or why it is not known.
func (s *Session) rateBetween(r *replayed, from, to int) (rate float64, why string) {
	ns, why := s.betweenStamps(&r.stamps[from], &r.stamps[to], to-from)
	return float64(r.Accesses[to]-r.Accesses[from]) / ns, why
}

// chooseStamps chooses two of the stamps that were reached: the last, and of those after
// which caches are warm the one next to the middle of the time until then; and between
// these the one next to the middle, -1 if there is none.
func chooseStamps(r *replayed) (from, middle, last int, why string) {
	last = -1
	for i, n := range r.Accesses {
		if n >= 0 {
			last = i
		}
	}
	if last < 0 {
		return 0, 0, 0, r.End
	}
	for _, n := range r.Accesses[:last] {
		if n > r.Accesses[last] {
			return 0, 0, 0, ahead.Diverged
		}
	}
	from = r.nextTo(float64(r.stamps[last].Clock)/2, 0, last)
	if from >= 0 && float64(r.stamps[from].Clock) <= 0.8*float64(r.stamps[last].Clock) {
		return from, r.nextTo(float64(r.stamps[from].Clock+r.stamps[last].Clock)/2, from+1, last), last, ""
	}
	if r.End != "" {
		return 0, 0, 0, r.End
	}
	return 0, 0, 0, "moments not told apart"
}

// nextTo is of the stamps in a range that were reached, not before caches are warm, the one next
// to a moment; -1 if there is none.
func (r *replayed) nextTo(clock float64, start, limit int) int {
	next, off := -1, func(i int) float64 { return math.Abs(float64(r.stamps[i].Clock) - clock) }
	for i := start; i < limit; i++ {
		if r.Accesses[i] >= 0 && r.stamps[i].Clock >= uint64(warmAfter) && (next < 0 || off(i) < off(next)) {
			next = i
		}
	}
	return next
}

// betweenStamps is the time of the thread's own between two stamps, so many further
// on: without what the stamps, ticks and traps took, by what one of them costs. Where that
// is much it is not known well enough.
func (s *Session) betweenStamps(a, b *sampler.Stamp, n int) (ns float64, why string) {
	all := float64(b.Clock - a.Clock)
	ns = all - s.rates.stampNS*float64(n) - s.budget.tickNS*float64(b.Ticks-a.Ticks) -
		s.calibration.Cost*float64(b.Traps-a.Traps) - float64(b.Spent-a.Spent)
	switch {
	case b.Holds != a.Holds:
		return 0, "another hold came"
	case ns < ownShare*all:
		return 0, "too much time taken by traps"
	}
	return ns, ""
}

// rateCounts says in the profile what became of the probes.
func (s *Session) rateCounts(p *model.Profile) {
	r := &s.rates
	count := func(name string, n int) {
		if n > 0 {
			p.Counts = append(p.Counts, model.Count{Name: name, N: int64(n)})
		}
	}
	count("access rate: probes", len(r.values))
	for why, n := range r.failed {
		count("access rate: probes without a rate: "+why, n)
	}
	if r.probe.state == replaying {
		count("access rate: probes without a rate: session ended", 1)
	}
	if len(r.values) > 1 {
		low, high := r.interval()
		found := fmt.Sprintf("access rate: %.3g per ns by %d probes, 95%% interval %.3g to %.3g, standard error %.0f%%", r.found(), len(r.values), low, high, 100*r.fullError())
		if r.unmet > 0 {
			found += fmt.Sprintf("; no probe came by the code of %.0f%% of the time, which is taken to be %v times as fast, by one of its standard errors", 100*r.unmet, unmetFaster)
		}
		p.Comments = append(p.Comments, found)
		p.Comments = append(p.Comments, fmt.Sprintf("access rate: the probes' are %.3g on average, quartiles %.3g to %.3g; they held threads for %v; a stamp costs %.1f µs",
			r.measured(), r.quantile(.25), r.quantile(.75), r.held.Round(time.Microsecond), r.stampNS/1000))
	}
	if r.busy > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("following probes took %v of CPU time, %.1f%% of the target's, beside it and at the lowest priority: that is not in the overhead",
			r.busy.Round(time.Millisecond), 100*float64(r.busy)/float64(max(s.ranTime(), 1))))
	}
	if len(r.later) > 1 {
		p.Comments = append(p.Comments, fmt.Sprintf("access rate: %+.0f%% in the later half of what %d probes timed; were caches still cold after the hold it would be higher", 100*(mean(r.later)/mean(r.before)-1), len(r.later)))
	}
	s.localComments(p)
	if s.hasProbes() && r.source == "default" {
		why := fmt.Sprintf("only %d probes found one, want %d", len(r.values), fewestProbes)
		if len(r.values) >= fewestProbes {
			why = fmt.Sprintf("the standard error of the measured one is above %.0f%%", 100*largestError)
		}
		p.Comments = append(p.Comments, "access rate: assumed; "+why)
	}
}
