package collector

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// While a debug register is armed, some processors copy byte by byte, whatever is copied: what a watched word costs the
// target goes with the time it is armed and with what is copied then, and not with the number of holds. So it is kept to a share of the budget
// by watching nothing for a while, once it is spent, and by freeing registers that have seen what they were armed for. When words are
// watched then depends on what was copied before, and not on what they have still to see: what is given up is censored, like
// what gives way to another datum, and samples that are not watched are like those that find no slot.

const (
	// copyingShare of the budget is what copying may be slowed by; the rest is the holds', and what is not used for copying, too.
	copyingShare = 1.0 / 3
	// watchTurn is the CPU time in which words can be watched, at the rate that copying was slowed at so far, that is saved for
	// before any is watched again.
	watchTurn = 20 * time.Millisecond
	// lookEvery is how often it is looked, while words are watched, whether they still need to be and may be, where they may not be all the time.
	lookEvery = 5 * time.Millisecond
	// lookShare is the most of the time that goes for these looks, of rdx's own.
	lookShare = 0.05
	// seldomLook is how often it is looked where copying is not slowed, whether the kernel copies what is watched itself.
	seldomLook = 50 * time.Millisecond
	// mostCopied are the traps, of nine microseconds each, that the kernel's own accesses to what a thread's slots watch may take.
	mostCopied = 256
	// judgedBy is the CPU time with words watched after which it is known whether they may be all the time.
	judgedBy = 200 * time.Millisecond
)

// copyCost is what watched words cost the target's copying. A nanosecond of CPU time is one of all threads together.
type copyCost struct {
	perByte float64                       // what one copied while a word is watched costs more, ns; 0 where that makes no difference or is not known
	unknown error                         // why it is not
	copied  func(pid int) (uint64, error) // sampler.Copied, or a test's
	of      map[*target.Process]*copies   // that are being sampled

	cpu, watched float64 // ns of CPU time that were looked at, and of these with words watched
	bytes        float64 // copied while words were watched
	cost         float64 // ns
	paused       bool    // nothing is watched until enough is saved
	points       int     // watchpoints that are open in the threads that are sampled

	pauses, givenUp, passed, unread int
	copiedTraps                     uint64 // of the kernel as it did
	failed                          error  // the last failure to read what a process copied
}

// slows is told what a byte that is copied while a word is watched costs more, in ns, or why that is not known.
func (c *copyCost) slows(perByte float64, unknown error) {
	c.copied, c.perByte, c.unknown = sampler.Copied, perByte, unknown
}

// span is a time in which a word was watched, by sampler.Monotonic.
type span struct{ from, to time.Duration }

// union is how long it was between two moments that any of the spans was. It sorts them.
func union(spans []span, from, to time.Duration) (sum time.Duration) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, s := range spans {
		if s.from = max(s.from, from); s.from < min(s.to, to) {
			from = min(s.to, to)
			sum += from - s.from
		}
	}
	return sum
}

// copies is what is known of a process's copying.
type copies struct {
	seen    time.Duration // when it was first, or last settled
	ran     uint64        // process.total then
	read    time.Duration // when its bytes were read
	bytes   uint64        // by then
	watched float64       // ns of the wall since then, by the share of its threads' CPU time

	// Since last settled. Where words are watched in all threads it is their spans that count, else
	// of each thread its share of the time, by its CPU time.
	spans           []span
	shares, weights float64
}

// watchedSpans are the times since last asked in which words were watched in the thread, up to now, and takes them off it.
func (t *thread) watchedSpans(now time.Duration) []span {
	out := t.spans
	t.spans = nil
	for i := range t.slots {
		w := &t.slots[i]
		if w.point == nil {
			continue
		}
		to := now
		if w.silent > 0 {
			to = w.silent
		}
		out = append(out, span{w.since, to})
	}
	return out
}

// noteWatched takes the time that a thread was watched in since its process was last settled.
func (c *copyCost) noteWatched(t *thread, now time.Duration) {
	spans, k := t.watchedSpans(now), c.of[t.process]
	if t.group != nil {
		k.spans = append(k.spans, spans...)
		return
	}
	// A thread copies as much as it runs: of so short a time its ticks don't tell, but of all its time.
	weight := float64(t.cpu) + 1
	if lasted := now - k.seen; lasted > 0 {
		k.shares += weight * float64(union(spans, k.seen, now)) / float64(lasted)
		k.weights += weight
	}
}

// share of the time since it was last settled in which the process was watched, which then begins anew.
func (c *copies) share(now time.Duration) (share float64) {
	switch lasted := now - c.seen; {
	case lasted <= 0:
	case c.weights > 0: // of threads without a group
		share = c.shares / c.weights
	default:
		share = float64(union(c.spans, c.seen, now)) / float64(lasted)
	}
	c.spans, c.shares, c.weights = nil, 0, 0
	return share
}

// settle takes into account what a process has run and copied since it last was: process.readTime, and noteWatched for each of its threads come
// before. Of one that has ended what it copied is not known any more.
func (c *copyCost) settle(p *target.Process, now time.Duration, ended bool) {
	k := c.of[p]
	share, lasted, ran := k.share(now), now-k.seen, p.Total()
	c.cpu += float64(ran - k.ran)
	c.watched += share * float64(ran-k.ran)
	k.watched += share * float64(lasted)
	k.seen, k.ran = now, ran
	if c.perByte == 0 || k.watched == 0 || now <= k.read {
		return
	}
	bytes, err := c.copied(p.PID)
	if err != nil {
		if ended {
			c.unread++
		} else if !errors.Is(err, unix.ESRCH) && !errors.Is(err, fs.ErrNotExist) {
			c.failed = err
		}
		return
	}
	copied := float64(bytes-min(k.bytes, bytes)) * k.watched / float64(now-k.read)
	c.bytes += copied
	c.cost += copied * c.perByte
	k.bytes, k.read, k.watched = bytes, now, 0
}

// add begins to look at a process.
func (c *copyCost) add(p *target.Process) {
	now := sampler.Monotonic()
	c.of[p] = &copies{seen: now, read: now}
}

// forget takes a process that has ended for the last time.
func (c *copyCost) forget(p *target.Process) {
	c.settle(p, sampler.Monotonic(), true)
	delete(c.of, p)
}

// begin notes what a process has copied before it is looked at.
func (c *copyCost) begin(p *target.Process) {
	if c.perByte == 0 {
		return
	}
	var err error
	if c.of[p].bytes, err = c.copied(p.PID); err != nil {
		c.failed = err
	}
}

// allowed is what copying may still be slowed by, in ns, of a target that ran for so many, below 0 what it was too much.
func (c *copyCost) allowed(budget float64, cpu uint64) float64 {
	return copyingShare*budget*float64(cpu) - c.cost
}

// turn decides whether words may be watched from now on.
func (c *copyCost) turn(budget float64, cpu uint64) {
	allowed, before := c.allowed(budget, cpu), c.paused
	switch {
	case allowed < 0:
		c.paused = true
	case c.paused && c.watched > 0:
		c.paused = allowed < c.cost/c.watched*float64(watchTurn)
	}
	if c.paused && !before {
		c.pauses++
	}
}

// limits says whether words may not be watched all the time, as far as is known.
func (c *copyCost) limits(budget float64) bool {
	return c.perByte > 0 && (c.watched < float64(judgedBy) || c.cost > copyingShare*budget*c.watched)
}

// copyLimit keeps what watched words slow copying by to its share of the budget: it looks whether they still need to be watched, and may
// be. It belongs to the tracing thread.
type copyLimit struct {
	targets *targets
	tracing *tracing
	ticks   *tickPace
	watches *watches
	drain   func() // reads what traps are waiting

	looking bool          // once is to be called
	next    time.Duration // after which, where copying is not slowed
	spared  int           // threads whose watches were given up, as the kernel copied what they watch
}

// settle is called at each tick, and at the end.
func (s *copyLimit) settle() {
	c, now := &s.watches.copyCost, sampler.Monotonic()
	for _, t := range s.targets.threads {
		c.noteWatched(t, now)
	}
	if s.watches.byCPU != nil {
		s.watches.shareSpans()
	}
	for _, p := range s.targets.processes.Alive {
		c.settle(p, now, false)
	}
	s.ticks.budget.slowed(c.cost)
}

// look begins to look whether words still need to be watched, and may be.
func (s *copyLimit) look(after time.Duration) {
	c := &s.watches.copyCost
	if s.looking || c.points == 0 || s.tracing.closing {
		return
	}
	if !c.limits(s.ticks.budget.target) {
		if !s.watches.points.Copies {
			return
		}
		after = max(after, s.next)
		s.next = min(2*after, seldomLook)
	}
	s.looking = true
	s.tracing.once(after, s.once)
}

// once is one such look. It is a tick as far as watched words go.
func (s *copyLimit) once() {
	s.looking = false
	if s.tracing.closing {
		return
	}
	began := sampler.Monotonic()
	s.drain()
	s.watches.clearEnded()
	s.spare()
	for _, p := range s.targets.processes.Alive {
		p.ReadTime()
	}
	s.settle()
	s.takeTurns(s.targets.processes.Ran())
	elapsed := sampler.Monotonic() - began
	s.look(max(lookEvery, time.Duration(float64(elapsed)/lookShare)))
}

// spare gives up what threads watch that have the kernel copy it again and again, and touch it not themselves: each
// time costs them a trap for every byte, or word.
func (s *copyLimit) spare() {
	for _, t := range s.targets.threads {
		copied := uint32(0)
		for i := range t.slots {
			if p := t.slots[i].point; p != nil {
				copied += p.Copied()
			}
		}
		if copied > 0 {
			s.next = 0
		}
		if copied > mostCopied && t.stepping == nil {
			s.watches.giveUp(t)
			s.spared++
		}
	}
}

// takeTurns begins or ends a time in which nothing is watched, of a target that has run for so many ns.
func (s *copyLimit) takeTurns(cpu uint64) {
	s.watches.copyCost.turn(s.ticks.budget.target, cpu)
	if !s.watches.copyCost.paused {
		return
	}
	for _, t := range s.targets.threads {
		if t.stepping == nil { // else its time is told by its watches; when the burst is over, by the next look
			s.watches.giveUp(t)
		}
	}
}

// shareSpans has what is watched by CPU for one process watched in all that are, as it is.
func (s *watches) shareSpans() {
	var all []span
	for pass := range 2 {
		for p, g := range s.groupOf {
			k := s.copyCost.of[p]
			switch {
			case !g.byCPU:
			case pass == 0:
				all = append(all, k.spans...)
			default:
				k.spans = slices.Clone(all)
			}
		}
	}
}

// giveUp ends what a thread's slots watch: it is cut off there. The slots are free then.
func (s *watches) giveUp(t *thread) {
	for i := range t.slots {
		w := &t.slots[i]
		if w.point == nil || w.helper {
			continue
		}
		o := w.obs
		waits := o != nil && o.State == record.Used
		s.retire(t, i)
		if waits && o.State == record.Done && o.Kind == model.Censored {
			s.copyCost.gaveUp()
		}
		t.shared.Slots[i].N = 0
		if g := t.group; g != nil {
			g.shared.Slots[i].N = 0
		}
	}
}

// mayWatch says whether a sample that has won a slot may be watched, and counts those that may not for a while.
func (s *watches) mayWatch() bool {
	if s.none != nil {
		return false
	}
	return s.copyCost.allows()
}

// allows says whether words may be watched now, and counts a sample that is not for that.
func (c *copyCost) allows() bool {
	if c.paused {
		c.passed++
	}
	return !c.paused
}

// opened, closed and gaveUp follow what watches do.
func (c *copyCost) opened() { c.points++ }

func (c *copyCost) closed(p *sampler.Watchpoint) {
	c.points--
	c.copiedTraps += uint64(p.Copied())
}

func (c *copyCost) gaveUp() { c.givenUp++ }

// comments are the account's lines about copying.
func (c *copyCost) comments() []string {
	watched := "words were watched for " + ofTarget(1, c.watched, c.cpu) + " CPU time"
	switch {
	case c.unknown != nil:
		return []string{watched + "; whether that slows copying is not known and not in the account, because: " + c.unknown.Error()}
	case c.perByte == 0:
		return []string{watched + ", which does not slow copying here"}
	}
	out := []string{fmt.Sprintf("copying slowed by watched words: %s CPU time, in the account: %s, which read, wrote and faulted in %.1f MB meanwhile, at %.2f ns a byte more; what a program copies by itself can't be seen",
		ofTarget(2, c.cost, c.cpu), watched, c.bytes/1e6, c.perByte)}
	if c.pauses > 0 {
		out = append(out, fmt.Sprintf("to keep that to a third of the budget nothing was watched, only read ahead of, for a while: %d times", c.pauses))
	}
	if c.failed != nil {
		out = append(out, "what is copied could not be read at times, and is not in the account then, because: "+c.failed.Error())
	}
	return out
}
