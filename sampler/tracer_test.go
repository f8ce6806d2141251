// Needs: root or ptrace of own children.
package sampler

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// On a single CPU the woken tracing thread runs at once, before the caller of
// Do gets any further: the call must be in place by then.
func TestDoOnOneCPU(t *testing.T) {
	onOneCPU(t)
	// Something else wants the CPU, too.
	target := exec.Command("sh", "-c", "while :; do :; done")
	if err := target.Start(); err != nil {
		t.Skipf("needs sh: %v", err)
	}
	defer target.Wait()
	defer target.Process.Kill()
	tr, err := NewTracer(watcher{make(chan int, 10)}, false)
	if err != nil {
		t.Fatal(err)
	}
	tr.Do(func() { err = tr.Seize(target.Process.Pid) })
	if err != nil {
		t.Fatal(err)
	}
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
