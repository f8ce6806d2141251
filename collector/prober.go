package collector

import (
	"errors"
	"math"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
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
	// probeShare of the budget goes into probes; of a program where fewer than one in oneOf finds a rate, less.
	probeShare, oneOf = 0.2, 8
	// replayFirst and a replayShare of the time may go into interpreting, beside the
	// target: the first probes tell most.
	replayFirst, replayShare = 300 * time.Millisecond, 0.025
	// replayInstructions are to be interpreted for a probe, some 25 ms: code that is fast
	// is followed less far. It has warm caches the sooner.
	replayInstructions = 1.5e6
	// A probe follows a thread for so long.
	shortestLead, longestLead = 400 * time.Microsecond, 2 * time.Millisecond
	// Where to follow it takes longer than replayTime, as it comes by a page that must be read with nearly each access, it is
	// for less, but for leastLead.
	replayTime, leastLead = 80 * time.Millisecond, 280 * time.Microsecond
	// warmAfter a hold the time of a thread is taken.
	warmAfter = 80 * time.Microsecond
	// ownShare of the time between two stamps must be the thread's own.
	ownShare = 0.6
	// stampsDue is when the stamps of a thread that runs have come.
	stampsDue = 2 * time.Millisecond
	// probeTimeout is when a probe whose thread does not get to its stamps is given up.
	probeTimeout = time.Second
)

// prober finds access rates.
type prober struct {
	account *account
	cfg     *Config
	holds   *holds
	kernel  *sampler.Kernel
	locate  *ahead.Locator
	src     *sourceState
	ticks   *tickPace
	timing  *timing // what traps take
	tracing *tracing
	drain   func() // reads what traps are waiting

	estimate.Probes
	perNS    float64       // instructions a nanosecond, of the latest probes
	room     time.Duration // for so long there was room for the pages that a thread comes by; 0: it is not known
	slowdown float64       // how many times as long as a thread takes it took to follow it, the last time
	fast     float64       // of the latest window read ahead, if no data are waited for
	probe    probe
	stamps   int
	taken    uint64          // holds for probes
	lastHeld *target.Process // which a thread was held of last

}

// probe is the one at work.
type probe struct {
	state   probeState
	process *target.Process
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
	process *target.Process
	stamps  []sampler.Stamp
	cpuTime time.Duration // CPU time
}

// stampsAfter are the moments after a hold at which a thread is stamped. What is timed is
// about the second half of the way to the last that was reached.
func (p *prober) stampsAfter() []time.Duration {
	lead := shortestLead
	if p.perNS > 0 {
		lead = min(max(time.Duration(replayInstructions/p.perNS), shortestLead), longestLead)
	}
	if p.room > 0 {
		lead = min(lead, p.room)
	}
	if p.slowdown > 0 {
		lead = min(lead, max(time.Duration(float64(replayTime)/p.slowdown), leastLead))
	}
	first := warmAfter + warmAfter/10 // the clock is without what the profiler took
	var after []time.Duration
	for _, part := range []float64{0, .5, 1} {
		after = append(after, first+time.Duration(part*float64(lead-first)))
	}
	return after
}

// fail counts a probe that gave nothing.
func (p *prober) fail(why model.Reason) {
	if p.Failed == nil {
		p.Failed = make(map[model.Reason]int)
	}
	p.Failed[why]++
	p.probe.state = idle
}

// stampCosts is told what a stamp costs, in ns, 0 if that is not known: as a tick then, unless it was told before.
func (p *prober) stampCosts(ns float64) {
	if p.StampNS == 0 {
		p.StampNS = ns
	}
}

// foretold is told how fast the latest window that was read ahead is if no data are waited for, 0 if that is not known.
func (p *prober) foretold(fast float64) {
	if fast > 0 {
		p.fast = fast
	}
}

// share of the budget that probes may have: what does not succeed is tried more and more seldom.
func (p *prober) share() float64 {
	return probeShare * min(1, oneOf*float64(len(p.Values)+1)/float64(p.Tried()+1))
}

// used says whether the session has any probes.
func (p *prober) used() bool {
	return p.cfg.MeasureRate && p.holds.burst > 0 && p.cfg.AccessRate == 0 && p.timing.clock.Counted == nil && p.src.source.Reports() == sampler.NoAccess
}

// stampCost is what probes cost the target, besides their holds.
func (p *prober) stampCost() time.Duration {
	return time.Duration(float64(p.stamps) * p.StampNS)
}

// drive moves the probe on, between holds, of a target that has run for so many ns.
func (p *prober) drive(cpu uint64) {
	if !p.used() {
		return
	}
	b := &p.probe
	now := sampler.Monotonic()
	switch b.state {
	case idle:
		p.plan(cpu)
	case planning:
		select {
		case err := <-b.planned:
			b.state, b.since = ready, now
			if err != nil {
				p.failProbe(err)
			}
		default:
		}
	case ready:
		if now-b.since > probeTimeout {
			b.state = idle // the process has not been held since: its pages are others by now
		}
	case stamping:
		if b.stamps.All() || now-b.since > probeTimeout {
			p.replay()
		}
	case replaying:
		select {
		case r := <-b.done:
			p.Busy += r.cpuTime
			p.takeProbe(r)
		default:
		}
	}
}

// plan begins a probe if what they have cost so far leaves one.
func (p *prober) plan(cpu uint64) {
	cost := p.ticks.budget.charge(p.taken, p.Held) + float64(p.stampCost())
	replays := p.Busy <= replayFirst+time.Duration(replayShare*float64(time.Since(p.tracing.start)))
	share := p.share()
	if p.cfg.replayEagerly {
		replays, share = true, probeShare
	}
	if p.lastHeld == nil || !replays || cost > share*p.ticks.budget.target*float64(cpu) {
		return
	}
	b := &p.probe
	if b.point == nil {
		b.point, b.planned, b.done = ahead.NewCheckpoint(), make(chan error, 1), make(chan replayed, 1)
	}
	b.state, b.process = planning, p.lastHeld
	go func(point *ahead.Checkpoint, planned chan<- error, pid int) { planned <- point.Plan(pid) }(b.point, b.planned, b.process.Via)
}

func (p *prober) failProbe(err error) {
	var declined *ahead.Declined
	if errors.As(err, &declined) {
		p.fail(model.Reason(declined.Label()))
	} else {
		p.fail(model.ProbeUnreadable)
	}
}

// wantProbe says whether this hold is to be a probe.
func (p *prober) wantProbe(t *thread) bool {
	p.lastHeld = t.process
	return p.probe.state == ready && p.probe.process == t.process && sampler.Monotonic() >= p.probe.since
}

// startProbe takes the held thread's checkpoint.
func (p *prober) startProbe(t *thread) {
	b := &p.probe
	start := sampler.Monotonic()
	err := b.point.Take(p.locate, t.tid)
	if err == nil {
		after := p.stampsAfter()
		p.stamps += len(after)
		b.stamps, err = p.kernel.Stamps(t.index, t.tid, after)
	}
	p.taken++
	p.Held += sampler.Monotonic() - start
	if err != nil {
		p.failProbe(err)
		return
	}
	b.state, b.thread, b.since = stamping, t, start
	p.tracing.once(stampsDue, p.tend)
}

// tend begins the replay when the stamps are due: the sooner, the less has changed of what it has still to read.
func (p *prober) tend() {
	p.drain()
	if b := &p.probe; b.state == stamping && b.stamps.All() {
		p.replay()
	}
}

// replay has the checkpoint interpreted.
func (p *prober) replay() {
	b := &p.probe
	stamps := b.stamps.Read()
	if err := b.stamps.Close(); err != nil {
		p.account.fail(err)
	}
	b.thread = nil
	if len(stamps) == 0 || p.tracing.closing {
		p.fail(model.ProbeNotRun)
		return
	}
	b.state = replaying
	point, process, done := b.point, b.process, b.done
	usual, fast := p.perNS, p.fast
	go func() {
		runtime.LockOSThread() // for its CPU time; it ends with the goroutine
		before := threadTime()
		r := replayed{Replayed: point.Replay(stamps, usual, fast), process: process, stamps: stamps}
		r.cpuTime = threadTime() - before
		done <- r
	}()
}

// threadTime is the CPU time of the calling OS thread.
func threadTime() time.Duration { return clockTime(unix.CLOCK_THREAD_CPUTIME_ID) }

func clockTime(clock int32) time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(clock, &ts)
	return time.Duration(ts.Nano())
}

// drop ends the stamps of a thread that is gone.
func (p *prober) drop(t *thread) {
	if b := &p.probe; b.state == stamping && b.thread == t {
		p.replay()
	}
}

// takeProbe takes what came of a probe.
func (p *prober) takeProbe(r replayed) {
	p.probe.state = idle
	if r.PerNS > 0 {
		if p.perNS == 0 {
			p.perNS = r.PerNS
		}
		p.perNS = (p.perNS + r.PerNS) / 2
	}
	if last := r.stamps[len(r.stamps)-1].Clock; (r.End == "" || r.End == ahead.NoRoom) && last > 0 {
		p.slowdown = float64(r.cpuTime) / float64(last)
	}
	if n := len(r.stamps) - 1; r.End == ahead.NoRoom && r.Accesses[n] < 0 {
		p.room = max(time.Duration(r.stamps[n].Clock)/2, leastLead)
	}
	from, middle, last, why := chooseStamps(&r)
	if why != "" {
		p.fail(why)
		return
	}
	rate, why := p.rateBetween(&r, from, last)
	if why != "" {
		p.fail(why)
		return
	}
	p.addLegs(&r, from)
	p.Values = append(p.Values, rate)
	if middle < 0 {
		return
	}
	before, why1 := p.rateBetween(&r, from, middle)
	later, why2 := p.rateBetween(&r, middle, last)
	if why1 == "" && why2 == "" {
		p.Before, p.Later = append(p.Before, before), append(p.Later, later)
	}
}

// rateBetween is the rate between two stamps of a replay, or why it is not known.
func (p *prober) rateBetween(r *replayed, from, to int) (rate float64, why model.Reason) {
	ns, why := p.betweenStamps(&r.stamps[from], &r.stamps[to], to-from)
	return float64(r.Accesses[to]-r.Accesses[from]) / ns, why
}

// chooseStamps chooses two of the stamps that were reached: the last, and of those after
// which caches are warm the one next to the middle of the time until then; and between
// these the one next to the middle, -1 if there is none.
func chooseStamps(r *replayed) (from, middle, last int, why model.Reason) {
	last = -1
	for i, n := range r.Accesses {
		if n >= 0 {
			last = i
		}
	}
	if last < 0 {
		return 0, 0, 0, model.Reason(r.End)
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
		return 0, 0, 0, model.Reason(r.End)
	}
	return 0, 0, 0, model.ProbeMoments
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
func (p *prober) betweenStamps(a, b *sampler.Stamp, n int) (ns float64, why model.Reason) {
	all := float64(b.Clock - a.Clock)
	ns = all - p.StampNS*float64(n) - p.ticks.budget.tickNS*float64(b.Ticks-a.Ticks) -
		p.timing.calibration.Cost*float64(b.Traps-a.Traps) - float64(b.Spent-a.Spent)
	switch {
	case b.Holds != a.Holds:
		return 0, model.ProbeAnotherHold
	case ns < ownShare*all:
		return 0, model.ProbeTraps
	}
	return ns, ""
}

// addLegs takes the legs between the stamps of a replay that were reached
// after a while; of those after the stamp warm caches are as warm as they get.
func (p *prober) addLegs(r *replayed, warm int) {
	from := -1
	for i, n := range r.Accesses {
		switch {
		case n < 0 || r.stamps[i].Clock < uint64(warmAfter):
			continue
		case from < 0:
		case r.stamps[i].Clock-r.stamps[from].Clock < estimate.ShortestLeg:
			continue
		default:
			made := n - r.Accesses[from]
			if ns, why := p.betweenStamps(&r.stamps[from], &r.stamps[i], i-from); why == "" && made > 0 {
				p.Legs = append(p.Legs, estimate.Leg{
					Probe: len(p.Values), Warm: from >= warm, Ns: ns, Accesses: float64(made),
					Code: r.codeBetween(r.Accesses[from], n),
				})
			}
		}
		from = i
	}
}

// codeBetween are the accesses by block of code.
func (r *replayed) codeBetween(from, to int) map[record.CodeBlock]float64 {
	code, before := make(map[record.CodeBlock]float64), 0
	for _, c := range r.Code {
		if n := float64(min(c.Until, to) - max(before, from)); n > 0 {
			code[record.CodeAt(r.process, c.PC)] += n
		}
		before = c.Until
	}
	return code
}
