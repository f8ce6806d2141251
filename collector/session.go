package collector

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// Session is one profiling session from Start to Wait. It belongs to the goroutine that starts it and waits for it.
type Session struct {
	// sampling is the tracing thread's from begin until that has ended: until then whoever waits knows of it what is handed over.
	sampling  *sampling
	backlog   backlog
	course    course
	onRequest func() // ends it
	unhurry   func()
	ballast   []byte // see collectAt
	unloaded  unloaded
}

// course is how a session went, as whoever starts and ends it knows.
type course struct {
	end                  time.Time
	attaching, detaching time.Duration
	resident             int64 // memory that the target had at most, bytes
	touched              int64 // and can have had in all
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
	s := &Session{sampling: newSampling(cfg), backlog: newBacklog(cfg)}
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
	if s.sampling.cfg.PID != 0 {
		s.hurry()
	}
	if err := s.sampling.load(); err != nil {
		return err
	}
	err := s.sampling.choose()
	if err == nil {
		err = s.begin()
	}
	if err != nil {
		err = errors.Join(err, s.sampling.abandon())
	}
	return err
}

// hurry is undone by unhurry.
func (s *Session) hurry() {
	undo, err := ptrace.Hurry()
	if err != nil {
		s.sampling.cfg.Log.Info("no priority over the target: slow beside very many busy threads", zap.Error(err))
		return
	}
	s.unhurry = undo
}

// bePatient is undone by unhurry, too.
func (s *Session) bePatient() {
	undo, err := ptrace.Patient()
	if err != nil {
		s.sampling.cfg.Log.Info("own timers disturb the target", zap.Error(err))
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
	s.unloaded, s.ballast = s.sampling.release(), nil
	debug.FreeOSMemory() // the next collection would be as late as with the ballast; and large sections don't fit between what is left
}

// unloaded is what is known of the BPF programs once they are gone.
type unloaded struct {
	times   []sampler.ProgramTime
	noTimes error
	err     error // of unloading them
}

// begin attaches to the target, or starts it.
func (s *Session) begin() error {
	x := s.sampling
	var err error
	if x.tracing.tracer, err = ptrace.NewTracer(events{&x.targets, &x.handler}, x.cfg.Follow); err != nil {
		return err
	}
	if s.onRequest, err = x.kernel.OnRequest(func() { x.tracing.tracer.Ask(x.traps.drain) }, x.tracing.tracer.AskAgain); err != nil {
		x.tracing.tracer.Detach()
		return err
	}
	if err := x.cfg.interrupted(); err != nil {
		x.tracing.tracer.Detach()
		s.onRequest()
		return err
	}
	x.tracing.start, x.self.before = time.Now(), profilerTime()
	var launched *ptrace.Launched
	if x.cfg.PID == 0 {
		if launched, err = ptrace.Launch(x.cfg.Command); err != nil {
			x.tracing.tracer.Detach()
			s.onRequest()
			return err
		}
		x.targets.launching = true
		x.targets.child = launched.PID
		x.targets.waitedFor = waitedFor()
	}
	if launched != nil {
		s.hurry() // not before, or the target would inherit the priority
	}
	s.bePatient()
	x.targets.prepare()
	s.collectSeldom()
	x.tracing.tracer.Do(func() {
		seizing := time.Now()
		if err = x.targets.seize(x.targets.child); err == nil && x.account.err != nil {
			err = x.account.err
		}
		x.targets.attached, s.course.attaching = len(x.targets.threads), time.Since(seizing)
		if err != nil {
			x.closeAll()
		}
	})
	if launched != nil && err == nil {
		x.targets.processes.WaitForFiles()
		if err = x.cfg.interrupted(); err == nil {
			err = launched.Go()
		}
	}
	if err != nil {
		x.tracing.tracer.Detach()
		s.onRequest()
		if launched != nil {
			launched.Abandon()
		}
	}
	return err
}

// Wait samples until the duration is over, the context ends or the target
// exits, and returns the profile of what was seen. The target runs on.
func (s *Session) Wait(ctx context.Context) (*model.Profile, error) {
	x := s.sampling
	if x.cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, x.cfg.Duration-time.Since(x.tracing.start))
		defer cancel()
	}
	x.memory = newMemory(x.targets.child == 0) // asked by ticks, of which there was none
	x.tracing.tracer.Do(x.keepTicking)
	for running := true; running; {
		select {
		case <-ctx.Done():
			running = false
		case <-x.tracing.tracer.Done():
			running = false
		case a := <-x.handover.to:
			s.backlog.do(a.handoverWork)
			x.handover.back <- a.handoverWork
			a.progress.Known = s.backlog.look(a.seen)
			s.backlog.tell(a.progress)
			running = !a.failed
		}
	}
	s.course.end = time.Now()
	x.tracing.tracer.Do(x.closeAll)
	x.tracing.tracer.Detach()
	s.onRequest()
	s.course.detaching = time.Since(s.course.end)
	s.course.resident, s.course.touched = x.memory.end(x.targets.processes)
	if err := x.watches.registers.close(); err != nil {
		x.account.fail(err)
	}
	if x.targets.launching && x.targets.exit.Exited {
		return nil, ErrNotStarted
	}
	return s.finish()
}

// finish is called when nothing but this goroutine is left.
func (s *Session) finish() (*model.Profile, error) {
	x := s.sampling
	x.targets.processes.SettleFiles()
	x.traps.drain()
	x.targets.findDataAgain()
	x.targets.processes.NameData()
	for _, p := range x.handover.end(x.progress) {
		s.backlog.tell(p)
	}
	s.backlog.table.Unwind(x.kept.stacks.Take(), true)
	left := handoverWork{holds: x.holds.merges.Take(), block: uint64(x.holds.block()), joined: x.holds.windows.Take()}
	s.backlog.do(left)
	x.holds.merges.Done(left.holds)
	p, err := x.profile(&s.backlog, s.course)
	s.release()
	return p, errors.Join(err, x.account.err)
}

// ErrNotStarted says that the launched process ended without becoming the
// program. Why it has said itself, on standard error.
var ErrNotStarted = errors.New("the program could not be started")

// Exit says how the target ended, if it did during the session.
func (s *Session) Exit() ExitStatus { return s.sampling.targets.exit }

// Started is the number of a started program's process, 0 if none was.
func (s *Session) Started() int { return s.sampling.targets.child }

// AwaitExit waits, after Wait, for a started program to exit, and says how it
// did. A process that was attached to is not waited for.
func (s *Session) AwaitExit() ExitStatus {
	if s.sampling.targets.exit.Exited || s.sampling.targets.child == 0 {
		return s.sampling.targets.exit
	}
	var status unix.WaitStatus
	_, err := unix.Wait4(s.sampling.targets.child, &status, 0, nil)
	for err == unix.EINTR {
		_, err = unix.Wait4(s.sampling.targets.child, &status, 0, nil)
	}
	s.sampling.targets.exit = ExitStatus{err == nil, status}
	return s.sampling.targets.exit
}

// Signal passes a signal on to a started program that still runs.
func (s *Session) Signal(sig os.Signal) {
	if n, ok := sig.(unix.Signal); ok && s.sampling.targets.child != 0 && !s.sampling.targets.exit.Exited {
		_ = unix.Kill(s.sampling.targets.child, n)
	}
}

// Close gives back the target's files, and what Wait has not. Call it when the
// profile has been symbolized.
func (s *Session) Close() error {
	s.sampling.targets.processes.Close()
	s.unhurry()
	if s.sampling.kernel != nil {
		s.release()
	}
	return errors.Join(s.sampling.targets.heap.Close(), s.unloaded.err)
}
