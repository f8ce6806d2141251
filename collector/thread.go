package collector

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
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
	process *target.Process
	group   *group // of the process, nil unless its threads share slots
	index   uint32
	shared  *sampler.Thread // read and written with the kernel
	ticker  *sampler.Ticker
	counter *sampler.Counter // nil if the clock is CPU time
	tally   *sampler.Tally   // for weights, where no clock counts; nil likewise if none could be had
	slots   [sampler.NumSlots]watch
	parked  [sampler.NumSlots]*sampler.Watchpoint // kept for the slot's next datum

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
	passed           uint64 // of the period after the first tick, when it was set
	epoch            *record.Epoch
	// since is when it stopped for its hold, letGo when its last hold ended, letGoTraps how many traps it had then.
	since      time.Duration
	letGo      time.Duration
	letGoTraps uint32
	// interrupted: the hold to come is by an interrupt that is on its way.
	interrupted bool
	// reported is the access of the thread on hold, if its source tells.
	reported *reported
	dropped  bool // it is not sampled any more, and shared may be another's
	// stepping is the burst that the thread makes, held again after each step; else nil.
	stepping *stepping
}

// begin has the thread sampled from here on; tally is nil if weights need none.
func (t *thread) begin(ticker *sampler.Ticker, tally *sampler.Tally) {
	t.ticker, t.tally = ticker, tally
	t.read, t.ticks, t.passive = t.shared.Sampled, t.shared.Ticks, t.shared.Unheld
}

// stop ends that; what it has ticked is accounted for.
func (t *thread) stop() error {
	err := errors.Join(t.ticker.Close(), t.tally.Close())
	t.ticker, t.tally, t.cpu = nil, nil, 0
	return err
}

// awaitFirst has the first tick count for so much.
func (t *thread) awaitFirst(counts uint64) { t.first, t.shared.First = counts, sampler.FirstDue }

// join makes the thread one of a group, nil: of none.
func (t *thread) join(g *group) { t.group = g }

// drop says that it is not sampled any more.
func (t *thread) drop() { t.dropped = true }

// lookAtClock takes what its clock has counted, or that it can't be read, and says whether it goes on.
func (t *thread) lookAtClock(now uint64, err error) (goesOn bool) {
	t.looked = t.shared.Ticks // those while it was being read say nothing of what comes after
	if goesOn = err == nil && now > t.clockAt; goesOn {
		t.wentOn, t.lookedAt = t.lookedAt, sampler.Monotonic()
	}
	t.clockAt = now
	return goesOn
}

// stopped says since when it is, for its hold.
func (t *thread) stopped(since time.Duration) { t.since = since }

// interrupt says that the hold to come is by an interrupt.
func (t *thread) interrupt() { t.interrupted = true }

// expire gives up a hold that has never come.
func (t *thread) expire() { t.shared.Hold, t.reported, t.interrupted = 0, nil, false }

// report keeps the access that the source reports of the thread on hold, until it is taken.
func (t *thread) report(r *reported) { t.reported = r }

func (t *thread) takeReport() *reported {
	r := t.reported
	t.reported = nil
	return r
}

// step has the thread make a burst, nil: none any more.
func (t *thread) step(s *stepping) { t.stepping = s }

// arm has a slot watch something.
func (t *thread) arm(slot int, w watch) { t.slots[slot] = w }

// park keeps a watchpoint for a slot's next datum, nil: none.
func (t *thread) park(slot int, point *sampler.Watchpoint) { t.parked[slot] = point }

// unpark is what was kept for a slot, nil if nothing was.
func (t *thread) unpark(slot int) *sampler.Watchpoint {
	point := t.parked[slot]
	t.parked[slot] = nil
	return point
}

// watched adds a time in which a word was watched.
func (t *thread) watched(s span) { t.spans = append(t.spans, s) }

// ThreadStarted implements ptrace.Handler.
func (s *targets) ThreadStarted(pid, tid int) {
	if s.tracing.closing || s.launching {
		return
	}
	p := s.processes.Alive[pid]
	if p == nil {
		p = s.processes.Add(pid)
		s.watches.copyCost.add(p)
		if s.watches.groups() {
			p.NoteCPU(sampler.Monotonic()) // it may be gone after two holds
		}
		if s.isFirst(pid) {
			s.watches.copyCost.begin(p)
		}
		if s.isFirst(pid) || s.heap != nil {
			p.Look()
		}
		s.probeHeap(p)
		s.locate.Prepare(p.Via)
	}
	if err := s.addThread(p, tid); gone(err) {
		s.account.count(model.ThreadsNeverTick, 1)
	} else if err != nil {
		// One thread less is a loss, no thread at all an error.
		s.account.lose(model.ThreadNotSampled)
		if len(s.threads) == 0 {
			s.account.fail(err)
		}
	}
}

// threadAt is the thread of an index in the kernel's tables, nil if it is gone.
func (s *targets) threadAt(index uint32) *thread { return s.byIndex[index] }

// ThreadMissed implements ptrace.Handler.
func (s *targets) ThreadMissed(int, error) { s.account.lose(model.ThreadNotSampled) }

// isFirst says whether the process is the one that was attached to, or started.
func (s *targets) isFirst(pid int) bool {
	return pid == s.cfg.PID || pid == s.child || slices.Contains(s.cfg.Others, pid)
}

// processEnded forgets a process, or the program that it was, but for what the
// profile will name.
func (s *targets) processEnded(p *target.Process) {
	s.watches.copyCost.forget(p)
	delete(s.probed, p)
	s.locate.Forget(p.Via)
	s.processes.Ended(p)
}

// gone says of an error that the thread has exited since.
func gone(err error) bool { return errors.Is(err, unix.ESRCH) }

// addThread begins to sample a thread.
func (s *targets) addThread(p *target.Process, tid int) error {
	index, shared, err := s.kernel.AddThread(tid)
	if err != nil {
		return err
	}
	counter, err := s.kernel.OpenCounter(index, tid)
	if err != nil {
		return errors.Join(err, s.kernel.RemoveThread(index))
	}
	t := &thread{tid: tid, process: p, index: index, shared: shared, counter: counter, nth: p.Came}
	p.Came++
	if s.ticks.drawsFirst() {
		t.awaitFirst(uint64(s.ticks.meanPeriod))
	}
	if s.watches.groups() {
		if err := s.watches.join(t); err != nil {
			return errors.Join(err, t.counter.Close(), s.kernel.RemoveThread(index))
		}
	}
	if err := s.src.openTicker(t); err != nil {
		if s.watches.groups() {
			s.watches.leave(t)
		}
		return errors.Join(err, t.counter.Close(), s.kernel.RemoveThread(index))
	}
	s.add(t)
	return nil
}

// SetStackTop implements callstack.Thread.
func (t *thread) SetStackTop(top uint64) {
	if !t.dropped {
		t.shared.StackTop = top
	}
}

// dropThread ends the thread's observations and frees all it has.
func (s *targets) dropThread(t *thread) {
	s.ticks.addTotals(t, &s.ticks.gone, true)
	t.epoch.To = t.marks(s.kernel)
	t.process.Gone += t.epoch.To.Ran
	if err := errors.Join(t.ticker.Close(), t.tally.Close()); err != nil {
		s.account.fail(err)
	}
	s.stepper.forget(t)
	s.late.expect(t) // no new one from here on
	s.prober.drop(t)
	for i := range t.slots {
		s.watches.retire(t, i)
	}
	s.watches.closeParked(t)
	s.watches.copyCost.noteWatched(t, sampler.Monotonic())
	if t.group != nil {
		s.watches.leave(t)
	}
	if err := t.counter.Close(); err != nil {
		s.account.fail(err)
	}
	if err := s.kernel.RemoveThread(t.index); err != nil {
		s.account.fail(err)
	}
	s.drop(t)
	t.drop()
}

// dropGone drops a thread that has ended, and with it the process's memory if so
// said: what waits for a reuse by the one, or in the other, will not have any.
func (s *targets) dropGone(t *thread, memory bool) {
	var waiting []*observation
	for i := range t.slots {
		waiting = append(waiting, t.slots[i].obs)
	}
	s.dropThread(t)
	for _, o := range waiting {
		if o != nil && (memory || o.Stack != model.StackShared) {
			s.account.outlived(&o.Observation)
		}
	}
}

// ThreadExited implements ptrace.Handler.
func (s *targets) ThreadExited(tid int, status unix.WaitStatus) {
	if tid == s.cfg.PID || tid == s.child {
		s.exit = ExitStatus{true, status}
	}
	if t := s.threads[tid]; t != nil {
		if s.watches.groups() {
			t.process.NoteCPU(sampler.Monotonic()) // of a process that lives for milliseconds there are few points
		}
		s.drain()
		if t.shared.Ticks == 0 {
			s.account.count(model.ThreadsNeverTick, 1)
		}
		s.dropGone(t, len(s.of[t.process]) == 1)
	}
	if p := s.processes.Alive[tid]; p != nil {
		s.processEnded(p)
	}
	delete(s.late, tid)
}

// Execed implements ptrace.Handler.
func (s *targets) Execed(pid int) {
	s.launching = false
	s.drain()
	if p := s.processes.Alive[pid]; p != nil {
		for _, t := range s.of[p] {
			s.dropGone(t, true)
			delete(s.late, t.tid)
		}
		s.processEnded(p)
	}
	s.ThreadStarted(pid, pid)
	if p := s.processes.Alive[pid]; p != nil {
		s.watches.copyCost.begin(p) // the kernel goes on counting
	}
}
