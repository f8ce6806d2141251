package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rdx-profiler/rdx/bench/progress"
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
	seen := func(with int, w progress.Window, err error) (progress.Cost, error) {
		if err != nil {
			return progress.Cost{}, fmt.Errorf("%s: %w", p.name, err)
		}
		running[with] += w.Ran
		waiting[with] += w.Waited
		return w.Cost(), nil
	}
	look := func() (progress.Cost, error) {
		w, err := progress.Of(cmd.Process.Pid, func() error { time.Sleep(window); return nil })
		return seen(0, w, err)
	}
	attached := func() (progress.Cost, error) {
		args := append([]string{"attach", "-q", "-p", pid, "-d", (window + 2*progress.Settle).String(), "-o", filepath.Join(dir, "within.pb.gz")}, slices.Concat(p.flags, extra)...)
		session := exec.Command(rdx, args...)
		session.Stderr = os.Stderr
		w, err := progress.With(session, cmd.Process.Pid, window)
		return seen(1, w, err)
	}
	var wall, cpu []float64
	var pairs int64
	var said string
	last, err := look()
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
		next, err := look()
		if err != nil {
			return err
		}
		ratio := with.Over(last, next)
		wall, cpu = append(wall, ratio.Wall), append(cpu, ratio.CPU)
		last = next
	}
	seconds := float64(windows) * window.Seconds()
	fmt.Printf("%-8s time %s, CPU time %s, of %d windows of %v; %.0f pairs in 30 s\n", p.name, progress.Spread(wall), progress.Spread(cpu), windows, window, float64(pairs)/(float64(windows)*(window+2*progress.Settle).Seconds())*30)
	fmt.Printf("         of the time it ran %.1f %% and waited for a CPU %.1f %% with rdx, %.1f and %.1f %% without; the last by its own account: %s\n",
		100*running[1].Seconds()/seconds, 100*waiting[1].Seconds()/seconds, 100*running[0].Seconds()/(seconds+window.Seconds()), 100*waiting[0].Seconds()/(seconds+window.Seconds()), said)
	return nil
}

// start is how long a program is left alone at first, until its memory is in use.
const start = 6 * time.Second
