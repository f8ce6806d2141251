package collector

import (
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/memrecord"
)

// reported is an access as its source reported it, on its way to becoming an
// observation.
type reported struct {
	obs   *observation
	word  uint64
	event int // of the source, that ticked
}

// report takes the record of a sampled access. Its use is over, so that the
// watchpoint to come waits for the reuse alone.
func (s *Session) report(t *thread, r *sampler.Trap) {
	pc := r.Ip
	if s.source.Reports() == sampler.AfterAccess {
		pc = s.locate.Accessing(t.process.via, pc, nil).PC
	}
	data := memrecord.DataSrc(r.DataSrc)
	use := s.locate.Reported(t.process.via, pc, r.Addr, data.Store && !data.Load)
	o := &observation{
		process: t.process,
		tid:     t.tid,
		op:      model.Load,
		pc:      pc,
		state:   used,
		latency: r.Latency,
	}
	if use.Store {
		o.op = model.Store
	}
	if r.DataSrc != 0 {
		o.source = data.Source()
	}
	if t.counter == nil {
		// CPU time is the watchpoint's own, and begins when it is armed.
		r.Clock, r.ClockLag = 0, 0
	}
	o.useClock, o.lag, o.traps, o.spent = r.Clock, r.ClockLag, r.Traps, r.Spent
	word := use.Word(s.rand.IntN(use.Words()))
	o.addr, o.word = max(r.Addr, word), word
	t.reported = &reported{o, word, int(r.Event)}
}

// sampleReported watches for the reuse of the access that the source reported
// of the held thread.
func (s *Session) sampleReported(t *thread) {
	s.drain()
	r := t.reported
	t.reported = nil
	if r == nil {
		s.lose("report of the access dropped, ring full")
		t.redraw(s)
		return
	}
	t.account()
	t.redrawOne(s, r.event)
	o := r.obs
	if o.lag == sampler.ClockFailed {
		s.lose("clock not readable") // counted in BPF, too
		return
	}
	s.timed++
	// The stack is that of some instructions later; its leaf is the access.
	s.locate.StackTop = t.shared.StackTop
	o.useStack = s.stacks.add(t, o.pc, s.locate.HeldStack(t.process.via, t.tid), o.addr)
	t.process.refresh()
	if !s.mayWatch() {
		s.loseObserved(o, "not watched, as that would slow copying")
		return
	}
	slot := int(t.shared.HoldSlot)
	if failed := s.arm(t, slot, r.word, sampler.SlotUsed, 0, 1, (*sampler.Kernel).Arm); failed != "" {
		s.loseObserved(o, failed)
		return
	}
	t.shared.Slots[slot].UseClock = o.useClock
	t.shared.Slots[slot].Stacks = sampler.TrapStacks
	t.enterEpoch(o)
	s.unplaced = append(s.unplaced, o)
	t.slots[slot].obs = o
	s.seen = append(s.seen, o)
}
