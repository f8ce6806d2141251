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

// thread is one traced thread and its watchpoints.
type thread struct {
	tid     int
	nth     int // of its process's threads, as they came
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
	spans   []span // in which a word was watched, and is not any more, until then
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

// ThreadStarted implements sampler.Handler.
func (s *Session) ThreadStarted(pid, tid int) {
	if s.closing || s.launching {
		return
	}
	p := s.processes[pid]
	if p == nil {
		p = newProcess(pid, s.library)
		s.processes[pid] = p
		if s.groups() {
			s.noteCPU(p, sampler.Monotonic()) // it may be gone after two holds
		}
		if s.isFirst(pid) {
			s.copying.begin(p)
		}
		if s.isFirst(pid) || s.heap != nil {
			p.look()
		}
		s.probeHeap(p)
		s.locate.Prepare(p.via)
	}
	if err := s.addThread(p, tid); gone(err) {
		s.losses["threads that ended before their first tick"]++
	} else if err != nil {
		// One thread less is a loss, no thread at all an error.
		s.losses["lost: thread not sampled"]++
		if len(s.threads) == 0 {
			s.fail(err)
		}
	}
}

// ThreadMissed implements sampler.Handler.
func (s *Session) ThreadMissed(int, error) { s.losses["lost: thread not sampled"]++ }

// isFirst says whether the process is the one that was attached to, or started.
func (s *Session) isFirst(pid int) bool { return pid == s.cfg.PID || pid == s.child }

// processEnded forgets a process, or the program that it was, but for what the
// profile will name.
func (s *Session) processEnded(p *process) {
	s.copying.settle(p, sampler.Monotonic(), true)
	delete(s.processes, p.pid)
	s.locate.Forget(p.via)
	if p.looked() {
		p.facts.End()
		s.past = append(s.past, p)
	} else {
		s.unseenRan += p.total()
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
	t := &thread{tid: tid, process: p, index: index, shared: shared, nth: p.came}
	p.came++
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

// dropThread ends the thread's observations and frees all it has.
func (s *Session) dropThread(t *thread) {
	s.addTotals(t, &s.gone, true)
	t.epoch.to = t.marks(s.kernel)
	t.process.gone += t.epoch.to.ran
	if err := errors.Join(t.ticker.Close(), t.tally.Close()); err != nil {
		s.fail(err)
	}
	s.forgetSteps(t)
	s.late.expect(t) // no new one from here on
	s.dropProbe(t)
	for i := range t.slots {
		s.retire(t, i)
	}
	t.process.noteWatched(t, sampler.Monotonic())
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
	if s.isFirst(tid) {
		s.exit = ExitStatus{true, status}
	}
	if t := s.threads[tid]; t != nil {
		if s.groups() {
			s.noteCPU(t.process, sampler.Monotonic()) // of a process that lives for milliseconds there are few points
		}
		s.drain()
		if t.shared.Ticks == 0 {
			s.losses["threads that ended before their first tick"]++
		}
		s.dropGone(t, s.threadsOf(t.process) == 1)
	}
	if p := s.processes[tid]; p != nil {
		s.processEnded(p)
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
		s.processEnded(p)
	}
	s.ThreadStarted(pid, pid)
	if p := s.processes[pid]; p != nil {
		s.copying.begin(p) // the kernel goes on counting
	}
}
