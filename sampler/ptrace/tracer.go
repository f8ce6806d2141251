package ptrace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/proc"
	"github.com/rdx-profiler/rdx/sampler/clock"
)

// Handler is told what happens to the traced threads. All calls come from the
// tracer's goroutine.
type Handler interface {
	// ThreadStarted: tid of process pid is traced from now on.
	ThreadStarted(pid, tid int)
	// ThreadMissed: nothing could be found out of a new thread, which runs on untraced.
	ThreadMissed(tid int, err error)
	// ThreadExited: tid is gone; status is that of wait4.
	ThreadExited(tid int, status unix.WaitStatus)
	// Execed: process pid runs another program and has one thread, pid.
	// All that was known of its threads is void.
	Execed(pid int)
	// Hold: tid is stopped by a signal. If the stop is a hold the handler
	// asked for, it does its work and ours is true: the thread is let go and
	// never sees the signal, which may be Interrupted. running says that the thread is known to stand in no
	// system call.
	Hold(tid int, signal unix.Signal) (ours, running bool)
	// LetGo: the thread that was held runs again.
	LetGo()
	// Repeats: the access at which a watchpoint of tid has just trapped is not
	// done yet, and will trap again: a signal handler of the target's comes
	// in between.
	Repeats(tid int)
	// Pending says whether a signal that the handler asked for may still be
	// on its way: the end of tracing waits for it, else the target would
	// receive it.
	Pending() bool
}

// Tracer owns the OS thread that seized the target's threads, from which all
// ptrace requests must come.
//
// It detaches by letting that OS thread exit: the kernel then sets every
// tracee free without stopping it, in a system call or not.
type Tracer struct {
	handler Handler
	follow  bool
	wake    *waker
	calls   chan func()
	done    chan struct{}
	threads tracees
	quit    bool

	asked atomic.Pointer[func()]
	pulse pulse
	stuck func(why string) // what the guard does

	tick      func() // nil unless Every was called
	tickEvery time.Duration
	lastTick  time.Duration // by Monotonic

	alarm   func() // nil unless Once was called, and has not called it
	alarmAt time.Duration

	awake      time.Duration // by Monotonic: when the tracing thread last woke up for an event
	woke       bool          // for the last event
	maker      int           // process that has made a thread last
	stopCounts StopCounts

	// RealTime says whether the tracing thread could be made to run before
	// all ordinary threads; without it, holds are longer on a busy machine.
	RealTime bool
}

// NewTracer starts the tracing thread. follow says whether new processes of
// the target are traced too.
func NewTracer(h Handler, follow bool) (*Tracer, error) {
	t := &Tracer{
		handler: h,
		follow:  follow,
		calls:   make(chan func(), 1),
		done:    make(chan struct{}),
		threads: newTracees(),
		stuck:   endProcess,
	}
	started := make(chan error)
	go t.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	go t.guard()
	return t, nil
}

// Do runs f on the tracing thread, between two stops, and waits for it.
// It returns false if the tracer has ended.
func (t *Tracer) Do(f func()) bool {
	ran := make(chan struct{})
	select {
	case t.calls <- func() { f(); close(ran) }:
	case <-t.done:
		return false
	}
	for {
		// The call is in place before the thread is woken, so that the
		// thread finds it however fast it is. The wake-up is lost if the
		// thread was on its way into wait4; repeat it.
		t.wake.wake()
		select {
		case <-ran:
			return true
		case <-t.done:
			select {
			case <-ran:
				return true
			default:
				return false
			}
		case <-time.After(time.Millisecond):
		}
	}
}

// Ask has f called on the tracing thread, between two stops, and does not wait for it. What was asked before and is not
// done yet is forgotten. The wake-up may be lost, as of Do: AskAgain is to be called a while later.
func (t *Tracer) Ask(f func()) {
	t.asked.Store(&f)
	t.wake.wake()
}

// AskAgain says whether what was asked is not done yet, and wakes the thread once more for it.
func (t *Tracer) AskAgain() bool {
	if t.asked.Load() == nil {
		return false
	}
	t.wake.wake()
	return true
}

// Every has f called on the tracing thread each d, between two stops, until tracing ends: at times
// later, but never two for one. Call it through Do, once.
func (t *Tracer) Every(d time.Duration, f func()) error {
	if err := t.wake.every(d); err != nil {
		return fmt.Errorf("wake the tracing thread: %w", err)
	}
	t.tick, t.tickEvery, t.lastTick = f, d, clock.Monotonic()
	return nil
}

// Once has f called on the tracing thread after d, between two stops: at times later, if Every was called by no more than its period. What was
// to be called so before and has not been is forgotten. Call it on the tracing thread.
func (t *Tracer) Once(d time.Duration, f func()) error {
	if err := t.wake.once(d); err != nil {
		return fmt.Errorf("wake the tracing thread: %w", err)
	}
	t.alarm, t.alarmAt = f, clock.Monotonic()+d
	return nil
}

// ticks calls what Every and Once were given, if it is due. The timer's signal tells of it only where it finds the
// thread in wait4: one that comes just before is made up for by the next event.
func (t *Tracer) ticks() {
	if t.tick == nil && t.alarm == nil {
		return
	}
	now := clock.Monotonic()
	if f := t.alarm; f != nil && now >= t.alarmAt {
		t.alarm = nil
		f()
	}
	// A signal wakes nobody before its time, but the clock is read later each time.
	if t.tick != nil && now-t.lastTick >= t.tickEvery*9/10 {
		t.lastTick = now
		t.tick()
	}
}

// Done is closed when no traced thread is left, or after Detach.
func (t *Tracer) Done() <-chan struct{} { return t.done }

// Detach ends tracing. Every thread runs on without noticing.
func (t *Tracer) Detach() {
	t.Do(func() { t.quit = true })
	<-t.done
}

// Seize starts tracing all threads of pid, those that are created meanwhile
// included. Call it through Do.
func (t *Tracer) Seize(pid int) error {
	options := unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEEXEC
	if t.follow {
		options |= unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK
	}
	// A thread made by one that is not seized yet is missed by the kernel:
	// look again until there is nothing new.
	for found := true; found; {
		found = false
		tids, err := threadsOf(pid)
		if err != nil {
			return fmt.Errorf("attach to process %d: %w", pid, err)
		}
		for _, tid := range tids {
			if _, ok := t.threads.process(tid); ok {
				continue
			}
			if err := Seize(tid, options); err != nil {
				if t.passes(pid, tid, err) {
					continue
				}
				return fmt.Errorf("attach to thread %d of process %d: %w", tid, pid, explainSeize(tid, err))
			}
			found = true
			t.threads.add(tid, pid)
			t.handler.ThreadStarted(pid, tid)
			t.Beat()
		}
	}
	return nil
}

// passes says of a thread that could not be seized whether that is as well: it
// has exited, the first one too if there are others, or the kernel has seized
// it for us, as it does with threads of seized threads.
func (t *Tracer) passes(pid, tid int, err error) bool {
	state, e := proc.Status(tid, "State")
	switch {
	case e != nil || errors.Is(err, unix.ESRCH):
		return tid != pid
	case strings.HasPrefix(state, "Z"), strings.HasPrefix(state, "X"):
		tids, e := threadsOf(pid)
		return tid != pid || e == nil && len(tids) > 1
	}
	tracer, e := proc.Status(tid, "TracerPid")
	return e == nil && tracer == strconv.Itoa(unix.Gettid())
}

// threadsOf lists the threads of a process as of now.
func threadsOf(pid int) ([]int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("no such process")
	} else if err != nil {
		return nil, err
	}
	tids := make([]int, 0, len(entries))
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			tids = append(tids, tid)
		}
	}
	if len(tids) == 0 { // it has ended since the folder was opened
		return nil, errors.New("no such process")
	}
	return tids, nil
}

func (t *Tracer) run(started chan<- error) {
	// Never unlocked: the OS thread ends with this goroutine.
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		// The main thread never ends before the process does. Keep it out of
		// use until tracing has ended on another.
		go t.run(started)
		<-t.done
		runtime.UnlockOSThread()
		return
	}
	defer close(t.done)
	t.RealTime = Preempt() == nil
	var err error
	t.pulse.tid = unix.Gettid()
	t.wake, err = newWaker(t.pulse.tid)
	started <- err
	if err != nil {
		return
	}
	defer t.wake.close()
	seized := false
	for !t.quit {
		seized = seized || t.threads.len() > 0
		if seized && t.threads.len() == 0 {
			return
		}
		select {
		case f := <-t.calls:
			f()
			t.Beat()
			continue
		default:
		}
		if f := t.asked.Swap(nil); f != nil {
			(*f)()
			continue
		}
		if !seized {
			var f func()
			t.await(func() { f = <-t.calls })
			f()
			t.Beat()
			continue
		}
		t.wait(0)
		t.ticks()
	}
	t.drain()
}

// Preempt makes the calling OS thread run as soon as it can: a held thread
// waits for it. It works for microseconds at a time, and the kernel keeps a
// share of every CPU from real-time threads.
func Preempt() error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{
		Size:     unix.SizeofSchedAttr,
		Policy:   unix.SCHED_FIFO,
		Priority: 1,
		Flags:    unix.SCHED_FLAG_RESET_ON_FORK,
	}, 0)
}

// drainTimeout is for threads that are ready to run but wait for a CPU. One
// that does not run at all, being stopped, receives the signal in the end.
const drainTimeout = time.Second

// nextIgnored is for how long the end of tracing waits for the next signal that a target ignores. Who gets none for so
// long is unlikely to get one within the microseconds in which the tracing thread ends.
const nextIgnored = 200 * time.Millisecond

// drain lets go of threads whose hold is on its way, so that the signal is
// taken by us and not left pending; and of those that get ignored signals when they next have got one, and its harm is mended.
func (t *Tracer) drain() {
	start := time.Now()
	for t.threads.len() > 0 {
		waited := time.Since(start)
		if !(t.handler.Pending() && waited < drainTimeout || len(t.threads.mended) > 0 && waited < nextIgnored) {
			return
		}
		if !t.wait(unix.WNOHANG) {
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// letGo lets a thread run on that is stopped by a signal, with it if it is not 0: for good if tracing ends and it is one
// that must not be left in between.
func (t *Tracer) letGo(tid int, signal unix.Signal) {
	if _, ok := t.threads.mended[tid]; !ok || !t.quit {
		_ = resume(tid, signal)
		return
	}
	// What is queued yet the kernel drops now, and makes the call again.
	_ = detach(tid, signal)
	t.threads.remove(tid)
}

// wait handles the next event of any thread; false if there was none.
func (t *Tracer) wait(flags int) bool {
	var status unix.WaitStatus
	before := clock.Monotonic()
	var tid int
	var err error
	t.await(func() { tid, err = unix.Wait4(-1, &status, unix.WALL|flags, nil) })
	now := clock.Monotonic()
	if t.woke = now-before > awakeLatency/10; t.woke {
		t.awake = now
	}
	if err != nil || tid == 0 {
		if err == unix.ECHILD {
			t.threads.clear()
		}
		return false
	}
	switch {
	case status.Exited(), status.Signaled():
		if pid, ok := t.threads.process(tid); ok {
			if tid == pid {
				t.stopCounts.add(0, t.woke) // who waits for the process learns of it now
			}
			t.threads.remove(tid)
			t.handler.ThreadExited(tid, status)
		}
	case status.Stopped():
		if !t.stopped(tid, status) {
			t.stopCounts.add(clock.Monotonic()-now, t.woke)
		}
	}
	return true
}

// StopCounts are of the stops that come with being traced, sampled or not: at fork, exec, the making
// of a thread, of the maker's and of what is made, and at signals of the target's own. The
// end of a process counts as one, for its parent is told when the tracer has been.
type StopCounts struct {
	N uint64
	// Woke is for how many of them the tracing thread had to wake up.
	Woke uint64
	// Served is how long it then took until the threads were let go.
	Served time.Duration
	// Stray is how many of them were by SIGTRAPs of watchpoints that the kernel did not know as such. The target
	// does not see them.
	Stray uint64
}

func (s *StopCounts) add(served time.Duration, woke bool) {
	s.N++
	s.Served += served
	if woke {
		s.Woke++
	}
}

// StopCounts are those so far. Call it on the tracing thread, or after Detach.
func (t *Tracer) StopCounts() StopCounts { return t.stopCounts }

// WokeAfter is how long the tracing thread needed to wake up for the event that it deals with, sent at
// a moment by Monotonic; ok is false if it was awake.
func (t *Tracer) WokeAfter(sent time.Duration) (needed time.Duration, ok bool) {
	return t.awake - sent, t.woke && t.awake > sent
}

// awakeLatency is what a real-time thread needs to wake up, at most.
const awakeLatency = 200 * time.Microsecond

// StoppedSince is when a thread that is held has stopped, if the signal was sent
// at a moment by Monotonic. A thread that had to leave its CPU in between stops
// only when it gets one again, which it would have waited for without us, too:
// it can't have stopped before the tracing thread last had nothing to do. Without
// real-time priority that may itself have waited for a CPU, and nothing is known.
func (t *Tracer) StoppedSince(sent time.Duration) time.Duration {
	if !t.RealTime {
		return sent
	}
	return max(sent, t.awake-awakeLatency)
}

const eventStop = 128 // PTRACE_EVENT_STOP

// stopped deals with one ptrace stop, see ptrace(2), and lets the thread go. It says whether the
// handler accounts for the stop, or the target makes it by itself.
func (t *Tracer) stopped(tid int, status unix.WaitStatus) (accounted bool) {
	signal := status.StopSignal()
	switch event := int(status) >> 16; event {
	case 0: // signal-delivery-stop
		if steppedIntoHandler(tid, signal) {
			t.handler.Repeats(tid)
			_ = resume(tid, 0)
			return false
		}
		if strayTrap(tid, signal) {
			t.stopCounts.Stray++
			_ = resume(tid, 0)
			return false
		}
		// The signal that holds a thread is sent by an interrupt of its own, which
		// may come when the thread has just entered a system call. And a signal
		// that the target ignores would not have got here without us.
		held, running := t.handler.Hold(tid, signal)
		if !running && interrupted(tid) && (held || ignores(tid, signal)) {
			mendSyscall(tid)
			if !held {
				t.threads.mended[tid] = struct{}{}
			}
		}
		if held {
			signal = 0
		}
		t.letGo(tid, signal)
		if held {
			t.handler.LetGo()
		}
		return held
	case eventStop:
		if signal != unix.SIGTRAP {
			// Group-stop: stay stopped until SIGCONT, as without us.
			_ = ptraceListen(tid)
			return true
		}
		if _, ok := t.threads.process(tid); !ok {
			t.newcomer(tid)
			return false
		}
		held, running := t.handler.Hold(tid, Interrupted)
		if held && !running && interrupted(tid) {
			mendSyscall(tid)
		}
		_ = resume(tid, 0)
		if held {
			t.handler.LetGo()
		}
		return held
	case unix.PTRACE_EVENT_EXEC:
		t.execed(tid)
	case unix.PTRACE_EVENT_CLONE:
		t.maker, _ = t.threads.process(tid)
	}
	// An error means the thread was killed meanwhile: its exit will be told.
	_ = resume(tid, 0)
	return false
}

// newcomer is a thread in its first stop, before its first instruction.
func (t *Tracer) newcomer(tid int) {
	pid, err := t.ofMaker(tid)
	if err == nil && (t.follow || t.threads.any(pid)) {
		t.threads.add(tid, pid)
		t.handler.ThreadStarted(pid, tid)
		_ = resume(tid, 0)
		return
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
		t.handler.ThreadMissed(tid, err)
	}
	// Or a process made by a bare clone; it was not asked for.
	_ = detach(tid, 0)
}

// ofMaker is the process of a newcomer: its own, or one that has just made a thread. It waits
// for the answer, and to read /proc takes 40 µs.
func (t *Tracer) ofMaker(tid int) (pid int, err error) {
	for _, pid := range []int{tid, t.maker} {
		// No signal is sent; without leave to send one, there is such a thread, too.
		if err := unix.Tgkill(pid, tid, 0); err == nil || err == unix.EPERM {
			return pid, nil
		}
	}
	return processOf(tid)
}

// execed forgets the process's other threads, which are gone without a word;
// the one that called exec now has the number of the process.
func (t *Tracer) execed(pid int) {
	t.threads.removeAll(pid)
	t.threads.add(pid, pid)
	t.handler.Execed(pid)
}
