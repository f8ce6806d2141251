// Needs: root or ptrace of own children.
package ptrace

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/clock"
)

// watcher is a handler that holds nothing.
type watcher struct{ exited chan int }

func (watcher) ThreadStarted(int, int)                    {}
func (w watcher) ThreadMissed(int, error)                 {}
func (w watcher) ThreadExited(tid int, _ unix.WaitStatus) { w.exited <- tid }
func (watcher) Execed(int)                                {}
func (watcher) Hold(int, unix.Signal) (bool, bool)        { return false, false }
func (watcher) Pending() bool                             { return false }
func (watcher) LetGo()                                    {}
func (watcher) Repeats(int)                               {}

// traced is a tracer of a program that runs until the test is over.
func traced(t *testing.T, program string, args ...string) *Tracer {
	t.Helper()
	target := exec.Command(program, args...)
	if err := target.Start(); err != nil {
		t.Skipf("needs %s: %v", program, err)
	}
	t.Cleanup(func() {
		target.Process.Kill()
		target.Wait()
	})
	tr, err := NewTracer(watcher{make(chan int, 10)}, false)
	if err != nil {
		t.Fatal(err)
	}
	tr.Do(func() { err = tr.Seize(target.Process.Pid) })
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// On a single CPU the woken tracing thread runs at once, before the caller of
// Do gets any further: the call must be in place by then.
func TestDoOnOneCPU(t *testing.T) {
	onOneCPU(t)
	// Something else wants the CPU, too.
	tr := traced(t, "sh", "-c", "while :; do :; done")
	const n = 300
	start := time.Now()
	for range n {
		if !tr.Do(func() {}) {
			t.Fatal("the tracer has ended")
		}
	}
	tr.Detach()
	if each := time.Since(start) / n; each > 100*time.Millisecond {
		t.Errorf("a call took %v", each)
	} else {
		t.Logf("a call took %v", each)
	}
}

// onOneCPU confines all threads of the test to one CPU.
func onOneCPU(t *testing.T) {
	t.Helper()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := range 1024 {
		if all.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	confine := func(set *unix.CPUSet) {
		threads, _ := os.ReadDir("/proc/self/task")
		for _, e := range threads {
			tid, _ := strconv.Atoi(e.Name())
			_ = unix.SchedSetaffinity(tid, set)
		}
	}
	confine(&one)
	old := runtime.GOMAXPROCS(1)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(old)
		confine(&all)
	})
}

// A thread that waits for a CPU is not held by us; one whose stop waits for the
// tracing thread is.
func TestStoppedSince(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		sent, awake, want time.Duration
		realTime          bool
	}{
		{sent: 100 * ms, awake: 99 * ms, want: 100 * ms, realTime: true},               // sent while others were served
		{sent: 100 * ms, awake: 100*ms + 50_000, want: 100 * ms, realTime: true},       // woke up at once
		{sent: 100 * ms, awake: 150 * ms, want: 150*ms - awakeLatency, realTime: true}, // the thread had no CPU
		{sent: 100 * ms, awake: 150 * ms, want: 100 * ms, realTime: false},             // or we had none
	} {
		tr := &Tracer{awake: c.awake, RealTime: c.realTime}
		if got := tr.StoppedSince(c.sent); got != c.want {
			t.Errorf("sent at %v, awake at %v, real-time %v: %v, want %v", c.sent, c.awake, c.realTime, got, c.want)
		}
	}
}

// asker is a watcher that knows whose the threads are.
type asker struct {
	watcher
	t       *testing.T
	threads *int // that are not their process's first
}

func (a asker) ThreadStarted(pid, tid int) {
	if want, err := processOf(tid); err != nil || pid != want {
		a.t.Errorf("thread %d is of process %d (%v), not %d", tid, want, err, pid)
	}
	if pid != tid {
		*a.threads++
	}
}

// Stops that the target makes because it is traced are counted, and the time until it was let go
// again: of a child process its parent's at fork, its own first one, exec, and its end, and its
// parent's at SIGCHLD; of a thread its maker's and its own first one.
func TestStops(t *testing.T) {
	const n = 20
	for _, c := range []struct {
		name, script         string
		least, most, threads int
	}{
		{"processes", "i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done", 5 * n, 5*n + 10, 0},
		{"none", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", 1, 1, 0}, // its own end
		{"threads of Go's", "exec " + os.Args[0] + " -test.run ^$", 2 + 2, 100, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			// It begins when its input ends. That it speaks shows that the stop of its own exec is over, which comes after
			// Start has returned.
			target := exec.Command("sh", "-c", "echo; read x; "+c.script)
			in, err := target.StdinPipe()
			var out io.ReadCloser
			if err == nil {
				out, err = target.StdoutPipe()
			}
			if err == nil {
				err = target.Start()
			}
			if err == nil {
				_, err = out.Read(make([]byte, 1))
			}
			if err != nil {
				t.Skipf("needs sh: %v", err)
			}
			threads := 0
			tr, err := NewTracer(asker{watcher{make(chan int, 1000)}, t, &threads}, true)
			if err != nil {
				t.Fatal(err)
			}
			tr.Do(func() { err = tr.Seize(target.Process.Pid) })
			if err != nil {
				t.Fatal(err)
			}
			in.Close()
			<-tr.Done()
			stops := tr.StopCounts()
			t.Logf("%d stops, %d of which woke the tracing thread up, served in %v; %d threads", stops.N, stops.Woke, stops.Served, threads)
			if n := int(stops.N); n < c.least || n > c.most || threads < c.threads {
				t.Errorf("%d stops, want %d to %d; %d threads, want %d", n, c.least, c.most, threads, c.threads)
			}
			if stops.Woke > stops.N || (stops.N > 1) != (stops.Served > 0) {
				t.Errorf("%d of %d stops woke the tracing thread up, which served them in %v", stops.Woke, stops.N, stops.Served)
			}
		})
	}
}

// Every calls its function on the tracing thread, without any event of the target's, and not sooner than it should.
func TestEvery(t *testing.T) {
	tr := traced(t, "sleep", "1000")
	defer tr.Detach()
	const each, calls = 20 * time.Millisecond, 10
	tids := make(chan int, calls)
	var tracing int
	var begun time.Time
	var err error
	tr.Do(func() {
		tracing, begun = unix.Gettid(), time.Now()
		err = tr.Every(each, func() {
			select {
			case tids <- unix.Gettid():
			default:
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(10 * time.Second)
	for i := range calls {
		select {
		case tid := <-tids:
			if tid != tracing {
				t.Fatalf("called on thread %d, not %d", tid, tracing)
			}
		case <-deadline:
			t.Fatalf("%d calls in 10 s, want one each %v", i, each)
		}
	}
	if elapsed := time.Since(begun); elapsed < calls*each*9/10 {
		t.Errorf("%d calls in %v, each %v after the other at least", calls, elapsed, each*9/10)
	}
}

// Once calls its function on the tracing thread, without any event of the target's, once and not too soon; and of two only the latter.
func TestOnce(t *testing.T) {
	tr := traced(t, "sleep", "1000")
	defer tr.Detach()
	const after, rounds = 5 * time.Millisecond, 20
	type call struct {
		tid     int
		elapsed time.Duration
	}
	var tracing, lost int
	tr.Do(func() { tracing = unix.Gettid() })
	for i := range rounds {
		woken := false
		calls := make(chan call, 2)
		var err error
		tr.Do(func() {
			begun := clock.Monotonic()
			err = errors.Join(
				tr.Once(time.Hour, func() { t.Error("called though another was to be") }),
				tr.Once(after, func() { calls <- call{unix.Gettid(), clock.Monotonic() - begun} }))
		})
		if err != nil {
			t.Fatal(err)
		}
		// The timer's signal is lost where it finds the thread awake: then the next event tells.
		for begun := time.Now(); len(calls) == 0; time.Sleep(time.Millisecond) {
			switch waited := time.Since(begun); {
			case waited > 10*time.Second:
				t.Fatalf("round %d: not called in 10 s", i)
			case waited > time.Second && !woken:
				woken = true
				lost++
				tr.wake.wake()
			}
		}
		if c := <-calls; c.tid != tracing || c.elapsed < after {
			t.Fatalf("round %d: called after %v on thread %d, want %v on %d", i, c.elapsed, c.tid, after, tracing)
		}
		tr.Do(func() {}) // it has returned
		if len(calls) > 0 {
			t.Fatalf("round %d: called twice", i)
		}
	}
	if lost > rounds/2 {
		t.Errorf("%d of %d wake-ups were lost", lost, rounds)
	}
}

func TestMonotonic(t *testing.T) {
	kernels := func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			t.Fatal(err)
		}
		return time.Duration(ts.Nano())
	}
	const off = 50 * time.Microsecond // where all attempts were disturbed
	for range 1000 {
		before, now := kernels(), clock.Monotonic()
		if after := kernels(); now < before-off || now > after+off {
			t.Fatalf("%v, the kernel's clock has %v to %v", now, before, after)
		}
	}
}

// What is asked of the tracing thread is done, however fast that is, and though the wake-up may come too early to be one.
func TestAsk(t *testing.T) {
	onOneCPU(t)
	tr := traced(t, "sh", "-c", "while :; do :; done")
	defer tr.Detach()
	var tracing int
	tr.Do(func() { tracing = unix.Gettid() })
	const n = 300
	deadline := time.Now().Add(time.Minute)
	for i := range n {
		done := make(chan int, 1)
		tr.Ask(func() { done <- unix.Gettid() })
		for tid := 0; tid == 0; {
			select {
			case tid = <-done:
				if tid != tracing {
					t.Fatalf("done on thread %d, not %d", tid, tracing)
				}
			case <-time.After(time.Millisecond):
				tr.AskAgain()
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d of %d done in a minute", i, n)
			}
		}
		if tr.AskAgain() {
			t.Fatal("asked again for what is done")
		}
	}
}
