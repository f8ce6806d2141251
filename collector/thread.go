package collector

import (
	"errors"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// holdLimit is the most threads held a second, a backstop for machines with
// very many busy threads: the one tracing thread serves them all.
const holdLimit = 3000

// holdsPerGap: setting a gap costs ten microseconds, and a gap kept for some
// samples is as far from the program's own periods.
const holdsPerGap = 16

// holdTimeout is after how long a hold that never came is given up: the
// signal was taken away by somebody, or the thread sleeps.
const holdTimeout = time.Second

// thread is one traced thread and its watchpoints.
type thread struct {
	tid     int
	process *process
	index   uint32
	shared  *sampler.Thread // read and written with the kernel
	ticker  *sampler.Ticker
	counter *sampler.Counter // nil if the clock is CPU time
	tally   *sampler.Tally   // for weights, where no clock counts; nil likewise if none could be had
	slots   [sampler.NumSlots]watch

	read    uint64 // of shared.Sampled: already in cpu
	ticks   uint64 // of shared.Ticks: likewise
	passive uint64 // of shared.Unheld: likewise, in unheld
	cpu     uint64 // ticked so far, in the source's unit: CPU time or accesses
	unheld  uint64 // of it, of ticks at which nothing could hold the thread
	looked  uint64 // of shared.Ticks: when it was last seen whether the clock goes on
	clockAt uint64 // the clock then
	// lookedAt is when it was last seen to, wentOn the time before that: from then on
	// it may have stood still.
	lookedAt, wentOn time.Duration
	first            uint64 // what the first tick is to count for in cpu, 0 when it has come
	passed           uint64 // of the gap after the first tick, when it was set
	epoch            *epoch
	// since is when it stopped for its hold, letGo when its last hold ended, letGoTraps how many traps it had then.
	since      time.Duration
	letGo      time.Duration
	letGoTraps uint32
	// interrupted: the hold to come is by an interrupt that is on its way.
	interrupted bool
	// reported is the access of the thread on hold, if its source tells.
	reported *reported
	// stepping is the burst that the thread makes, held again after each step; else nil.
	stepping *stepping
}

// watch is what a slot watches.
type watch struct {
	point  *sampler.Watchpoint
	seq    uint32
	obs    *observation
	helper bool // watches a further word of slot 0's obs
	// stamp traps where the thread goes on after a burst of steps: time is taken from
	// there, as from a use.
	stamp *sampler.Watchpoint
}

// ThreadStarted implements sampler.Handler.
func (s *Session) ThreadStarted(pid, tid int) {
	if s.closing || s.launching {
		return
	}
	p := s.processes[pid]
	if p == nil {
		p = newProcess(pid)
		s.processes[pid] = p
		if s.groups() {
			s.noteCPU(p, sampler.Monotonic()) // it may be gone after two holds
		}
		s.probeHeap(p)
		s.locate.Prepare(pid)
	}
	if err := s.addThread(p, tid); gone(err) {
		return // as we will be told
	} else if err != nil {
		// One thread less is a loss, no thread at all an error.
		s.losses["lost: thread not sampled"]++
		if len(s.threads) == 0 {
			s.fail(err)
		}
	}
}

// gone says of an error that the thread has exited since.
func gone(err error) bool { return errors.Is(err, unix.ESRCH) }

// addThread begins to sample a thread.
func (s *Session) addThread(p *process, tid int) error {
	index, shared, err := s.kernel.AddThread(tid)
	if err != nil {
		return err
	}
	t := &thread{tid: tid, process: p, index: index, shared: shared}
	if s.drawsFirst() {
		t.first, shared.First = uint64(s.gap), sampler.FirstDue
	}
	if t.counter, err = s.kernel.OpenCounter(index, tid); err != nil {
		return errors.Join(err, s.kernel.RemoveThread(index))
	}
	if s.groups() {
		if err := s.join(t); err != nil {
			return errors.Join(err, t.counter.Close(), s.kernel.RemoveThread(index))
		}
	}
	if err := s.openTicker(t); err != nil {
		if s.groups() {
			s.leave(t)
		}
		return errors.Join(err, t.counter.Close(), s.kernel.RemoveThread(index))
	}
	s.threads[tid] = t
	s.byIndex[index] = t
	return nil
}

// drawGap draws the distance to the next ticks. Where most ticks become
// samples it is what makes their gaps geometric; where thinning does that, it
// keeps the ticks out of step with the program's own periods.
func (s *Session) drawGap() uint64 {
	if s.budget.counters {
		return uint64(min(max(s.rand.ExpFloat64(), 0.05), 6) * s.gap)
	}
	return uint64((leastGap + (mostGap-leastGap)*s.rand.Float64()) * s.gap)
}

// drawsFirst says whether a thread's first gap is drawn in another way than the
// next ones. Else a thread would have no tick before three quarters of a gap, and of
// a thousand threads that each run that little none would be seen. But
// the timer goes on with the first gap until it is given the next, which must
// not take long; and counters' gaps have no memory.
func (s *Session) drawsFirst() bool {
	return !s.budget.counters && s.source.Reports() == sampler.NoAccess && s.tracer.RealTime
}

// drawFirst draws the first gap as what is left of a gap at a random moment: so
// that each nanosecond of a thread's run, its first ones, too, has the same
// chance of a tick. (Gaps of length x are met with a probability that goes with
// x, at a place that is uniform in them.)
func (s *Session) drawFirst() uint64 {
	x := math.Sqrt(leastGap*leastGap + s.rand.Float64()*(mostGap*mostGap-leastGap*leastGap))
	return uint64(s.rand.Float64() * x * s.gap)
}

// A timer's gaps are uniform between these, in mean gaps.
const leastGap, mostGap = 0.75, 1.25

// dropThread ends the thread's observations and frees all it has.
func (s *Session) dropThread(t *thread) {
	s.addTotals(t, &s.gone, true)
	t.epoch.to = t.marks(s.kernel)
	if err := errors.Join(t.ticker.Close(), t.tally.Close()); err != nil {
		s.fail(err)
	}
	s.forgetSteps(t)
	s.late.expect(t) // no new one from here on
	s.dropProbe(t)
	for i := range t.slots {
		s.retire(t, i)
	}
	if t.process.group != nil {
		s.leave(t)
	}
	if err := t.counter.Close(); err != nil {
		s.fail(err)
	}
	if err := s.kernel.RemoveThread(t.index); err != nil {
		s.fail(err)
	}
	delete(s.threads, t.tid)
	delete(s.byIndex, t.index)
}

// dropGone drops a thread that has ended, and with it the process's memory if so
// said: what waits for a reuse by the one, or in the other, will not have any.
func (s *Session) dropGone(t *thread, memory bool) {
	var waiting []*observation
	for i := range t.slots {
		waiting = append(waiting, t.slots[i].obs)
	}
	s.dropThread(t)
	for _, o := range waiting {
		if o != nil && (memory || o.stack != model.StackShared) {
			s.outlived(o)
		}
	}
}

func (s *Session) threadsOf(p *process) (n int) {
	for _, t := range s.threads {
		if t.process == p {
			n++
		}
	}
	return n
}

// ThreadExited implements sampler.Handler.
func (s *Session) ThreadExited(tid int, status unix.WaitStatus) {
	if p := s.processes[tid]; p != nil {
		s.past = append(s.past, p)
		delete(s.processes, tid)
	}
	if tid == s.cfg.PID || tid == s.child {
		s.exit = ExitStatus{true, status}
	}
	if t := s.threads[tid]; t != nil {
		s.drain()
		if t.shared.Ticks == 0 {
			s.losses["threads that ended before their first tick"]++
		}
		s.dropGone(t, s.threadsOf(t.process) == 1)
	}
	delete(s.late, tid)
}

// Execed implements sampler.Handler.
func (s *Session) Execed(pid int) {
	s.launching = false
	s.drain()
	for _, t := range s.threads {
		if t.process.pid == pid {
			s.dropGone(t, true)
			delete(s.late, t.tid)
		}
	}
	if p := s.processes[pid]; p != nil {
		s.past = append(s.past, p)
		delete(s.processes, pid)
	}
	s.ThreadStarted(pid, pid)
}

// Hold implements sampler.Handler: the thread is stopped before its next
// instruction.
func (s *Session) Hold(tid int, signal unix.Signal) (ours, running bool) {
	t := s.threads[tid]
	if t == nil || t.shared.Hold != uint32(signal) {
		if t != nil && t.stepping != nil {
			s.interruptSteps(t)
		}
		return s.late.take(tid, signal), false
	}
	// Two signals of a kind become one while pending: the target's own was
	// there first if it bears a sender, and is not ours to take away.
	ours = signal == sampler.Interrupted || sampler.SentByKernel(tid)
	s.locate.InSyscall = true // for all we know
	if t.stepping == nil {
		t.since = s.tracer.StoppedSince(time.Duration(t.shared.HoldTime))
	}
	switch {
	case s.closing:
	case t.stepping == nil && s.steps() && !ours:
		s.loseHold("the target's own signal came first") // and may have a handler, which is not what comes next
	case t.stepping == nil:
		s.sample(t)
	case ours:
		s.step(t)
	default:
		s.interruptSteps(t)
		return false, !s.locate.InSyscall
	}
	if t.stepping != nil {
		return ours, !s.locate.InSyscall // on hold until its last step
	}
	s.endHold(t)
	return ours, !s.locate.InSyscall
}

// endHold is called before a thread is let go.
func (s *Session) endHold(t *thread) {
	if err := s.placement.Note(int(t.shared.HoldCpu)); err != nil {
		s.fail(err)
	}
	t.release()
	now := sampler.Monotonic()
	t.noteLetGo(now)
	s.held.add(now - t.since)
}

// LetGo implements sampler.Handler.
func (s *Session) LetGo() {
	s.findBlocks()
	if s.groups() {
		s.drain()
		s.clearEnded()
	}
}

// Repeats implements sampler.Handler: of the access about to be made again it
// can't be told whether its trap was of the use or will be.
func (s *Session) Repeats(tid int) {
	t := s.threads[tid]
	if t == nil || t.shared.TrapSlot >= uint32(len(t.slots)) {
		return
	}
	s.drain()
	slot := int(t.shared.TrapSlot)
	shared, o := &t.shared.Slots[slot], t.slots[slot].obs
	if shared.State == sampler.SlotDone || o == nil || o.state == done || o.state == void {
		return // it has gone silent
	}
	s.loseObserved(o, "signal handler between the trap of a use and the use")
	shared.State, shared.N = sampler.SlotFree, 0
	s.retire(t, slot)
}

// release lets on_sample go on with a thread that was held. A slot that won
// the draw and was not used after all, because the reuse was read ahead or
// nothing could be watched, is as free as before: the next candidate must not
// find the draw harder for it.
func (t *thread) release() {
	shared := t.shared
	t.interrupted = false
	if shared.HoldSlot == sampler.NoSlot {
		shared.Holds++
		shared.Hold = 0
		return
	}
	slot := &shared.Slots[shared.HoldSlot]
	if slot.State == sampler.SlotFree || slot.State == sampler.SlotDone || slot.State == sampler.SlotAgain {
		slot.N = 0
		// In a group the slot may be another thread's, who has kept it.
		if g := t.process.group; g != nil && g.slots[shared.HoldSlot].owner == nil {
			g.shared.Slots[shared.HoldSlot].N = 0
		}
	}
	shared.Holds++
	shared.Hold = 0
}

// undraw takes a hold out of those that drew for a half line's slot, won or
// lost, for nothing of it is left to be watched: all its accesses were reused as
// far as was read ahead. Where most holds are like that, a datum that is never reused
// would else be watched for the rest of the run, and the few others lose against it.
func (t *thread) undraw() {
	if n := &t.shared.Slots[0].N; *n > 0 {
		*n--
	}
}

// interrupt holds a thread that no signal can.
func (s *Session) interrupt(t *thread) {
	if s.closing || t.shared.Hold != uint32(sampler.Interrupted) {
		return
	}
	if !s.tracer.Interrupt(t.tid) {
		t.shared.Hold = 0
		s.loseHold("thread that blocks the hold signals in a system call")
		return
	}
	t.interrupted = true
	// Up to now it ran.
	now := sampler.Monotonic()
	s.interrupts.add(now - time.Duration(t.shared.HoldTime))
	t.shared.HoldTime = uint64(now)
}

// Pending implements sampler.Handler.
func (s *Session) Pending() bool { return len(s.late) > 0 }

// lateHolds are the signals, as bits, that were sent to hold a thread which
// has not stopped by them yet and need not any more. The target must not see
// them.
type lateHolds map[int]uint64

func (l lateHolds) expect(t *thread) {
	if hold := unix.Signal(t.shared.Hold); hold != 0 && (hold != sampler.Interrupted || t.interrupted) {
		l[t.tid] |= bitOf(hold)
	}
}

// bitOf is a signal's bit. Signals are 1 to 64, rdx's own less than that.
func bitOf(signal unix.Signal) uint64 {
	if signal == sampler.Interrupted {
		return 1 // it must not be missed: what it came into is to be made again
	}
	return 1 << signal
}

// take says whether the signal is one of them, and no longer expects it.
func (l lateHolds) take(tid int, signal unix.Signal) bool {
	bit := bitOf(signal)
	if l[tid]&bit == 0 || signal != sampler.Interrupted && !sampler.SentByKernel(tid) {
		return false
	}
	if l[tid] &^= bit; l[tid] == 0 {
		delete(l, tid)
	}
	return true
}

// sample takes an access of the held thread: reads ahead for its reuse, and
// watches for it in the slot it has won if it does not come so soon.
func (s *Session) sample(t *thread) {
	t.turnEpoch(s.kernel)
	if s.source.Reports() != sampler.NoAccess {
		s.sampleReported(t)
		return
	}
	if s.budget.counters || t.shared.Holds%holdsPerGap == 0 {
		t.redraw(s)
	}
	g := t.process.group
	if g != nil {
		s.noteCPU(t.process, sampler.Monotonic())
		// Slots that have served give room for more words of this datum's line.
		s.drain()
		s.clearEnded()
	}
	if s.wantProbe(t) {
		s.startProbe(t)
		return
	}
	s.locate.StackTop = t.shared.StackTop
	if s.steps() {
		s.beginSteps(t)
		return
	}
	start := sampler.Monotonic()
	ahead, err := s.locate.Ahead(t.process.pid, t.tid, s.skips(), s.perHoldWanted(), s.burst, s.block(), s.rand.IntN)
	s.reading.add(sampler.Monotonic() - start)
	if err != nil {
		s.decline(err)
		return
	}
	if s.locate.InSyscall {
		s.inSyscall++
		if t.shared.Hold == uint32(sampler.Interrupted) {
			s.loseHold("thread that blocks the hold signals in a system call")
			return
		}
	}
	s.tally(t, &ahead)
	// That no other thread comes in between can't be read ahead.
	watch := t.shared.HoldSlot != sampler.NoSlot && (ahead.Reuse == 0 || g != nil && len(g.members) > 1)
	for i := range ahead.Others {
		s.readOnly(t, &ahead.Others[i], s.observe(t, &ahead.Others[i]))
	}
	o := s.observe(t, &ahead.Followed)
	if watch && ahead.Reuse == 0 {
		s.stoodFor += max(o.times()-1, 0)
	}
	if s.halves && g == nil && ahead.Reuse > 0 {
		t.undraw()
	}
	if watch {
		s.watchFor(t, &ahead, o)
	} else {
		s.readOnly(t, &ahead.Followed, o)
	}
}

// decline counts a hold that could not be read ahead of.
func (s *Session) decline(err error) {
	var declined *sampler.Declined
	if errors.As(err, &declined) {
		s.loseHold(declined.Label())
	} else {
		s.loseHold("held thread not readable")
	}
}

// tally counts what was seen in a hold.
func (s *Session) tally(t *thread, ahead *sampler.Ahead) {
	s.ends[ahead.End]++
	s.readAhead += ahead.Accesses
	s.touched += ahead.Touches
	s.holdsUsed++
	// Libraries of a program that just started are not known yet.
	t.process.note(ahead.Use.PC)
	t.process.refresh()
}

// usesPerHold are so many because most of a hold's cost does not depend on
// them, and few enough that those of a hold have not all the same to tell: they
// lie within some hundred accesses.
const usesPerHold = 8

// candidatesPerUse: the more accesses are looked at, the more holds find one whose
// reuse is far, which tells of the caches beyond the first, but the further must be
// read ahead. Of xz 28, 48 and 90 % of the holds find one with 1, 2 and 8, and a
// budget pays for 67, 53 and 43 holds.
const candidatesPerUse = 2

// skipMost bounds how far on from the tick the accesses of a hold lie.
const skipMost = 255

// perHoldWanted is how many observations a hold should give.
func (s *Session) perHoldWanted() int {
	switch {
	case !s.readsLosers():
		return 1
	case s.steps():
		return usesPerBurst
	}
	return usesPerHold
}

// skips draws the accesses of a hold from which those to be observed are chosen.
// They are random ones of those after the tick: a timer stops a thread most often
// at slow accesses; some way on, the choice no longer depends on them.
func (s *Session) skips() []int {
	if s.skip == nil {
		n := s.perHoldWanted()
		if n > 1 {
			n *= candidatesPerUse
		}
		s.skip = make([]int, n)
	}
	for i := range s.skip {
		if s.burst > 0 {
			s.skip[i] = s.rand.IntN(min(s.burst, skipMost))
		}
	}
	return s.skip
}

// observe makes an observation of a sampled access.
func (s *Session) observe(t *thread, f *sampler.Followed) *observation {
	if f.Reuse == 0 {
		s.reached.add(f.After)
	}
	o := &observation{
		process:  t.process,
		tid:      t.tid,
		op:       model.Load,
		pc:       f.Use.PC,
		next:     f.Use.Next,
		after:    f.After,
		distinct: f.Distinct,
		addr:     max(f.Use.Addr, f.Word),
		stack:    s.chooseStack(t.process),
		instead:  f.Share * float64(s.perHoldWanted()),
		hold:     s.holdsUsed,
		blocks:   f.Use.Blocks(s.block()),
		place:    placeOf(t.process, f.Use.PC),
	}
	if f.Use.Store {
		o.op = model.Store
	}
	s.unplaced = append(s.unplaced, o)
	return o
}

// readOnly takes an access that is not watched, for what was read ahead of it:
// its reuse, or that there is none so soon.
func (s *Session) readOnly(t *thread, f *sampler.Followed, o *observation) {
	o.state = done
	o.end = float64(sampler.Monotonic())
	o.useStack = s.stacks.add(t, o.pc, f.Stack, o.addr)
	t.enterEpoch(o)
	if f.Reuse > 0 {
		o.kind, o.counted, o.soon = model.Reuse, f.Reuse, true
		o.reuse = s.stacks.add(t, f.ReusePC, f.ReuseStack, 0)
		s.pairs++
	} else {
		o.kind, o.passed, o.counted = model.Censored, !s.steps(), f.After+1
	}
	s.seen = append(s.seen, o)
}

// watchFor watches for an access's reuse in the slot the thread has won.
func (s *Session) watchFor(t *thread, ahead *sampler.Ahead, o *observation) {
	g := t.process.group
	if ahead.Reuse > 0 {
		o.counted, o.after, o.soon, o.checked = ahead.Reuse, 0, true, true
	}
	before, arm := ahead.Before, armLine((*sampler.Kernel).Arm)
	if s.lines && !s.halves {
		before, arm = ahead.LineBefore, s.cfg.armLine
	}
	if before > beforeMost {
		s.loseObserved(o, "word touched too often before the use")
		return
	}
	if s.halves {
		s.watchHalf(t, ahead, o)
		return
	}
	slot := int(t.shared.HoldSlot)
	if failed := s.arm(t, slot, ahead.Word, sampler.SlotArmed, before, 2+before+s.oneAgain(), arm); failed != "" {
		s.loseObserved(o, failed)
		return
	}
	t.enterEpoch(o)
	o.use = ahead.Stack
	t.shared.Slots[slot].Stacks = sampler.TrapStacks
	o.word = ahead.Word
	t.slots[slot].obs = o
	if g != nil {
		s.watchOthers(t, slot, ahead.Word, o)
	}
}

// beforeMost bounds the traps a thread is charged with before the use.
const beforeMost = 32

// arm watches word, or its line, in a slot, by way of open, for traps accesses of which the first skip do
// not count. What failed, if anything did, is the caller's to count.
func (s *Session) arm(t *thread, slot int, word uint64, state sampler.SlotState, skip, traps int, open armLine) (failed string) {
	if g := t.process.group; g != nil {
		s.vacate(g, slot)
		g.occupy(slot, t)
	}
	s.retire(t, slot)
	point, err := open(s.kernel, t.tid, slot, word, traps)
	if err != nil && t.process.group != nil {
		t.process.group.release(s, t, slot)
	}
	if errors.Is(err, sampler.ErrNoSlot) {
		return sampler.ErrNoSlot.Error()
	} else if err != nil {
		if !gone(err) { // killed while held
			s.fail(err)
		}
		return "watchpoint not armed"
	}
	shared := &t.shared.Slots[slot]
	shared.Seq++
	shared.Skip = uint32(skip)
	shared.Stacks = 0
	shared.Blind = 0
	shared.AgainClock = 0
	shared.State = state
	t.slots[slot] = watch{point: point, seq: shared.Seq}
	return ""
}

// retire ends what the slot watches: a use still without its reuse becomes a
// censored observation of the age it reached.
//
// In a group the thread may be running: the clock is read before and the state
// looked at after the watchpoint is gone.
func (s *Session) retire(t *thread, slot int) {
	w := &t.slots[slot]
	if w.point == nil {
		return
	}
	shared := &t.shared.Slots[slot]
	var now reading
	if shared.State == sampler.SlotUsed || shared.State == sampler.SlotArmed || shared.AgainClock != 0 {
		now = s.read(t, w)
	}
	if err := w.point.Close(); err != nil {
		s.fail(err)
	}
	s.closeStamp(w)
	if g := t.process.group; g != nil {
		g.release(s, t, slot)
	}
	// The traps it has seen are still to be read.
	s.drain()
	switch {
	case w.helper:
	case w.obs.half && w.obs.state == done:
		s.censorPair(w.obs, now.since)
		if age, ok := now.since(shared.AgainClock, w.obs.lag); ok {
			s.endAgain(w.obs, age)
		}
	case shared.State == sampler.SlotUsed && w.obs.state == used:
		if age, ok := now.since(shared.UseClock, w.obs.lag); !ok {
			s.loseObserved(w.obs, "watchpoint clock not readable")
		} else if w.obs.blind || shared.Blind != 0 {
			s.loseObserved(w.obs, "not watched in all threads")
		} else {
			w.obs.censor(age, s)
			w.obs.pairNative = w.obs.native
			w.obs.end = float64(sampler.Monotonic())
			w.obs.wall = max(w.obs.end-float64(shared.UseTime)-s.calibration.Cost, 1)
		}
	case shared.State == sampler.SlotArmed:
		s.loseObserved(w.obs, "use not seen")
	}
	shared.State = sampler.SlotFree
	*w = watch{}
	if s.halves && slot == 0 {
		for i := 1; i < sampler.NumSlots; i++ {
			s.retire(t, i)
		}
	}
}

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
		t.nextEpoch(marks{})
	}
	t.epoch.cpu += d - unheld
	t.epoch.unheld += unheld
}

// redraw gives the thread new gaps, each of its events one of its own.
func (t *thread) redraw(s *Session) {
	t.account()
	for i := range t.ticker.Len() {
		t.redrawOne(s, i)
	}
	s.cut(t)
}

// cut accounts for periods that are given up before they end, or that have
// only begun: what is counted in them makes no tick. They are one mean gap
// long on average, with random gaps.
func (s *Session) cut(t *thread) { s.gone.cut += cutGaps * s.gap * float64(t.ticker.Len()) }

const cutGaps = 2

// redrawOne gives one event a new gap.
func (t *thread) redrawOne(s *Session, event int) {
	if event >= t.ticker.Len() {
		return // the source was replaced
	}
	if err := t.ticker.SetGapOf(event, t.drawGap(s)); err != nil {
		s.fail(err)
	}
	if t.first == 0 {
		t.shared.First = 0
	}
}

// drawGap draws the thread's next gap, which may be its first.
func (t *thread) drawGap(s *Session) uint64 {
	if t.first > 0 {
		return s.drawFirst()
	}
	return s.drawGap()
}

// endFirst gives the thread, which still runs, a gap after its first tick.
func (t *thread) endFirst(s *Session, ticked time.Duration) {
	t.account()
	t.first = 0 // also if the tick did not count
	gap := s.drawGap()
	t.passed = min(uint64(max(sampler.Monotonic()-ticked, 0)), gap/2)
	gap -= t.passed
	if t.ticker.Len() == 0 {
		return // the source was replaced
	}
	if err := t.ticker.SetGapOf(0, gap); err != nil {
		s.fail(err)
	}
	t.shared.First = 0
}

// expireHold gives up a hold that never came.
func (t *thread) expireHold(s *Session) {
	if s.loseSteps(t) {
		return
	}
	if t.shared.Hold != 0 && sampler.Monotonic()-time.Duration(t.shared.HoldTime) > holdTimeout {
		s.late.expect(t)
		t.shared.Hold, t.reported, t.interrupted = 0, nil, false
		s.loseHold("hold did not stop the thread")
	}
}
