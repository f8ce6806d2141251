package collector

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// holdLimit is the most threads held a second, a backstop for machines with
// very many busy threads: the one tracing thread serves them all.
const holdLimit = 3000

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
	slots   [sampler.NumSlots]watch

	gap       uint64 // of the ticker, in the source's unit
	ticks     uint64 // already in cpu
	cpu       uint64 // sampled so far, in the source's unit: CPU time or accesses
	epoch     *epoch
	epochLeft int
}

// watch is what a slot watches.
type watch struct {
	point *sampler.Watchpoint
	obs   *observation
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
	}
	if err := s.addThread(p, tid); err != nil {
		// One thread less is a loss, no thread at all an error.
		s.losses["lost: thread not sampled"]++
		if len(s.threads) == 0 {
			s.fail(err)
		}
	}
}

func (s *Session) addThread(p *process, tid int) error {
	index, shared, err := s.kernel.AddThread(tid)
	if err != nil {
		return err
	}
	t := &thread{tid: tid, process: p, index: index, shared: shared, gap: s.drawGap()}
	if t.counter, err = s.kernel.OpenCounter(index, tid); err != nil {
		return errors.Join(err, s.kernel.RemoveThread(index))
	}
	t.ticker, err = s.source.Open(s.kernel, tid, t.gap)
	if err != nil {
		return errors.Join(err, t.counter.Close(), s.kernel.RemoveThread(index))
	}
	s.threads[tid] = t
	s.byIndex[index] = t
	return nil
}

// drawGap spreads the ticks evenly about the mean gap.
func (s *Session) drawGap() uint64 {
	return uint64((0.75 + 0.5*s.rand.Float64()) * s.gap)
}

// dropThread ends the thread's observations and frees all it has.
func (s *Session) dropThread(t *thread) {
	s.addTotals(t, &s.gone, true)
	if err := t.ticker.Close(); err != nil {
		s.fail(err)
	}
	for i := range t.slots {
		s.retire(t, i)
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
		s.dropThread(t)
	}
}

// Execed implements sampler.Handler.
func (s *Session) Execed(pid int) {
	s.launching = false
	s.drain()
	for _, t := range s.threads {
		if t.process.pid == pid {
			s.dropThread(t)
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
func (s *Session) Hold(tid int, signal unix.Signal) bool {
	t := s.threads[tid]
	if t == nil || t.shared.Hold != uint32(signal) {
		return false
	}
	if !s.closing {
		s.sample(t)
	}
	t.shared.Holds++
	t.shared.Hold = 0
	s.held.add(sampler.Monotonic() - time.Duration(t.shared.HoldTime))
	return true
}

// sample watches the held thread's next access in the slot it has won.
func (s *Session) sample(t *thread) {
	t.redraw(s)
	access, err := s.locate.Locate(t.process.pid, t.tid, s.rand.IntN)
	if err != nil {
		var declined *sampler.Declined
		if errors.As(err, &declined) {
			s.lose(declined.Label())
		} else {
			s.lose("held thread not readable")
		}
		return
	}
	// Libraries of a program that just started are not known yet.
	t.process.note(access.PC)
	t.process.refresh()
	slot := int(t.shared.HoldSlot)
	s.retire(t, slot)

	words := access.Words()
	word := access.Word(s.rand.IntN(words))
	point, err := s.kernel.Arm(t.tid, slot, word, 2)
	if err != nil {
		if errors.Is(err, sampler.ErrNoSlot) {
			s.lose(sampler.ErrNoSlot.Error())
		} else {
			s.lose("watchpoint not armed")
			s.fail(err)
		}
		return
	}
	shared := &t.shared.Slots[slot]
	shared.Seq++
	shared.State = sampler.SlotArmed
	op := model.Load
	if access.Store {
		op = model.Store
	}
	t.slots[slot] = watch{point, &observation{
		process: t.process,
		tid:     t.tid,
		seq:     shared.Seq,
		op:      op,
		pc:      access.PC,
		next:    access.Next,
		words:   words,
		epoch:   t.currentEpoch(),
	}}
}

// retire ends what the slot watches: a use still without its reuse becomes a
// censored observation of the age it reached.
func (s *Session) retire(t *thread, slot int) {
	w := &t.slots[slot]
	if w.point == nil {
		return
	}
	// The traps it has seen are still to be read.
	s.drain()
	shared := &t.shared.Slots[slot]
	switch {
	case shared.State == sampler.SlotUsed && w.obs.state == used:
		if age, ok := s.age(t, w, shared.UseClock); ok {
			w.obs.censor(age, s)
		} else {
			s.lose("watchpoint clock not readable")
			w.obs.lost()
		}
	case shared.State == sampler.SlotArmed:
		s.lose("use not seen")
		w.obs.lost()
	}
	if err := w.point.Close(); err != nil {
		s.fail(err)
	}
	shared.State = sampler.SlotFree
	*w = watch{}
}

// account adds the ticks since the last call to the thread's CPU time.
func (t *thread) account() {
	d := (t.shared.Ticks - t.ticks) * t.gap
	t.ticks = t.shared.Ticks
	t.cpu += d
	if t.epoch == nil {
		t.epoch = new(epoch)
	}
	t.epoch.cpu += d
}

// redraw gives the held thread a new gap.
func (t *thread) redraw(s *Session) {
	t.account()
	gap := s.drawGap()
	if err := t.ticker.SetGap(gap); err != nil {
		s.fail(err)
		return
	}
	t.gap = gap
}

// expireHold gives up a hold that never came.
func (t *thread) expireHold(s *Session) {
	if t.shared.Hold != 0 && sampler.Monotonic()-time.Duration(t.shared.HoldTime) > holdTimeout {
		t.shared.Hold = 0
		s.lose("hold did not stop the thread")
	}
}
