package collector

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// Without a PMU nothing counts accesses, and nanoseconds must be turned into them
// by a rate. A probe finds it: of a held thread a checkpoint is taken, the thread
// is let go, and stamped some times within the next millisecond or so. Then it
// is interpreted, from the checkpoint, while it runs on: when it stands where
// a stamp was made it has made as many accesses as it had made then. Two stamps
// tell how many accesses it makes in how much time, exactly; and the first of them
// is so long after the hold that caches and branch history are warm again.
//
// Holds begin at random moments of CPU time, so that the probes' mean is the mean
// over time, which is what turns time into accesses.

// stampsAfter are the moments after a hold at which a thread is stamped. What is
// timed is the second half of the way to the last that was reached.
var stampsAfter = []time.Duration{500 * time.Microsecond, 800 * time.Microsecond, 1200 * time.Microsecond, 1800 * time.Microsecond, 2700 * time.Microsecond}

const (
	// probeShare of the budget goes into probes.
	probeShare = 0.2
	// replayShare of the time may go into interpreting, beside the target.
	replayShare = 0.2
	// replayNice gives way to the target, and comes to an end on a busy machine, too.
	replayNice = 5
	// warmAfter a hold the time of a thread is taken.
	warmAfter = 400 * time.Microsecond
	// fewestProbes there must be for the rate to be theirs.
	fewestProbes = 4
	// probeTimeout is when a probe whose thread does not get to its stamps is given up.
	probeTimeout = time.Second
)

// rates are the access rates that probes found, in accesses per nanosecond.
type rates struct {
	fixed  float64 // if not measured
	source string
	values []float64
	probe  probe
	held   time.Duration // by probes
	stamps int
	failed map[string]int
	busy   time.Duration // of replaying
}

// probe is the one at work.
type probe struct {
	state   probeState
	process *process
	thread  *thread
	since   time.Duration
	point   *sampler.Checkpoint
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
	sampler.Replayed
	stamps []sampler.Stamp
	took   time.Duration // CPU time
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
	case len(r.values) >= fewestProbes:
		r.source = "measured"
	default:
		r.fixed, r.source = DefaultAccessRate, "default"
	}
}

// mean over the session's CPU time.
func (r *rates) mean() float64 {
	if r.fixed > 0 {
		return r.fixed
	}
	return r.measured()
}

// measured is the mean of the probes' rates; there must be one.
func (r *rates) measured() float64 {
	sum := 0.0
	for _, v := range r.values {
		sum += v
	}
	return sum / float64(len(r.values))
}

// accesses in ns nanoseconds.
func (r *rates) accesses(ns float64) float64 { return ns * r.mean() }

// relativeError is the standard error of the mean, as a share of it; NaN of a single
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
	return time.Duration(float64(s.rates.stamps) * s.budget.tickNS)
}

// driveProbe moves the probe on, between holds.
func (s *Session) driveProbe(cpu uint64) {
	p := &s.rates.probe
	now := sampler.Monotonic()
	switch p.state {
	case idle:
		cost := (1+s.budget.cold)*float64(s.rates.held) + float64(s.stampCost())
		if s.lastHeld == nil || s.rates.busy > time.Duration(replayShare*float64(time.Since(s.start))) || cost > probeShare*s.budget.target*float64(cpu) {
			return
		}
		if p.point == nil {
			p.point, p.planned, p.done = sampler.NewCheckpoint(), make(chan error, 1), make(chan replayed, 1)
		}
		p.state, p.process = planning, s.lastHeld
		go func(pid int) { p.planned <- p.point.Plan(pid) }(p.process.pid)
	case planning:
		select {
		case err := <-p.planned:
			p.state, p.since = ready, now
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
	var declined *sampler.Declined
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
	return p.state == ready && p.process == t.process
}

// startProbe takes the held thread's checkpoint.
func (s *Session) startProbe(t *thread) {
	p := &s.rates.probe
	start := sampler.Monotonic()
	err := p.point.Take(s.locate, t.tid)
	if err == nil {
		p.stamps, err = s.kernel.Stamps(t.index, t.tid, stampsAfter)
	}
	s.rates.held += sampler.Monotonic() - start
	if err != nil {
		s.rates.failProbe(err)
		return
	}
	p.state, p.thread, p.since = stamping, t, start
	s.rates.stamps += len(stampsAfter)
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
	go func() {
		runtime.LockOSThread() // which ends with the goroutine
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), replayNice)
		before := threadTime()
		r := replayed{Replayed: p.point.Replay(stamps), stamps: stamps}
		r.took = threadTime() - before
		p.done <- r
	}()
}

// threadTime is the CPU time of the calling OS thread.
func threadTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
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
	from, last, why := chooseStamps(&r)
	if why != "" {
		s.rates.fail(why)
		return
	}
	ns, ok := s.betweenStamps(&r.stamps[from], &r.stamps[last], last-from)
	if !ok {
		s.rates.fail("another hold came")
		return
	}
	s.rates.values = append(s.rates.values, float64(r.Accesses[last]-r.Accesses[from])/ns)
}

// chooseStamps chooses two of the stamps that were reached: the last, and of those
// in the middle half of the time until then the one next to its middle.
func chooseStamps(r *replayed) (from, last int, why string) {
	from, last = -1, -1
	for i, n := range r.Accesses {
		if n >= 0 {
			last = i
		}
	}
	if last < 0 {
		return 0, 0, r.End
	}
	to := float64(r.stamps[last].Clock)
	off := func(i int) float64 { return math.Abs(float64(r.stamps[i].Clock) - to/2) }
	for i, n := range r.Accesses[:last] {
		if n > r.Accesses[last] {
			return 0, 0, sampler.Diverged
		}
		if n >= 0 && off(i) <= to/4 && (from < 0 || off(i) < off(from)) {
			from = i
		}
	}
	switch {
	case from >= 0 && r.stamps[from].Clock >= uint64(warmAfter):
		return from, last, ""
	case r.End != "":
		return 0, 0, r.End
	}
	return 0, 0, "moments not told apart"
}

// betweenStamps is the time of the thread's own between two stamps, so many further
// on: without what the stamps, ticks and traps took.
func (s *Session) betweenStamps(a, b *sampler.Stamp, n int) (ns float64, ok bool) {
	ns = float64(b.Clock-a.Clock) - s.budget.tickNS*float64(uint64(n)+b.Ticks-a.Ticks) -
		s.calibration.Cost*float64(b.Traps-a.Traps) - float64(b.Spent-a.Spent)
	return ns, b.Holds == a.Holds && ns > 0
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
		p.Comments = append(p.Comments, fmt.Sprintf("access rate: %.3g per ns, standard error %.1f%%, quartiles %.3g to %.3g, from %d probes; they held threads for %v, and %v of CPU time went into following them",
			r.measured(), 100*r.relativeError(), r.quantile(.25), r.quantile(.75), len(r.values), r.held.Round(time.Microsecond), r.busy.Round(time.Millisecond)))
	}
	if s.hasProbes() && r.source == "default" {
		p.Comments = append(p.Comments, fmt.Sprintf("access rate: assumed; only %d probes found one, want %d", len(r.values), fewestProbes))
	}
}
