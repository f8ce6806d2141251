package collector

import (
	"math/rand/v2"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/memrecord"
)

// reports are the accesses that the source tells the addresses of. It belongs to the tracing thread.
type reports struct {
	account *account
	kept    *observations
	locate  *ahead.Locator
	rand    *rand.Rand
	src     *sourceState
	ticks   *tickPace
	watches *watches
	drain   func() // reads what traps are waiting
}

// reported is an access as its source reported it, on its way to becoming an
// observation.
type reported struct {
	obs   *observation
	word  uint64
	event int // of the source, that ticked
}

// take takes the record of a sampled access. Its use is over, so that the
// watchpoint to come waits for the reuse alone.
func (s *reports) take(t *thread, r *sampler.Trap) {
	pc := r.Ip
	if s.src.source.Reports() == sampler.AfterAccess {
		pc = s.locate.Accessing(t.process.Via, pc, nil).PC
	}
	data := memrecord.DataSrc(r.DataSrc)
	use := s.locate.Reported(t.process.Via, pc, r.Addr, data.Store && !data.Load)
	o := &observation{Observation: record.Observation{
		Process: t.process,
		TID:     t.tid,
		Op:      model.Load,
		PC:      pc,
		State:   record.Used,
		Latency: r.Latency,
	}}
	if use.Store {
		o.Op = model.Store
	}
	if r.DataSrc != 0 {
		o.Source = data.Source()
	}
	if t.counter == nil {
		// CPU time is the watchpoint's own, and begins when it is armed.
		r.Clock, r.ClockLag = 0, 0
	}
	o.useClock, o.lag, o.traps, o.spent = r.Clock, r.ClockLag, r.Traps, r.Spent
	word := use.Word(s.rand.IntN(use.Words()))
	o.Addr, o.Word = max(r.Addr, word), word
	t.report(&reported{o, word, int(r.Event)})
}

// sample watches for the reuse of the access that the source reported
// of the held thread.
func (s *reports) sample(t *thread) {
	s.drain()
	r := t.takeReport()
	if r == nil {
		s.account.lose(model.ReportDropped)
		t.redraw(s.ticks)
		return
	}
	t.account()
	t.redrawOne(s.ticks, r.event)
	o := r.obs
	if o.lag == sampler.ClockFailed {
		s.account.lose(model.ClockUnread) // counted in BPF, too
		return
	}
	s.kept.timeRead()
	// The stack is that of some instructions later; its leaf is the access.
	s.locate.StackTop = t.shared.StackTop
	o.UseStack = s.kept.stacks.Add(t, t.process, o.PC, s.locate.HeldStack(t.process.Via, t.tid), o.Addr)
	t.process.Refresh()
	if !s.watches.mayWatch() {
		s.account.loseObserved(&o.Observation, model.SlowsCopying)
		return
	}
	slot := int(t.shared.HoldSlot)
	if failed := s.watches.arm(t, slot, r.word, sampler.SlotUsed, 0, 1, (*sampler.Kernel).Arm); failed != "" {
		s.account.loseObserved(&o.Observation, failed)
		return
	}
	t.shared.Slots[slot].UseClock = o.useClock
	t.shared.Slots[slot].Stacks = sampler.TrapStacks
	t.enterEpoch(&o.Observation)
	s.kept.place(o)
	t.slots[slot].obs = o
	s.kept.keep(o)
}
