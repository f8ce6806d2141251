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

	output := filepath.Join(dir, "within.pb.gz")
	var pairs int64
	var said string
	t, err := progress.ByTurns(cmd.Process.Pid, window, windows, func(int) *exec.Cmd {
		args := append([]string{"attach", "-q", "-p", pid, "-d", (window + 2*progress.Settle).String(), "-o", output}, slices.Concat(p.flags, extra)...)
		session := exec.Command(rdx, args...)
		session.Stderr = os.Stderr
		return session
	}, func(int, progress.Cost) (err error) {
		var n int64
		_, n, _, said, err = read(output)
		pairs += n
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	share := func(part, all time.Duration) float64 { return 100 * part.Seconds() / all.Seconds() }
	fmt.Printf("%-8s time %s, CPU time %s, of %d windows of %v; %.0f pairs in 30 s\n", p.name, progress.Spread(t.Wall), progress.Spread(t.CPU), windows, window, float64(pairs)/(float64(windows)*(window+2*progress.Settle).Seconds())*30)
	fmt.Printf("         of the time it ran %.1f %% and waited for a CPU %.1f %% with rdx, %.1f and %.1f %% without; the last by its own account: %s\n",
		share(t.With.Ran, t.With.Lasted), share(t.With.Waited, t.With.Lasted), share(t.Without.Ran, t.Without.Lasted), share(t.Without.Waited, t.Without.Lasted), said)
	return nil
}

// start is how long a program is left alone at first, until its memory is in use.
const start = 6 * time.Second
