package main

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

// within measures the cost inside of one run: windows with rdx attached take
// turns with windows without, and the target's progress, the bytes it has read
// and written, is compared with that of the windows on either side: by the wall, and
// by CPU time, in which a thread that is held has no part, but caches that are cold
// after it have. What a machine's neighbours do from minute to minute cancels out.
func within(rdx string, p program, windows int, window time.Duration, extra []string, dir string) error {
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	pid := strconv.Itoa(cmd.Process.Pid)
	time.Sleep(start)

	var running, waiting [2]time.Duration // without rdx, with it
	look := func(with int) (cost, error) {
		before, began := progress(pid), time.Now()
		ran, waited := scheduled(pid)
		time.Sleep(window)
		after, lasted := progress(pid), time.Since(began)
		r, w := scheduled(pid)
		running[with] += r - ran
		waiting[with] += w - waited
		if after == before {
			return cost{}, fmt.Errorf("%s: no progress in %v: it has ended, or its output tells none", p.name, lasted)
		}
		done := float64(after - before)
		return cost{lasted.Seconds() / done, (r - ran).Seconds() / done}, nil
	}
	attached := func() (c cost, err error) {
		args := append([]string{"attach", "-q", "-p", pid, "-d", (window + 2*settle).String(), "-o", filepath.Join(dir, "within.pb.gz")}, slices.Concat(p.flags, extra)...)
		session := exec.Command(rdx, args...)
		session.Stderr = os.Stderr
		if err := session.Start(); err != nil {
			return c, err
		}
		for began := time.Now(); !traced(pid) && time.Since(began) < 10*time.Second; {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(settle)
		c, err = look(1)
		return c, errors.Join(err, session.Wait())
	}
	var wall, cpu []float64
	var pairs int64
	var said string
	last, err := look(0)
	if err != nil {
		return err
	}
	for range windows {
		with, err := attached()
		if err != nil {
			return err
		}
		var n int64
		if _, n, _, said, err = read(filepath.Join(dir, "within.pb.gz")); err != nil {
			return err
		}
		pairs += n
		next, err := look(0)
		if err != nil {
			return err
		}
		wall = append(wall, 2*with.wall/(last.wall+next.wall))
		cpu = append(cpu, 2*with.cpu/(last.cpu+next.cpu))
		last = next
	}
	seconds := float64(windows) * window.Seconds()
	fmt.Printf("%-8s time %s, CPU time %s, of %d windows of %v; %.0f pairs in 30 s\n", p.name, spread(wall), spread(cpu), windows, window, float64(pairs)/(float64(windows)*(window+2*settle).Seconds())*30)
	fmt.Printf("         of the time it ran %.1f %% and waited for a CPU %.1f %% with rdx, %.1f and %.1f %% without; the last by its own account: %s\n",
		100*running[1].Seconds()/seconds, 100*waiting[1].Seconds()/seconds, 100*running[0].Seconds()/(seconds+window.Seconds()), 100*waiting[0].Seconds()/(seconds+window.Seconds()), said)
	return nil
}

// start is how long a program is left alone at first, until its memory is in use.
const start = 6 * time.Second

// settle is after how long a session is as it goes on, and what it has left when
// the window ends.
const settle = 400 * time.Millisecond

// cost of a byte of progress, in seconds.
type cost struct{ wall, cpu float64 }

// spread says the median, the mean with its standard error, and the quartiles.
func spread(v []float64) string {
	slices.Sort(v)
	q := func(f float64) float64 { return v[int(f*float64(len(v)-1))] }
	mean, dev := stat.MeanStdDev(v, nil)
	return fmt.Sprintf("x %.4f, mean %.4f +- %.4f, quartiles [%.4f, %.4f]", q(.5), mean, dev/math.Sqrt(float64(len(v))), q(.25), q(.75))
}

// traced says whether the process's first thread is.
func traced(pid string) bool {
	status, _ := os.ReadFile("/proc/" + pid + "/status")
	return !bytes.Contains(status, []byte("\nTracerPid:\t0\n"))
}

// scheduled is how long the process's threads have run, and how long those that there are now have
// waited for a CPU.
func scheduled(pid string) (ran, waited time.Duration) {
	id, _ := strconv.Atoi(pid)
	var ts unix.Timespec
	// CPUCLOCK_SCHED of the process, see clock_getcpuclockid(3).
	if unix.ClockGettime(int32(^id<<3|2), &ts) == nil {
		ran = time.Duration(ts.Nano())
	}
	tasks, _ := filepath.Glob("/proc/" + pid + "/task/*/schedstat")
	for _, task := range tasks {
		data, _ := os.ReadFile(task)
		var r, w time.Duration
		fmt.Sscan(string(data), &r, &w)
		waited += w
	}
	return ran, waited
}

// progress of a process: bytes read and written, 0 if it is gone.
func progress(pid string) (n int64) {
	data, err := os.ReadFile("/proc/" + pid + "/io")
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
