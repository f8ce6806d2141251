package collector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/callstack"
	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/interleave"
	"github.com/rdx-profiler/rdx/collector/sharing"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// Session is one profiling session from Start to Wait. Each of its parts holds its own fields, and knows
// of the others only what wire tells it.
type Session struct {
	cfg    Config
	kernel *sampler.Kernel
	tracer *ptrace.Tracer
	locate *ahead.Locator
	rand   *rand.Rand

	// Of the tracing thread:
	targets   targets
	holds     holds
	watches   watches
	kept      observations
	timing    timing
	ticks     tickPace
	src       sourceState
	account   account
	prober    prober
	placement sampler.Placement
	self      profilerCost
	late      lateHolds
	memory    *memory
	trap      sampler.Trap
	heldOn    int           // CPU of the thread that was held last
	reaccept  bool          // the kernel is to be told what is accepted now
	latest    sampler.Stats // as of the last tick
	closing   bool

	// Of the goroutine that waits for the session:
	handover handover
	table    *callstack.Table
	merger   *interleave.Merger
	windows  *sharing.Windows

	// Of whoever starts and ends the session:
	start, end time.Time
	attachTime time.Duration
	detachTime time.Duration
	points     sampler.Watchpoints
	whyClock   error  // why no better clock, nil if it is the best
	onRequest  func() // ends it
	unhurry    func()
	ballast    []byte // see collectAt
	unloaded   unloaded
	present    int64 // memory that the target had at most, bytes
	touched    int64 // and can have had in all
}

// ExitStatus of the target, if it exited during the session.
type ExitStatus struct {
	Exited bool
	Status unix.WaitStatus
}

// Start attaches to the target, or starts it, and begins to sample. It needs
// root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.
func Start(cfg Config) (*Session, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	if cfg.PID != 0 {
		if err := cfg.findTargets(); err != nil {
			return nil, err
		}
	}
	s := (&Session{
		cfg:      cfg,
		locate:   ahead.NewLocator(),
		rand:     rand.New(rand.NewPCG(cfg.Seed, 1)),
		late:     make(lateHolds),
		handover: newHandover(),
		table:    callstack.NewTable(),
		merger:   interleave.NewMerger(cfg.Seed),
		windows:  sharing.NewWindows(cfg.Seed),
		targets:  newTargets(),
		watches:  newWatches(),
		account:  account{losses: make(map[model.CountName]int64)},
	}).wire()
	if err := s.setUp(); err != nil {
		s.unhurry()
		return nil, err
	}
	return s, nil
}

// setUp does all that can fail before the first sample.
func (s *Session) setUp() error {
	s.unhurry = func() {}
	if machine().ForeignIDs() {
		return fmt.Errorf("start session: %w", sampler.ErrForeignIDs)
	}
	if s.cfg.PID != 0 {
		s.hurry()
	}
	if err := s.load(); err != nil {
		return err
	}
	err := s.chooseSource()
	if err == nil {
		s.holds.lines = s.cfg.chooseLines(s.src.source.Reports())
		s.chooseHalves()
		var cpus []int
		if cpus, err = onlineCPUs(); err == nil && s.watches.groups() {
			err = s.kernel.SetUseCost(s.timing.calibration.Cost)
		}
		s.watches.cpus = len(cpus)
		if err == nil && s.cfg.Heap {
			s.targets.heap, err = sampler.LoadHeapProbes()
		}
		if err == nil {
			err = s.begin()
		}
	}
	if err != nil {
		s.targets.heap.Close()
		err = errors.Join(err, s.watches.registers.close())
		s.kernel.Close()
	}
	return err
}

// hurry is undone by unhurry.
func (s *Session) hurry() {
	undo, err := ptrace.Hurry()
	if err != nil {
		s.cfg.Log.Info("no priority over the target: slow beside very many busy threads", zap.Error(err))
		return
	}
	s.unhurry = undo
}

// bePatient is undone by unhurry, too.
func (s *Session) bePatient() {
	undo, err := ptrace.Patient()
	if err != nil {
		s.cfg.Log.Info("own timers disturb the target", zap.Error(err))
		return
	}
	unhurry := s.unhurry
	s.unhurry = func() {
		undo()
		unhurry()
	}
}

// collectAt is how much memory, in bytes, is used at least between two collections of garbage. Each stops all of rdx's
// threads, the tracing one, too, and goes on only when each has had its turn: beside a thousand busy threads that has
// taken half a second, in which a thread of the target may be held. The more it is, the more memory rdx takes.
const collectAt = 28 << 20

// collectSeldom begins with what setting up has left, and is for as long as threads are held. The ballast, which stands for memory in use, is
// never touched, so that it takes none.
func (s *Session) collectSeldom() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.ballast = make([]byte, collectAt-min(m.HeapAlloc, collectAt))
}

// release gives back what is for sampling alone: finding symbols takes as much memory.
func (s *Session) release() {
	u := &s.unloaded
	u.times, u.noTimes = s.kernel.ProgramTimes()
	u.err = s.kernel.Close()
	s.kernel, s.locate, s.ballast = nil, nil, nil
	s.wire()
	debug.FreeOSMemory() // the next collection would be as late as with the ballast; and large sections don't fit between what is left
}

// unloaded is what is known of the BPF programs once they are gone.
type unloaded struct {
	times   []sampler.ProgramTime
	noTimes error
	err     error // of unloading them
}

func (s *Session) begin() error {
	err := errors.Join(s.kernel.SetAccept(s.ticks.budget.accepted()), s.kernel.SetHoldLimit(holdLimit))
	if err == nil && s.watches.halves {
		err = s.kernel.SetHalfLines()
	}
	if err == nil {
		err = s.chooseHolds()
	}
	if err == nil && s.watches.groups() && s.cfg.PID != 0 {
		err = s.watches.expectMany(s.cfg.PID)
	}
	if err != nil {
		return err
	}
	if s.tracer, err = ptrace.NewTracer(s, s.cfg.Follow); err != nil {
		return err
	}
	if s.onRequest, err = s.kernel.OnRequest(func() { s.tracer.Ask(s.drain) }, s.tracer.AskAgain); err != nil {
		s.tracer.Detach()
		return err
	}
	if err := s.cfg.interrupted(); err != nil {
		s.tracer.Detach()
		s.onRequest()
		return err
	}
	s.start, s.self.before = time.Now(), profilerTime()
	var launched *ptrace.Launched
	if s.cfg.PID == 0 {
		if launched, err = ptrace.Launch(s.cfg.Command); err != nil {
			s.tracer.Detach()
			s.onRequest()
			return err
		}
		s.targets.launching = true
		s.targets.child = launched.PID
		s.targets.waitedFor = waitedFor()
	}
	if launched != nil {
		s.hurry() // not before, or the target would inherit the priority
	}
	s.bePatient()
	s.prepare()
	s.collectSeldom()
	s.tracer.Do(func() {
		seizing := time.Now()
		if err = s.seize(s.targets.child); err == nil && s.account.err != nil {
			err = s.account.err
		}
		s.targets.attached, s.attachTime = len(s.targets.threads), time.Since(seizing)
		if err != nil {
			s.closeAll()
		}
	})
	if launched != nil && err == nil {
		s.targets.processes.WaitForFiles()
		if err = s.cfg.interrupted(); err == nil {
			err = launched.Go()
		}
	}
	if err != nil {
		s.tracer.Detach()
		s.onRequest()
		if launched != nil {
			launched.Abandon()
		}
	}
	return err
}

// chooseHolds says which samples are held besides those that have won a slot and
// can be held by a signal: those without a slot, where the thread is read ahead of; and
// by an interrupt, if that was asked for, unless the access is over by then.
func (s *Session) chooseHolds() error {
	var err error
	if s.holds.readsLosers() {
		err = s.kernel.HoldLosers()
	}
	if s.cfg.Interrupt && s.src.source.Reports() == sampler.NoAccess {
		err = errors.Join(err, s.kernel.HoldByInterrupt())
	}
	return err
}

// readsLosers says whether samples that are not watched are of use.
func (s *holds) readsLosers() bool {
	return s.burst > 0 && s.src.source.Reports() == sampler.NoAccess
}

// Wait samples until the duration is over, the context ends or the target
// exits, and returns the profile of what was seen. The target runs on.
func (s *Session) Wait(ctx context.Context) (*model.Profile, error) {
	if s.cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.Duration-time.Since(s.start))
		defer cancel()
	}
	s.memory = newMemory(s.targets.child == 0)
	s.tracer.Do(func() {
		if err := s.tracer.Every(tickInterval, s.everyTick); err != nil {
			s.account.fail(err)
		}
	})
	for running := true; running; {
		select {
		case <-ctx.Done():
			running = false
		case <-s.tracer.Done():
			running = false
		case a := <-s.handover.to:
			s.table.Unwind(a.stacks, false)
			s.merger.MergeAll(a.holds, uint64(s.holds.block()))
			s.windows.Add(a.joined)
			s.handover.back <- a.handoverWork
			a.progress.Known = s.lookAtSeen(a.seen)
			s.tell(a.progress)
			running = !a.failed
		}
	}
	s.end = time.Now()
	s.tracer.Do(s.closeAll)
	s.tracer.Detach()
	s.onRequest()
	s.detachTime = time.Since(s.end)
	s.present, s.touched = s.memory.end(s.targets.processes)
	if err := s.watches.registers.close(); err != nil {
		s.account.fail(err)
	}
	if s.targets.launching && s.targets.exit.Exited {
		return nil, ErrNotStarted
	}
	// Nothing but this goroutine is left.
	s.targets.processes.SettleFiles()
	s.drain()
	s.targets.findDataAgain()
	s.targets.processes.NameData()
	s.closeHandover()
	s.table.Unwind(s.kept.stacks.Take(), true)
	left := s.holds.merges.Take()
	s.merger.MergeAll(left, uint64(s.holds.block()))
	s.holds.merges.Done(left)
	s.windows.Add(s.holds.windows.Take())
	p, err := s.profile()
	s.release()
	return p, errors.Join(err, s.account.err)
}

// ErrNotStarted says that the launched process ended without becoming the
// program. Why it has said itself, on standard error.
var ErrNotStarted = errors.New("the program could not be started")

// Exit says how the target ended, if it did during the session.
func (s *Session) Exit() ExitStatus { return s.targets.exit }

// Started is the number of a started program's process, 0 if none was.
func (s *Session) Started() int { return s.targets.child }

// AwaitExit waits, after Wait, for a started program to exit, and says how it
// did. A process that was attached to is not waited for.
func (s *Session) AwaitExit() ExitStatus {
	if s.targets.exit.Exited || s.targets.child == 0 {
		return s.targets.exit
	}
	var status unix.WaitStatus
	_, err := unix.Wait4(s.targets.child, &status, 0, nil)
	for err == unix.EINTR {
		_, err = unix.Wait4(s.targets.child, &status, 0, nil)
	}
	s.targets.exit = ExitStatus{err == nil, status}
	return s.targets.exit
}

// Signal passes a signal on to a started program that still runs.
func (s *Session) Signal(sig os.Signal) {
	if n, ok := sig.(unix.Signal); ok && s.targets.child != 0 && !s.targets.exit.Exited {
		_ = unix.Kill(s.targets.child, n)
	}
}

// Close gives back the target's files, and what Wait has not. Call it when the
// profile has been symbolized.
func (s *Session) Close() error {
	s.targets.processes.Close()
	s.unhurry()
	if s.kernel != nil {
		s.release()
	}
	return errors.Join(s.targets.heap.Close(), s.unloaded.err)
}

// tick does what need not be done while a thread is held.
func (s *Session) tick() {
	s.drain()
	s.recalibrate()
	s.watches.clearEnded()
	if s.watches.groups() {
		s.watches.prune()
		s.watches.tendRegisters()
	}
	s.targets.findData()
	for _, p := range s.targets.processes.Alive {
		p.Refresh()
		p.ReadTime()
		s.targets.probeHeap(p)
		if s.watches.groups() {
			p.NoteCPU(sampler.Monotonic())
		}
	}
	s.targets.findDataAgain()
	s.memory.tick(s.targets.processes)
	stats, err := s.kernel.Stats()
	if err != nil {
		s.account.fail(err)
	}
	for _, t := range s.targets.threads {
		t.expireHold(s)
	}
	sum := s.total(false)
	s.watch(sum, stats)
	if s.hasProbes() {
		s.driveProbe(sum.CPU)
	}
	s.lookAtSelf()
	s.settleCopying()
	ran := max(sum.CPU, s.targets.processes.Ran())
	accepted := s.ticks.budget.accepted()
	if s.src.source.Unit() == sampler.Nanoseconds {
		s.ticks.budget.periodNS = s.ticks.meanPeriod
	}
	s.ticks.budget.aim(s.ticks.budget.floor.look(ran, sampler.Monotonic()))
	s.takeTurns(ran)
	if s.cfg.turns != nil {
		s.takeTurn(stats, s.ticks.budget.trapped(sum.Traps+stats.OtherProcess, sum.Spent))
		s.latest = stats
		return
	}
	waits := s.timing.resumed() + s.prober.stampCost() // which leave no caches cold
	if s.ticks.budget.update(ran, stats, s.timing.held.sum-s.holds.stepped.cpu, s.ticks.budget.trapped(sum.Traps+stats.OtherProcess, sum.Spent)+waits) || s.ticks.budget.accepted() != accepted {
		s.adjustPeriod(sum)
		if err := s.kernel.SetAccept(s.ticks.budget.accepted()); err != nil {
			s.account.fail(err)
		}
	}
	s.latest = stats
}

// adjustPeriod spaces the ticks so that some more come than can become samples: for
// the periods between samples to be geometric, but not so many that ticks are what
// the budget is spent on.
//
// Of many threads each gets its new period when it is held: to set it between two
// ticks begins the period anew, and if each runs little none would come to its end. Few
// get it at once: they are held seldom where it is the ticks that cost too much.
func (s *Session) adjustPeriod(sum estimate.Totals) {
	if s.cfg.Period != 0 || s.cfg.period != 0 {
		return
	}
	perNS := 1.0
	if s.src.source.Unit() != sampler.Nanoseconds && sum.CPU > 0 && sum.Ticked > 0 {
		perNS = sum.Ticked / float64(sum.CPU)
	}
	period := float64(s.ticks.budget.period()) * perNS
	if ratio := period / s.ticks.meanPeriod; ratio > 1/adjustRatio && ratio < adjustRatio {
		return
	}
	atOnce := s.targets.threads
	if len(atOnce) > adjustAtOnce {
		atOnce = nil // there are ticks of both periods for a while
	} else {
		s.ticks.budget.ticksApart(s.ticks.meanPeriod/perNS, period/perNS)
	}
	for _, t := range atOnce {
		s.ticks.cut(t)
	}
	s.ticks.meanPeriod = period
	for _, t := range atOnce {
		t.redraw(&s.ticks)
	}
}

const (
	// adjustRatio: smaller changes of the period are not worth a system call a thread.
	adjustRatio  = 1.3
	adjustAtOnce = 16 // threads
)

// closeAll stops sampling and ends all observations.
func (s *Session) closeAll() {
	s.closing = true
	s.drain()
	for _, p := range s.targets.processes.Alive {
		p.ReadTime()
	}
	s.settleCopying()
	standing := make(map[threadOf]time.Duration)
	for _, t := range s.targets.threads {
		s.dropThread(t)
		s.tracer.Beat()
		if s.src.unread > 0 {
			standing[t.of()] = t.wentOn
		}
	}
	s.kept.loseTimes(standing) // not before: what still traps until its slot is retired counts, too
}
