package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// program works on files that are named behind its words.
type program struct {
	name, words string
	// repeats: of several files, each is worked on as the one before.
	repeats bool
	flags   []string // of rdx's, for it
}

func programs() []program {
	out := []program{
		{name: "sort", words: "sort --parallel=2 -S 64M"},
		{name: "zstd", words: "zstd -T2 -B512KB -q -c", repeats: true},
		{name: "pigz", words: "pigz -p 2 -c", repeats: true},
	}
	if *long {
		// Its workers block all signals, and are not sampled soon after a wait.
		out = append(out, program{name: "xz", words: "xz -0 -T2 --block-size=2MiB -k -c", repeats: true, flags: []string{"--interrupt"}})
	}
	return out
}

// command is what is recorded.
func (p program) command(file string) string {
	if *long {
		return p.words + strings.Repeat(" "+file, *copies)
	}
	return p.words + " " + file
}

// times is the work of the recorded command, n times.
func (p program) times(file string, n int) []string {
	if *long && p.repeats {
		return append(strings.Fields(p.words), slices.Repeat([]string{file}, n**copies)...)
	}
	return []string{"sh", "-c", fmt.Sprintf("for i in $(seq %d); do %s > /dev/null; done", n, p.command(file))}
}

// sampled is the profile of all runs, which are made unless dir has them, with the
// access rate that the recorded command has.
func sampled(dir, file string, p program, accesses float64) (*model.Profile, error) {
	var names []string
	for i := range *runs {
		name := p.name
		if i > 0 {
			name = fmt.Sprintf("%s.%d", name, i+1)
		}
		names = append(names, filepath.Join(dir, name+".pb.gz"))
	}
	if !exists(names[len(names)-1]) {
		cpu, err := p.native(file)
		if err != nil {
			return nil, err
		}
		rate := accesses / cpu / 1e9
		if *windows > 0 {
			err = inWindows(p, names, file, cpu, rate)
		} else {
			err = sample(p, names, p.times(file, int(math.Ceil(*seconds/float64(*runs)/cpu))), rate)
		}
		if err != nil {
			return nil, err
		}
	}
	var all []*model.Profile
	for _, name := range names {
		one, err := pprofout.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return join(all), nil
}

// sample runs the work under rdx once for each name, and if these are several, bare before and after
// each, and prints how much longer it took with rdx than these on average.
func sample(p program, names, work []string, rate float64) error {
	var bare, cpu []float64 // seconds
	alone := func() error {
		if len(names) == 1 {
			return nil
		}
		wall, ran, err := timed(work)
		bare, cpu = append(bare, wall), append(cpu, ran)
		return err
	}
	if err := alone(); err != nil {
		return err
	}
	var ratios []float64
	for i, name := range names {
		args := append([]string{"run", "-q", "--follow", "--stack", *stacks, "--overhead", *overhead, "--access-rate", fmt.Sprint(rate), "-o", name}, p.flags...)
		if _, _, err := timed(slices.Concat([]string{*rdx}, args, []string{"--"}, work)); err != nil {
			return err
		}
		if err := alone(); err != nil {
			return err
		}
		if len(names) == 1 {
			return nil
		}
		one, err := pprofout.ReadFile(name)
		if err != nil {
			return err
		}
		x := 2 * one.Duration.Seconds() / (bare[i] + bare[i+1])
		ratios = append(ratios, x)
		fmt.Printf("%-6s x %.3f by the wall: %.2f s, %.2f and %.2f s bare; %s\n", p.name, x, one.Duration.Seconds(), bare[i], bare[i+1], strings.Join(accounts(one), "; "))
	}
	slices.Sort(ratios)
	slices.Sort(bare)
	slices.Sort(cpu)
	fmt.Printf("%-6s x %.3f by the wall, the median of %d runs from x %.3f to %.3f, between bare ones of %.2f to %.2f s, with %.2f threads at once; --overhead %s\n", p.name,
		middle(ratios), len(ratios), ratios[0], ratios[len(ratios)-1], bare[0], bare[len(bare)-1], middle(cpu)/middle(bare), *overhead)
	return nil
}

// accounts are the profile's words about what it cost.
func accounts(p *model.Profile) (out []string) {
	for _, c := range p.Comments {
		for _, about := range []string{"overhead by the profiler's own account", "copying slowed", "the profiler's own CPU time", "thread held per sample", "stops at "} {
			if strings.HasPrefix(c, about) {
				out = append(out, c)
			}
		}
	}
	return out
}

// middle of sorted values: the mean of two if there is no one.
func middle(v []float64) float64 { return (v[(len(v)-1)/2] + v[len(v)/2]) / 2 }

// join makes one profile of several runs of a program, whose threads are not each other's.
func join(all []*model.Profile) *model.Profile {
	const threads = 1 << 22 // Linux has no more at a time
	out := *all[0]
	out.Records, out.Clock.Touches = nil, 0
	for i, p := range all {
		for _, r := range p.Records {
			r.TID += i * threads
			if w := r.Words(); w.EndTID != 0 {
				w.EndTID += i * threads
				r.SetWords(w)
			}
			out.Records = append(out.Records, r)
		}
		out.Clock.Touches += p.Clock.Touches / float64(len(all))
	}
	out.SetDesignEffect()
	return &out
}

// native is the CPU time in seconds of what is recorded, the kernel's on its behalf
// included, as rdx's clock counts it: the mean of some runs, or of what one process that
// lives long takes for it. Start and end, a third of zstd's time on one file, are no part of that.
func (p program) native(file string) (float64, error) {
	const runs, more = 10, 100
	sum := 0.0
	for range runs {
		_, cpu, err := timed(strings.Fields(p.command(file)))
		if err != nil {
			return 0, err
		}
		sum += cpu
	}
	if !*long || !p.repeats {
		return sum / runs, nil
	}
	_, cpu, err := timed(p.times(file, 1+more))
	return (cpu - sum/runs) / more, err
}

// timed runs a command, whose output is lost, and says how long it took in seconds: by the
// clock on the wall, and of CPU time.
func timed(command []string) (wall, cpu float64, err error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", command[0], err)
	}
	return time.Since(start).Seconds(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
}
