package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/bench/progress"
	"github.com/rdx-profiler/rdx/pprofout"
)

// inWindows attaches to one process that works on the file again and again, once for each
// name, and prints how much dearer its progress is in a window of each session than in those
// without on either side. A recorded command takes cpu seconds.
func inWindows(p program, names []string, file string, cpu, rate float64) error {
	if !*long || !p.repeats {
		return fmt.Errorf("%s: -windows needs one process that lives long: -long, and a program that works on several files alike", p.name)
	}
	const atOnce, slack = 2, 1.5 // no program has more threads at work; a machine may be faster at times
	total := windows.Seconds() * float64(2*len(names)+1)
	// By its short name, as there may be tens of thousands, and a command line has an end.
	work := p.times(filepath.Base(file), int(math.Ceil(atOnce*slack*total/cpu)))
	cmd := exec.Command(work[0], work[1:]...)
	cmd.Dir = filepath.Dir(file)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	pid := cmd.Process.Pid
	t, err := progress.ByTurns(pid, *windows, len(names), func(i int) *exec.Cmd {
		session := exec.Command(*rdx, append([]string{"attach", "-q", "-p", fmt.Sprint(pid), "-d", (*windows + 2*progress.Settle).String(),
			"--stack", *stacks, "--overhead", *overhead, "--access-rate", fmt.Sprint(rate), "-o", names[i]}, p.flags...)...)
		session.Stderr = os.Stderr
		return session
	}, func(i int, ratio progress.Cost) error {
		one, err := pprofout.ReadFile(names[i])
		if err != nil {
			return err
		}
		fmt.Printf("%-6s x %.3f by the wall, x %.3f of CPU time; %s\n", p.name, ratio.Wall, ratio.CPU, strings.Join(accounts(one), "; "))
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Printf("%-6s by the wall %s; of CPU time %s; %d windows of %v with --overhead %s, [%.3f, %.3f] by the wall\n", p.name,
		progress.Spread(t.Wall), progress.Spread(t.CPU), len(names), *windows, *overhead, slices.Min(t.Wall), slices.Max(t.Wall))
	return nil
}
