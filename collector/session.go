package collector

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/library"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// Session is one profiling session from Start to Wait.
type Session struct {
	cfg       Config
	kernel    *sampler.Kernel
	tracer    *ptrace.Tracer
	source    sampler.Source
	locate    *ahead.Locator
	placement sampler.Placement
	rand      *rand.Rand
	start     time.Time
	own       ownCost
	end       time.Time

	clock       sampler.Clock
	calibration sampler.TwoTrap
	gap         float64 // mean, in the source's unit
	gone        totals
	whyClock    error // why no better clock, nil if it is the best
	whySource   error
	replaced    []string // sources that failed in the course of the session
	health      health
	healthRan   health // by the time that threads ran, in user mode or not
	healthDue   health // for ticks that are due
	addressed   addressed
	unweighed   uint64 // ns in which it can't be told what a throttled source missed
	clockHealth clockHealth
	unread      uint64 // ticks of threads whose clock does not go on, since one's did
	timed       uint64 // uses whose time could be read
	failed      bool   // the session can't go on
	throttled   bool   // the user has been told that the source is
	processes   map[int]*process
	past        []*process // exited, or replaced by exec
	unseenRan   uint64     // CPU time of those that are not kept in past, ns
	library     *library.Library
	owners      map[*model.Mapping]owned // of the mappings of the profile, when it is made
	threads     map[int]*thread
	byIndex     map[uint32]*thread
	late        lateHolds
	seen        []*observation
	stacks      *stackTable
	heap        *sampler.HeapProbes // nil if not asked for
	heapWork    heapWork
	unplaced    []*observation // whose data's mapping is not known yet
	losses      map[string]int64
	ends        map[string]int64 // why reading ahead ended
	inSyscall   int              // holds that came when the thread had entered a system call
	readAhead   int              // accesses
	touched     int              // blocks that these overlap, added up
	overlaps    overlaps
	reading     durations // of reading ahead
	reached     lengths   // of bursts without a reuse
	stepped     stepTotals
	burst       int
	skip        []int   // of the accesses of a hold, see skips
	holdsUsed   int     // holds of which accesses were read ahead
	stoodFor    float64 // of these, without a reuse so soon, where another of the hold is watched
	lines       bool    // samples are of lines
	halves      bool    // watched by half, so that each takes all slots of its thread
	points      sampler.Watchpoints
	rates       rates
	lastHeld    *process      // which a thread was held of last
	calibrated  time.Duration // when the constant was measured last
	budget      budget
	copying     copying
	reaccept    bool // the kernel is to be told what is accepted now
	pairs       int
	cpus        int           // online at the start
	byCPU       *shares       // of processes that are watched by CPU, nil if there are none
	registers   *registers    // of CPUs, likewise
	silenced    int           // observations cut off, as other processes had used a CPU's traps up
	ended       []ended       // not yet cleared
	others      int           // watchpoints opened in other threads
	never       int           // observations whose thread or memory was gone before a reuse
	warnings    []string      // not yet in a Progress
	latest      sampler.Stats // as of the last tick
	aside       aside
	unwatched   int            // words of lines given up for another datum
	otherFailed error          // the last failure to watch another thread
	took        [3]*model.Hist // by stack, wall time from use to end in ns
	pruned      int
	feet        *footprints // of threads, when all is seen
	beside      besides
	together    float64 // threads of the process that ran in the hold at work; 0: not known
	second      secondLooks
	unsmeared   int
	held        durations
	interrupts  durations // from ticks to the interrupts that hold
	onRequest   func()    // ends it
	tickCost    float64   // of the CPU clock, ns; 0: could not be measured
	resumes     durations // waits to run again after a hold
	wakes       durations // of the tracing thread, for a hold
	trap        sampler.Trap
	exit        ExitStatus
	err         error // the first that ended the session early
	attached    int   // threads seized at the start
	unhurry     func()
	attachTime  time.Duration
	detachTime  time.Duration
	child       int  // the process we started
	launching   bool // until the launched process has become the target
	closing     bool
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
		pid, err := ptrace.FindTarget(cfg.PID)
		if err != nil {
			return nil, err
		}
		if pid == os.Getpid() {
			return nil, errors.New("attach: a profiler cannot hold itself")
		}
		cfg.PID = pid
	}
	s := &Session{
		cfg:       cfg,
		locate:    ahead.NewLocator(),
		rand:      rand.New(rand.NewPCG(cfg.Seed, 1)),
		processes: make(map[int]*process),
		library:   library.New(),
		threads:   make(map[int]*thread),
		byIndex:   make(map[uint32]*thread),
		late:      make(lateHolds),
		stacks:    newStackTable(),
		losses:    make(map[string]int64),
		ends:      make(map[string]int64),
		aside:     newAside(),
		beside:    newBesides(cfg.Seed),
	}
	if err := s.setUp(); err != nil {
		s.unhurry()
		return nil, err
	}
	return s, nil
}

// setUp does all that can fail before the first sample.
func (s *Session) setUp() error {
	s.unhurry = func() {}
	if s.cfg.PID != 0 {
		s.hurry()
	}
	if err := s.load(); err != nil {
		return err
	}
	err := s.chooseSource()
	if err == nil {
		s.lines = s.cfg.chooseLines(s.source.Reports())
		s.chooseHalves()
		var cpus []int
		if cpus, err = onlineCPUs(); err == nil && s.groups() {
			err = s.kernel.SetUseCost(s.calibration.Cost)
		}
		s.cpus = len(cpus)
		if err == nil && s.cfg.Heap {
			s.heap, err = sampler.LoadHeapProbes()
		}
		if err == nil {
			err = s.begin()
		}
	}
	if err != nil {
		s.heap.Close()
		err = errors.Join(err, s.registers.close())
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
	ballast := make([]byte, collectAt)
	s.unhurry = func() {
		runtime.KeepAlive(ballast)
		undo()
	}
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

// collectAt is how much memory, in bytes, is in use at least between two collections
// of garbage; it is never touched, so that it takes none. Each collection stops all
// of rdx's threads, the tracing one, too, and goes on only when each has had its turn:
// beside a thousand busy threads that has taken half a second, in which a thread of
// the target may be held.
const collectAt = 32 << 20

func (s *Session) begin() error {
	err := errors.Join(s.kernel.SetAccept(s.budget.accepted()), s.kernel.SetHoldLimit(holdLimit))
	if err == nil && s.halves {
		err = s.kernel.SetHalfLines()
	}
	if err == nil {
		err = s.chooseHolds()
	}
	if err == nil {
		err = s.setAgain()
	}
	if err == nil && s.groups() && s.cfg.PID != 0 {
		err = s.expectMany(s.cfg.PID)
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
	s.start, s.own.before = time.Now(), ownTime()
	pid := s.cfg.PID
	var launched *ptrace.Launched
	if pid == 0 {
		if launched, err = ptrace.Launch(s.cfg.Command); err != nil {
			s.tracer.Detach()
			s.onRequest()
			return err
		}
		pid = launched.PID
		s.launching = true
		s.child = pid
	}
	if launched != nil {
		s.hurry() // not before, or the target would inherit the priority
	}
	s.bePatient()
	s.tracer.Do(func() {
		seizing := time.Now()
		if err = s.tracer.Seize(pid); err == nil && s.err != nil {
			err = s.err
		}
		s.attached, s.attachTime = len(s.threads), time.Since(seizing)
		if err != nil {
			s.closeAll()
		}
	})
	if launched != nil && err == nil {
		s.waitForFiles()
		err = launched.Go()
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
	if s.readsLosers() {
		err = s.kernel.HoldLosers()
	}
	if s.cfg.Interrupt && s.source.Reports() == sampler.NoAccess {
		err = errors.Join(err, s.kernel.HoldByInterrupt())
	}
	return err
}

// readsLosers says whether samples that are not watched are of use.
func (s *Session) readsLosers() bool {
	return s.burst > 0 && s.source.Reports() == sampler.NoAccess
}

// Wait samples until the duration is over, the context ends or the target
// exits, and returns the profile of what was seen. The target runs on.
func (s *Session) Wait(ctx context.Context) (*model.Profile, error) {
	if s.cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.Duration-time.Since(s.start))
		defer cancel()
	}
	s.tracer.Do(func() {
		if err := s.tracer.Every(tickInterval, s.everyTick); err != nil {
			s.fail(err)
		}
	})
	for running := true; running; {
		select {
		case <-ctx.Done():
			running = false
		case <-s.tracer.Done():
			running = false
		case a := <-s.aside.to:
			s.stacks.unwind(a.stacks, false)
			s.beside.mergeAll(a.holds, uint64(s.block()))
			s.aside.back <- a.asideWork
			s.tell(a.progress)
			running = !a.failed
		}
	}
	s.end = time.Now()
	s.tracer.Do(s.closeAll)
	s.tracer.Detach()
	s.onRequest()
	s.detachTime = time.Since(s.end)
	if err := s.registers.close(); err != nil {
		s.fail(err)
	}
	if s.launching && s.exit.Exited {
		return nil, ErrNotStarted
	}
	// Nothing but this goroutine is left.
	s.settleFiles()
	s.drain()
	s.findDataAgain()
	s.closeAside()
	s.stacks.unwind(s.stacks.take(), true)
	s.mergeLast()
	p, err := s.profile()
	return p, errors.Join(err, s.err)
}

// ErrNotStarted says that the launched process ended without becoming the
// program. Why it has said itself, on standard error.
var ErrNotStarted = errors.New("the program could not be started")

// Exit says how the target ended, if it did during the session.
func (s *Session) Exit() ExitStatus { return s.exit }

// AwaitExit waits, after Wait, for a started program to exit, and says how it
// did. A process that was attached to is not waited for.
func (s *Session) AwaitExit() ExitStatus {
	if s.exit.Exited || s.child == 0 {
		return s.exit
	}
	var status unix.WaitStatus
	_, err := unix.Wait4(s.child, &status, 0, nil)
	for err == unix.EINTR {
		_, err = unix.Wait4(s.child, &status, 0, nil)
	}
	s.exit = ExitStatus{err == nil, status}
	return s.exit
}

// Signal passes a signal on to a started program that still runs.
func (s *Session) Signal(sig os.Signal) {
	if n, ok := sig.(unix.Signal); ok && s.child != 0 && !s.exit.Exited {
		_ = unix.Kill(s.child, n)
	}
}

// Close unloads the BPF programs and the target's files. Call it when the
// profile has been symbolized.
func (s *Session) Close() error {
	s.closeFiles()
	s.unhurry()
	return errors.Join(s.heap.Close(), s.kernel.Close())
}

// tick does what need not be done while a thread is held.
func (s *Session) tick() {
	s.drain()
	s.recalibrate()
	s.clearEnded()
	if s.groups() {
		s.prune()
		s.tendRegisters()
	}
	s.findData()
	for _, p := range s.processes {
		p.refresh()
		p.readTime()
		s.probeHeap(p)
		if s.groups() {
			s.noteCPU(p, sampler.Monotonic())
		}
	}
	s.findDataAgain()
	stats, err := s.kernel.Stats()
	if err != nil {
		s.fail(err)
	}
	for _, t := range s.threads {
		t.expireHold(s)
	}
	sum := s.total(false)
	s.watch(sum, stats)
	if s.hasProbes() {
		s.driveProbe(sum.cpu)
	}
	s.lookAtOwn()
	s.settleCopying()
	ran := max(sum.cpu, s.ranTime())
	s.takeTurns(ran)
	if s.budget.update(ran, stats, s.held.sum-s.stepped.cpu+s.resumed(), s.budget.trapped(sum.traps+stats.OtherProcess, sum.spent)+s.stampCost()) {
		if err := s.kernel.SetAccept(s.budget.accepted()); err != nil {
			s.fail(err)
		}
		s.regap(sum)
	}
	s.latest = stats
}

// regap spaces the ticks so that some more come than can become samples: for
// the gaps between samples to be geometric, but not so many that ticks are what
// the budget is spent on.
//
// Of many threads each gets its new gap when it is held: to set it between two
// ticks begins the gap anew, and if each runs little none would come to its end. Few
// get it at once: they are held seldom where it is the ticks that cost too much.
func (s *Session) regap(sum totals) {
	if s.cfg.Gap != 0 || s.cfg.gap != 0 {
		return
	}
	perNS := 1.0
	if s.source.Unit() != sampler.Nanoseconds && sum.cpu > 0 && sum.ticked > 0 {
		perNS = sum.ticked / float64(sum.cpu)
	}
	gap := float64(s.budget.gap()) * perNS
	if ratio := gap / s.gap; ratio > 1/regapRatio && ratio < regapRatio {
		return
	}
	atOnce := s.threads
	if len(atOnce) > regapAtOnce {
		atOnce = nil
	}
	for _, t := range atOnce {
		s.cut(t)
	}
	s.gap = gap
	for _, t := range atOnce {
		t.redraw(s)
	}
}

const (
	// regapRatio: smaller changes of the gap are not worth a system call a thread.
	regapRatio  = 1.3
	regapAtOnce = 16 // threads
)

// closeAll stops sampling and ends all observations.
func (s *Session) closeAll() {
	s.closing = true
	s.drain()
	for _, p := range s.processes {
		p.readTime()
	}
	s.settleCopying()
	for _, t := range s.threads {
		s.dropThread(t)
		if s.unread > 0 { // not before: what still traps until its slot is retired counts, too
			s.loseTimes(t, t.wentOn)
		}
	}
}

func (s *Session) allProcesses() []*process {
	all := s.past
	for _, p := range s.processes {
		all = append(all, p)
	}
	return all
}
