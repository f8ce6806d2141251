package collector

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// What Config.BurstEngine may say.
const (
	Interpret = "interpret" // read ahead on copies; the thread stays where it is
	Step      = "step"      // the thread makes the accesses itself, a few instructions at a time
)

const (
	// steppedBurst is AutoBurst of steps: of 80 to 200 µs each on a virtual machine, and one to
	// two accesses, as many as StepLimit has room for.
	steppedBurst = 30
	// usesPerBurst: for the stack of each the thread is stopped there.
	usesPerBurst = 4
	mostSteps    = 1000
	// stepSlots: one debug register stops the thread.
	stepSlots = sampler.NumSlots - 1
	// stepTimeout is after how long a thread that runs but does not come to its next stop
	// is given up: it waits for a page or a CPU, or was led elsewhere.
	stepTimeout = 300 * time.Millisecond
)

// checkEngine says why the choice of Step can't be.
func (c *Config) checkEngine() error {
	switch {
	case !slices.Contains([]string{Interpret, Step}, c.BurstEngine):
		return fmt.Errorf("unknown burst engine %q (want interpret or step)", c.BurstEngine)
	case c.BurstEngine != Step:
		return nil
	case !ahead.CanStep:
		return errors.New("burst engine step is for x86-64 only (use interpret)")
	case c.Burst == 0:
		return errors.New("burst engine step without a burst has nothing to do (choose a burst, or interpret)")
	case c.Slots > stepSlots:
		return fmt.Errorf("burst engine step needs a debug register for itself: %d slots at most", stepSlots)
	case c.Stack != OwnStack:
		return fmt.Errorf("burst engine step knows one thread's accesses only, stack %s those of all (use interpret)", c.Stack)
	case c.addresses():
		return fmt.Errorf("with source %s nothing can be stepped: the access is over (use --source pmu or clock)", c.Source)
	case c.Interrupt:
		return errors.New("burst engine step stops a thread by a signal, so that those that block them can't be interrupted (use interpret)")
	}
	return nil
}

// steps says whether bursts are made by steps.
func (s *holds) steps() bool { return s.cfg.BurstEngine == Step }

// stepping is a burst that a thread is making. All the while Thread.Hold is set, so that
// no tick begins another hold.
type stepping struct {
	steps *ahead.Steps
	point *sampler.Watchpoint // where it stops next
	cpu   uint64              // of the thread at the beginning, if an open watch tells
	by    int                 // the slot that told, or -1
}

// stepper has threads make bursts step by step. It belongs to the tracing thread.
type stepper struct {
	account *account
	cfg     *Config
	holds   *holds
	kernel  *sampler.Kernel
	locate  *ahead.Locator
	rand    *rand.Rand
	watches *watches

	totals stepTotals
}

// stepTotals are for the budget and the user.
type stepTotals struct {
	steps, instructions int
	cpu                 time.Duration // that is in Thread.Spent, too
}

// begin begins a burst of the held thread.
func (s *stepper) begin(t *thread) {
	for i := range t.slots {
		w := &t.slots[i]
		if w.stamp != nil && t.shared.Slots[i].State == sampler.SlotArmed {
			s.watches.retire(t, i) // it has never come to where it was to go on
		}
		s.watches.closeStamp(w)
	}
	t.step(&stepping{})
	t.stepping.by, t.stepping.cpu = t.watchedTime()
	t.stepping.steps = s.locate.Steps(t.process.Via, t.tid, s.holds.perHoldWanted(), s.holds.burst, s.holds.block(), s.cfg.stepLimit, s.rand.IntN)
	s.next(t)
}

// watchedTime is the held thread's CPU time since some moment, by the watchpoint of a
// slot that waits for its reuse; slot is -1 without one.
func (t *thread) watchedTime() (slot int, ns uint64) {
	for i := range t.slots {
		if w := &t.slots[i]; w.point != nil && t.shared.Slots[i].State != sampler.SlotDone {
			if ns, err := w.point.Age(); err == nil {
				return i, ns
			}
		}
	}
	return -1, 0
}

// next is called at each stop of a burst, the first included: it has the thread go on to
// the next one, or ends the burst.
func (s *stepper) next(t *thread) {
	p := t.stepping
	s.close(t)
	s.locate.StackTop = t.shared.StackTop
	upTo, end, err := p.steps.Next()
	if s.locate.InSyscall {
		s.holds.enteredSyscall()
	}
	if err != nil {
		t.step(nil)
		s.holds.decline(err)
		return
	}
	if end == "" {
		t.shared.HoldIp = 0
		if p.point, err = s.kernel.ArmStep(t.tid, upTo); err == nil {
			return
		}
		end = "breakpoint not armed"
		if errors.Is(err, sampler.ErrNoSlot) {
			end = sampler.ErrNoSlot.Error()
		} else if !gone(err) {
			s.account.fail(err)
		}
		p.steps.Refused()
	}
	s.end(t, end, p.steps.Leave())
}

// end takes what a burst has shown. The thread goes on at next, if that is known: then
// it may be watched for one of the reuses that are still to come.
func (s *stepper) end(t *thread, end string, next uint64) {
	p := t.stepping
	t.step(nil)
	if p.by >= 0 && t.slots[p.by].point != nil {
		// What the steps took of the thread's time is ours, for the watches that are open.
		if now, err := t.slots[p.by].point.Age(); err == nil && now > p.cpu {
			t.shared.Spent += now - p.cpu
			s.totals.cpu += time.Duration(now - p.cpu)
		}
	}
	s.holds.noteBurst(p.steps.Elapsed())
	s.totals.steps += p.steps.Steps
	s.totals.instructions += p.steps.Instructions
	found, err := p.steps.End(end)
	if err != nil {
		s.holds.decline(err)
		return
	}
	s.holds.tally(t, &found)
	for i := range found.Others {
		s.holds.readOnly(t, &found.Others[i], s.holds.observe(t, &found.Others[i]))
	}
	o := s.holds.observe(t, &found.Followed)
	if t.shared.HoldSlot == sampler.NoSlot || found.Reuse > 0 || next == 0 || !s.watches.mayWatch() {
		s.holds.readOnly(t, &found.Followed, o)
		return
	}
	s.watchOn(t, &found, next, o)
}

// watchOn watches for the reuse of a use that is over. The thread's next trap, at next, is
// no access: it tells when time begins, as the trap of a use does that is still to come.
func (s *stepper) watchOn(t *thread, found *ahead.Ahead, next uint64, o *observation) {
	slot := int(t.shared.HoldSlot)
	if failed := s.watches.arm(t, slot, found.Word, sampler.SlotArmed, 0, 1, (*sampler.Kernel).Arm); failed != "" {
		s.account.loseObserved(&o.Observation, failed)
		return
	}
	w := &t.slots[slot]
	w.obs = o
	var err error
	if w.stamp, err = s.kernel.ArmStamp(t.tid, slot, next); err != nil {
		if !errors.Is(err, sampler.ErrNoSlot) && !gone(err) {
			s.account.fail(err)
		}
		s.account.loseObserved(&o.Observation, model.NoBreakpoint)
		s.watches.retire(t, slot)
		return
	}
	t.enterEpoch(&o.Observation)
	o.use, o.next, o.Lead, o.Word = found.Stack, next, o.After, found.Word
	t.shared.Slots[slot].Stacks = sampler.TrapStacks
}

// close takes the breakpoint of the last step away.
func (s *stepper) close(t *thread) {
	if p := t.stepping; p != nil && p.point != nil {
		if err := p.point.Close(); err != nil {
			s.account.fail(err)
		}
		p.point = nil
	}
}

func (s *watches) closeStamp(w *watch) {
	if w.stamp == nil {
		return
	}
	if err := w.stamp.Close(); err != nil {
		s.account.fail(err)
	}
	w.stamp = nil
}

// forget ends the burst of a thread that is not to be sampled any more. If it has
// come to a stop by now its signal is on the way, else there is none.
func (s *stepper) forget(t *thread) {
	if t.stepping == nil {
		return
	}
	s.close(t)
	t.step(nil)
	if t.shared.HoldIp == 0 {
		t.shared.Hold = 0
	}
}

// interruptSteps ends the burst of a thread that another signal has stopped.
func (s *handler) interruptSteps(t *thread) { s.breakOff(t, t.stepping.steps.Signal()) }

// breakOff ends a burst on the way to its next stop.
func (s *handler) breakOff(t *thread, end string) {
	s.stepper.close(t)
	if t.shared.HoldIp != 0 {
		s.late.expect(t)
	}
	s.stepper.end(t, end, 0)
	s.endHold(t)
}

// loseSteps ends a burst whose thread has not come to its next stop for long. It runs.
func (s *handler) loseSteps(t *thread) bool {
	if t.stepping == nil || t.stepping.steps.Elapsed() < stepTimeout {
		return false
	}
	t.stepping.by = -1 // its time can't be read while it runs
	s.breakOff(t, t.stepping.steps.Lost())
	return true
}
