// Package progress tells how dear a running process's progress is, the bytes that it
// reads and writes: what a profiler costs it, by windows with and without within one run.
package progress

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/stat"
)

// Cost of a byte of progress, in seconds: by the clock on the wall, and of CPU time.
type Cost struct{ Wall, CPU float64 }

// Window is what a process did in some time.
type Window struct {
	Lasted, Ran time.Duration // Ran by all its threads together
	Waited      time.Duration // for a CPU, by the threads that there are at its end
	Bytes       int64
}

// Of a process is what it does while during runs. It fails if that is nothing.
func Of(pid int, during func() error) (Window, error) {
	before, began := transferred(pid), time.Now()
	ran, waited := scheduled(pid)
	if err := during(); err != nil {
		return Window{}, err
	}
	after, lasted := transferred(pid), time.Since(began)
	r, w := scheduled(pid)
	if after <= before {
		return Window{}, fmt.Errorf("no progress in %v: process %d has ended, or its output tells none", lasted, pid)
	}
	return Window{Lasted: lasted, Ran: r - ran, Waited: w - waited, Bytes: after - before}, nil
}

// Settle is after how long a session is as it goes on, and what it has left when
// the window ends.
const Settle = 400 * time.Millisecond

// Turns are windows with a session and without, by turns.
type Turns struct {
	Wall, CPU     []float64 // the cost in each window with by the mean of those on either side
	With, Without Window    // all together
}

// ByTurns compares n windows with a session that attaches for Settle more on both sides, so that what
// starts and ends it is left out, to those without before and after it. seen is told of each.
func ByTurns(pid int, window time.Duration, n int, session func(i int) *exec.Cmd, seen func(i int, ratio Cost) error) (*Turns, error) {
	t := &Turns{}
	look := func(all *Window) (Cost, error) {
		w, err := Of(pid, func() error { time.Sleep(window); return nil })
		if err != nil {
			return Cost{}, err
		}
		all.add(w)
		return w.Cost(), nil
	}
	last, err := look(&t.Without)
	if err != nil {
		return nil, err
	}
	for i := range n {
		cmd := session(i)
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		for began := time.Now(); !traced(pid) && time.Since(began) < 10*time.Second; {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(Settle)
		with, err := look(&t.With)
		if err := errors.Join(err, cmd.Wait()); err != nil {
			return nil, err
		}
		next, err := look(&t.Without)
		if err != nil {
			return nil, err
		}
		ratio := with.Over(last, next)
		t.Wall, t.CPU = append(t.Wall, ratio.Wall), append(t.CPU, ratio.CPU)
		if err := seen(i, ratio); err != nil {
			return nil, err
		}
		last = next
	}
	return t, nil
}

func (w *Window) add(more Window) {
	w.Lasted += more.Lasted
	w.Ran += more.Ran
	w.Waited += more.Waited
	w.Bytes += more.Bytes
}

// Cost is that of each byte.
func (w Window) Cost() Cost {
	return Cost{w.Lasted.Seconds() / float64(w.Bytes), w.Ran.Seconds() / float64(w.Bytes)}
}

// Over is the cost in a window with the profiler by the mean of those on either side.
func (c Cost) Over(before, after Cost) Cost {
	return Cost{2 * c.Wall / (before.Wall + after.Wall), 2 * c.CPU / (before.CPU + after.CPU)}
}

// Spread says the median, the mean with its standard error, and the quartiles of v, which it sorts.
func Spread(v []float64) string {
	slices.Sort(v)
	q := func(f float64) float64 { return v[int(f*float64(len(v)-1))] }
	mean, dev := stat.MeanStdDev(v, nil)
	return fmt.Sprintf("x %.4f, mean %.4f +- %.4f, quartiles [%.4f, %.4f]", q(.5), mean, dev/math.Sqrt(float64(len(v))), q(.25), q(.75))
}

// traced says whether the process's first thread is.
func traced(pid int) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return !bytes.Contains(status, []byte("\nTracerPid:\t0\n"))
}

// scheduled is how long the process's threads have run, and how long those that there are now have
// waited for a CPU.
func scheduled(pid int) (ran, waited time.Duration) {
	var ts unix.Timespec
	// CPUCLOCK_SCHED of the process, see clock_getcpuclockid(3).
	if unix.ClockGettime(int32(^pid<<3|2), &ts) == nil {
		ran = time.Duration(ts.Nano())
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, task := range tasks {
		data, _ := os.ReadFile(task)
		var r, w time.Duration
		fmt.Sscan(string(data), &r, &w)
		waited += w
	}
	return ran, waited
}

// transferred are the bytes that the process has read and written, 0 if it is gone.
func transferred(pid int) (n int64) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if key, value, _ := strings.Cut(line, ": "); key == "rchar" || key == "wchar" {
			v, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			n += v
		}
	}
	return n
}
