package collector

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// holdTimeout is after how long a hold that never came is given up: the
// signal was taken away by somebody, or the thread sleeps.
const holdTimeout = time.Second

// handler serves the stops of threads (ptrace.Handler). It belongs to the tracing thread.
type handler struct {
	account    *account
	copyLimit  *copyLimit
	holds      *holds
	locate     *ahead.Locator
	neighbours *neighbours
	prober     *prober
	stepper    *stepper
	targets    *targets
	ticks      *tickPace
	timing     *timing
	tracing    *tracing
	watches    *watches
	drain      func() // reads what traps are waiting

	late      lateHolds
	placement sampler.Placement
	heldOn    int // CPU of the thread that was held last
}

// Hold implements ptrace.Handler: the thread is stopped before its next
// instruction.
func (s *handler) Hold(tid int, signal unix.Signal) (ours, running bool) {
	t := s.targets.threads[tid]
	if t == nil || t.shared.Hold != uint32(signal) {
		if t != nil && t.stepping != nil {
			s.interruptSteps(t)
		}
		return s.late.take(tid, signal), false
	}
	// Two signals of a kind become one while pending: the target's own was
	// there first if it bears a sender, and is not ours to take away.
	s.watches.hold(true)
	ours = signal == ptrace.Interrupted || ptrace.SentByKernel(tid)
	s.locate.InSyscall = true // for all we know
	if t.stepping == nil {
		t.stopped(s.tracing.tracer.StoppedSince(time.Duration(t.shared.HoldTime)))
		s.noteWake(t)
		s.holds.stages.enter(t.since, sampler.Monotonic())
	}
	switch {
	case s.tracing.closing:
	case t.stepping == nil && s.holds.steps() && !ours:
		s.holds.loseHold(model.SignalOfTarget) // and may have a handler, which is not what comes next
	case t.stepping == nil:
		s.holds.sample(t)
	case ours:
		s.stepper.next(t)
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

// noteWake is called at the beginning of a hold that is not a step.
func (s *handler) noteWake(t *thread) {
	if needed, ok := s.tracing.tracer.WokeAfter(time.Duration(t.shared.HoldTime)); ok {
		s.timing.wakes.add(min(needed, mostResume))
	}
}

// endHold is called before a thread is let go.
func (s *handler) endHold(t *thread) {
	if err := s.placement.Note(int(t.shared.HoldCpu)); err != nil {
		s.account.fail(err)
	}
	t.release()
	now := sampler.Monotonic()
	t.noteLetGo(now)
	s.timing.held.add(now - t.since)
	s.holds.stages.end(stageRest, now)
	s.heldOn = int(t.shared.HoldCpu)
	s.ticks.held()
}

// LetGo implements ptrace.Handler.
func (s *handler) LetGo() {
	if s.timing.busy {
		if err := s.placement.GiveWay(s.heldOn); err != nil {
			s.account.fail(err)
		}
		defer func() {
			if err := s.placement.Return(); err != nil {
				s.account.fail(err)
			}
		}()
	}
	s.watches.hold(false)
	s.ticks.tell()
	if told := s.holds.finish(); told != nil {
		s.prober.foretold(s.holds.lookAt(told, s.targets.heap))
		s.watches.renew(told)
	}
	s.copyLimit.look(lookEvery)
	s.targets.findData()
	s.neighbours.keep()
	s.locate.Tend()
	s.targets.followVia()
	if s.watches.groups() {
		s.drain()
		s.watches.clearEnded()
	}
}

// Repeats implements ptrace.Handler: of the access about to be made again it
// can't be told whether its trap was of the use or will be.
func (s *handler) Repeats(tid int) {
	t := s.targets.threads[tid]
	if t == nil || t.shared.TrapSlot >= uint32(len(t.slots)) {
		return
	}
	s.drain()
	slot := int(t.shared.TrapSlot)
	shared, o := &t.shared.Slots[slot], t.slots[slot].obs
	if shared.State == sampler.SlotDone || o == nil || o.State == record.Done || o.State == record.Void {
		return // it has gone silent
	}
	s.account.loseObserved(&o.Observation, model.HandlerBetween)
	shared.State, shared.N = sampler.SlotFree, 0
	s.watches.retire(t, slot)
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
	if slot.State == sampler.SlotFree || slot.State == sampler.SlotDone {
		slot.N = 0
		// In a group the slot may be another thread's, who has kept it.
		if g := t.group; g != nil && g.slots[shared.HoldSlot].owner == nil {
			g.shared.Slots[shared.HoldSlot].N = 0
		}
	}
	shared.Holds++
	shared.Hold = 0
}

// undraw takes a hold out of those that drew for a slot, won or
// lost, as it times a lap in it, or for nothing of it is left to be watched in half a line: all its accesses were reused as
// far as was read ahead. Where most holds are like that, a datum that is never reused
// would else be watched for the rest of the run, and the few others lose against it.
func (t *thread) undraw(slot int) {
	if n := &t.shared.Slots[slot].N; *n > 0 {
		*n--
	}
}

// interrupt holds a thread that no signal can.
func (s *handler) interrupt(t *thread) {
	if s.tracing.closing || t.shared.Hold != uint32(ptrace.Interrupted) {
		return
	}
	if !s.tracing.tracer.Interrupt(t.tid) {
		t.shared.Hold = 0
		s.holds.loseHold(model.SignalsInSyscall)
		return
	}
	t.interrupt()
	// Up to now it ran.
	now := sampler.Monotonic()
	s.timing.interrupts.add(now - time.Duration(t.shared.HoldTime))
	t.shared.HoldTime = uint64(now)
}

// Pending implements ptrace.Handler.
func (s *handler) Pending() bool { return len(s.late) > 0 }

// lateHolds are the signals, as bits, that were sent to hold a thread which
// has not stopped by them yet and need not any more. The target must not see
// them.
type lateHolds map[int]uint64

func (l lateHolds) expect(t *thread) {
	if hold := unix.Signal(t.shared.Hold); hold != 0 && (hold != ptrace.Interrupted || t.interrupted) {
		l[t.tid] |= bitOf(hold)
	}
}

// bitOf is a signal's bit. Signals are 1 to 64, rdx's own less than that.
func bitOf(signal unix.Signal) uint64 {
	if signal == ptrace.Interrupted {
		return 1 // it must not be missed: what it came into is to be made again
	}
	return 1 << signal
}

// take says whether the signal is one of them, and no longer expects it.
func (l lateHolds) take(tid int, signal unix.Signal) bool {
	bit := bitOf(signal)
	if l[tid]&bit == 0 || signal != ptrace.Interrupted && !ptrace.SentByKernel(tid) {
		return false
	}
	if l[tid] &^= bit; l[tid] == 0 {
		delete(l, tid)
	}
	return true
}

// expire gives up a thread's hold that never came.
func (s *handler) expire(t *thread) {
	if s.loseSteps(t) {
		return
	}
	if t.shared.Hold != 0 && sampler.Monotonic()-time.Duration(t.shared.HoldTime) > holdTimeout {
		s.late.expect(t)
		t.expire()
		s.holds.loseHold(model.HoldWithoutStop)
	}
}
