package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/collector"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/proc"
)

const (
	// busyFor is how long other processes are watched to see which of them work.
	busyFor = 300 * time.Millisecond
	// busyLooks is how often, as long as none does.
	busyLooks = 4
	// leastRun is the CPU time below which a program that has ended is taken to have had too little of it.
	leastRun = 100 * time.Millisecond
	// userHZ is the unit of times in /proc/PID/stat, on all of Linux's architectures here.
	userHZ = 100
)

// whyNoSample measures why there is no observation, when there is none. root is /proc and /sys/fs/cgroup's parent.
func whyNoSample(p *model.Profile, cfg *collector.Config, root fs.FS) string {
	ran := time.Duration(p.CountOf(model.CPUTarget))
	lost := p.Lost() - p.CountOf(model.LostBecause.Of(model.NotAttached)) // a process that is gone had no sample
	if len(p.Records) > 0 || lost > 0 || cfg.PID == 0 || p.Duration <= 0 {
		return ""
	}
	pids := append([]int{cfg.PID}, cfg.Others...)
	if state := stateOf(root, cfg.PID); len(pids) == 1 && (state == "" || state == "Z") && ran < leastRun {
		return fmt.Sprintf("the program ended after %v of CPU time, too little for a sample: give it more to do", ran.Round(10*time.Microsecond))
	}
	if ran > p.Duration/20 {
		return whyNoHold(p, ran, cfg, root)
	}
	used := fmt.Sprintf("the target used %v of CPU time in %v", ran.Round(10*time.Microsecond), p.Duration.Round(time.Millisecond))
	for _, pid := range pids {
		state := stateOf(root, pid)
		switch {
		case state == "T":
			return fmt.Sprintf("process %d is stopped, by job control or SIGSTOP: kill -CONT %d lets it go on", pid, pid)
		case frozen(root, pid):
			return fmt.Sprintf("the control group of process %d is frozen, as by docker pause: thaw it first", pid)
		}
	}
	if busy := busyChildren(root, pids); len(busy) > 0 {
		var named []string
		for _, b := range busy[:min(len(busy), 3)] {
			named = append(named, fmt.Sprintf("%d (%s) %.0f%%", b.pid, b.name, 100*b.share))
		}
		return fmt.Sprintf("%s, but processes that it has started are busy: %s of a CPU; profile them too: rdx attach --tree %d", used, strings.Join(named, ", "), cfg.PID)
	}
	state := map[string]string{"S": ", it waits for something", "D": ", it waits for a disk or the like", "R": ", though it is ready to run: other programs have the CPUs", "I": ", it is idle"}[stateOf(root, cfg.PID)]
	return used + state + ": profile it while it works"
}

// whyNoHold is for a target that has worked.
func whyNoHold(p *model.Profile, ran time.Duration, cfg *collector.Config, root fs.FS) string {
	worked := fmt.Sprintf("the target used %v of CPU time", ran.Round(time.Millisecond))
	for _, why := range p.Said(model.BudgetWaits) {
		return fmt.Sprintf("%s, and --overhead has not paid for a hold%s: profile longer, or with a larger --overhead", worked, why)
	}
	if f := statOf(root, cfg.PID); len(f) > 12 && p.CountOf(model.Samples) == 0 {
		user, _ := strconv.Atoi(f[11])
		system, _ := strconv.Atoi(f[12])
		if system > 9*user {
			return worked + ", nearly all of it in the kernel, and rdx samples user code: profile longer, or look with perf at what it asks the kernel for"
		}
	}
	if n := p.CountOf(model.Samples); n > 0 {
		return fmt.Sprintf("%s, in which %d ticks fell, of which none was drawn: profile longer, or with a larger --overhead", worked, n)
	}
	return worked + ", in which no tick fell: profile longer"
}

// statOf is what stands behind the name in /proc/PID/stat, the state first.
func statOf(root fs.FS, pid int) (fields []string) {
	b, err := fs.ReadFile(root, fmt.Sprintf("proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	for _, f := range proc.StatFields(b) {
		fields = append(fields, string(f))
	}
	return fields
}

func stateOf(root fs.FS, pid int) string {
	if f := statOf(root, pid); len(f) > 0 {
		return f[0]
	}
	return ""
}

// frozen says whether a process's control group, or one that it is in, is. Beside groups of version 1, which have a
// controller for it, those of version 2 are in a folder of their own.
func frozen(root fs.FS, pid int) bool {
	says := func(group, file, word string) bool {
		b, _ := fs.ReadFile(root, filepath.Join("sys/fs/cgroup", group, file))
		return strings.Contains(string(b), word)
	}
	b, _ := fs.ReadFile(root, fmt.Sprintf("proc/%d/cgroup", pid))
	for line := range strings.Lines(string(b)) { // number:controllers:/group
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) < 3:
		case f[1] == "" && (says(f[2], "cgroup.events", "frozen 1") || says("unified"+f[2], "cgroup.events", "frozen 1")),
			f[1] == "freezer" && says("freezer"+f[2], "freezer.state", "FR"): // FREEZING or FROZEN
			return true
		}
	}
	return false
}

type busyProcess struct {
	pid   int
	name  string
	share float64 // of a CPU
}

// busyChildren are the descendants of processes that work, the busiest first.
func busyChildren(root fs.FS, pids []int) []busyProcess {
	proc, err := fs.Sub(root, "proc")
	if err != nil {
		return nil
	}
	table, err := readProcesses(proc)
	if err != nil {
		return nil
	}
	ticks := func(pid int) int {
		f := statOf(root, pid)
		if len(f) < 13 {
			return 0
		}
		user, _ := strconv.Atoi(f[11])
		system, _ := strconv.Atoi(f[12])
		return user + system
	}
	before := map[int]int{}
	for _, pid := range table.trees(pids) {
		if !slices.Contains(pids, pid) {
			before[pid] = ticks(pid)
		}
	}
	if len(before) == 0 {
		return nil
	}
	var busy []busyProcess
	start := time.Now()
	for range busyLooks { // on a busy machine they have a turn now and then
		time.Sleep(busyFor)
		seconds := time.Since(start).Seconds()
		for pid, was := range before {
			if share := float64(ticks(pid)-was) / userHZ / seconds; share > .05 {
				busy = append(busy, busyProcess{pid, table[pid].name, share})
			}
		}
		if len(busy) > 0 {
			break
		}
	}
	slices.SortFunc(busy, func(a, b busyProcess) int { return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.pid, b.pid)) })
	return busy
}

// explain adds to a profile without observations why there are none. started is the process that run has started, or 0.
func explain(p *model.Profile, cfg collector.Config, started int) {
	if started != 0 {
		cfg.PID = started
	}
	if why := whyNoSample(p, &cfg, os.DirFS("/")); why != "" {
		p.Comments = append(p.Comments, model.NoSample+why)
	}
}
