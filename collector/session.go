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
	cfg      Config
	sampling *sampling // as long as threads are traced this goroutine has traced of it
	traced   *traced
	backlog  backlog
	course   course
	child    int // the process that was started, 0 if none was
	exit     ExitStatus
	unhurry  func()
	ballast  []byte // see collectAt
	unloaded unloaded
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
	s := &Session{cfg: cfg, sampling: newSampling(cfg), backlog: newBacklog(cfg)}
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
	s.unloaded, s.ballast = s.sampling.release(), nil
	debug.FreeOSMemory() // the next collection would be as late as with the ballast; and large sections don't fit between what is left
}

// unloaded is what is known of the BPF programs once they are gone.
type unloaded struct {
	times   []sampler.ProgramTime
	noTimes error
	err     error // of unloading them
}

// traced is what whoever starts a session and waits for it has of it while threads are traced: what does not change
// any more, what may be used by any goroutine, and the tracing thread to have things done on.
type traced struct {
	tracer    *ptrace.Tracer
	sampling  *sampling // for do alone
	start     time.Time
	to        <-chan handedOver
	back      chan<- handoverWork
	files     func()           // waits for those that are being opened
	launched  *ptrace.Launched // nil if nothing was started
	onRequest func()           // ends it
}

// do has something done on the tracing thread.
func (t *traced) do(f func(*sampling)) { t.tracer.Do(func() { f(t.sampling) }) }

// detach ends it all: no thread is traced any more.
func (t *traced) detach() {
	t.tracer.Detach()
	t.onRequest()
}

// begin attaches to the target, or starts it.
func (s *Session) begin() (err error) {
	if s.traced, err = s.sampling.trace(); err != nil {
		return err
	}
	if s.child = s.sampling.targets.child; s.child != 0 {
		s.hurry() // not before, or the target would inherit the priority
	}
	s.bePatient()
	s.sampling.targets.prepare()
	s.collectSeldom()
	if err = s.seize(); err != nil {
		s.traced.detach()
		s.sampling.memory.close()
		if s.traced.launched != nil {
			s.traced.launched.Abandon()
		}
	}
	return err
}

// seize has all threads traced, and lets a program that was started go.
func (s *Session) seize() (err error) {
	x := s.traced
	x.do(func(tracing *sampling) { s.course.attaching, err = tracing.seize() })
	if x.launched != nil && err == nil {
		x.files()
		if err = s.cfg.interrupted(); err == nil {
			err = x.launched.Go()
		}
	}
	return err
}

// Wait samples until the duration is over, the context ends or the target
// exits, and returns the profile of what was seen. The target runs on.
func (s *Session) Wait(ctx context.Context) (*model.Profile, error) {
	x := s.traced
	if s.cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.Duration-time.Since(x.start))
		defer cancel()
	}
	x.do((*sampling).keepTicking)
	for running := true; running; {
		select {
		case <-ctx.Done():
			running = false
		case <-x.tracer.Done():
			running = false
		case a := <-x.to:
			s.backlog.do(a.handoverWork)
			x.back <- a.handoverWork
			a.progress.Known = s.backlog.look(a.seen)
			s.backlog.tell(a.progress)
			running = !a.failed
		}
	}
	s.course.end = time.Now()
	x.do((*sampling).closeAll)
	x.detach()
	s.course.detaching = time.Since(s.course.end)
	return s.finish()
}

// finish is called when nothing but this goroutine is left.
func (s *Session) finish() (*model.Profile, error) {
	x := s.sampling
	s.course.resident, s.course.touched = x.memory.end(x.targets.processes)
	if err := x.watches.registers.close(); err != nil {
		x.account.fail(err)
	}
	if s.exit = x.targets.exit; x.targets.launching && s.exit.Exited {
		return nil, ErrNotStarted
	}
	x.settle(&s.backlog)
	p, err := x.profile(&s.backlog, s.course)
	s.release()
	return p, errors.Join(err, x.account.err)
}

// ErrNotStarted says that the launched process ended without becoming the
// program. Why it has said itself, on standard error.
var ErrNotStarted = errors.New("the program could not be started")

// Exit says how the target ended, if it did during the session. Valid after Wait.
func (s *Session) Exit() ExitStatus { return s.exit }

// Started is the number of a started program's process, 0 if none was.
func (s *Session) Started() int { return s.child }

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

// Signal passes a signal on to a started program that still runs. Valid after Wait.
func (s *Session) Signal(sig os.Signal) {
	if n, ok := sig.(unix.Signal); ok && s.child != 0 && !s.exit.Exited {
		_ = unix.Kill(s.child, n)
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
