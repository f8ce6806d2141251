// Command sharing compares what rdx finds in private and shared stacks of real
// programs with several threads to the exact answer, and prints where what is
// missing comes from. It needs root and the instrumentation engine (make engine).
//
// Valgrind runs one thread at a time, in turns of a million accesses, and not
// interleaved as on processors: that changes shared distances most. -order says
// which order the exact answer is for. That of a parallel run is kept of several runs, which
// are compared to each other: nothing can agree with one of them better than they do.
//
// With -made it compares the shares of invalidated, falsely shared and foreign
// accesses to what programs were made for, with -kinds what is taken of lines.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

var (
	rdx        = flag.String("rdx", "./rdx", "binary")
	seconds    = flag.Float64("seconds", 20, "of CPU time to sample each program, which is run again and again")
	overhead   = flag.String("overhead", "5", "percent")
	only       = flag.String("only", "", "part of a program's name")
	bins       = flag.Bool("bins", false, "print the octaves of times and distances, too")
	engine     = flag.String("engine", "valgrind", "of exact answers: valgrind, whose threads run by turns, or qemu")
	order      = flag.String("order", "even", "of the recording's threads: even, as if they ran at once, turns, as the engine ran them, kept: that of a parallel run under qemu, or mixed: the same, but within 4096 accesses by chance")
	recordings = flag.Int("recordings", 3, "with -order kept or mixed: each has an order of its own, and they are compared to each other, too")
	long       = flag.Bool("long", false, "instead of a process for each time a program works on the input, one that does so again and again, as zstd, pigz and xz can; sort gets an input as long as what is recorded")
	copies     = flag.Int("copies", 3, "with -long: of the input, in what is recorded")
	runs       = flag.Int("runs", 1, "sample each program in so many runs, each between two bare ones, whose time by the clock on the wall is compared; from two on bare runs are made")
	windows    = flag.Duration("windows", 0, "with -long: attach to one process -runs times for so long, by turns with as long without, and compare how dear its progress is, instead of running it as a whole with rdx and without; -seconds says nothing then")
	stacks     = flag.String("stack", "both", "private, shared or both")
	keep       = flag.String("keep", "", "folder for recordings and profiles, which are used again if they are there")
	byKinds    = flag.Int("kinds", 0, "instead, so many sessions of -seconds of each of the programs that share lines or don't, in testdata/kinds.c")
	byMade     = flag.Bool("made", false, "instead, programs whose sharing is known by construction, each run for -seconds")
)

// pinned are choices of the C library that it makes otherwise on the engine's
// processor, as with bench/accuracy.
const pinned = "GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000:" +
	"glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD"

// kept says whether recordings are to have the order of a parallel run.
func kept() bool { return *order == "kept" || *order == "mixed" }

func main() {
	flag.Parse()
	if kept() {
		*engine = "qemu"
	} else {
		*recordings = 1
	}
	os.Setenv("LC_ALL", "C")
	name, value, _ := strings.Cut(pinned, "=")
	os.Setenv(name, value)
	err := compareAll()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sharing:", err)
		os.Exit(1)
	}
}

func compareAll() error {
	if *byKinds > 0 {
		return compareKinds(*seconds, *byKinds)
	}
	if *byMade {
		return compareMade(*seconds)
	}
	dir := *keep
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "rdx-sharing-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file := filepath.Join(dir, "input")
	if err := input(file); err != nil {
		return err
	}
	printHead()
	for _, p := range programs() {
		if !strings.Contains(p.name, *only) {
			continue
		}
		if err := compare(dir, file, p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// lines of the input: sort works alone on fewer than 131,072.
const lines = 200_000

// input is four megabytes of words in an order that nothing knows.
func input(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	x := uint64(1)
	for range lines {
		x = x*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(w, "word%d of a line\n", x>>44)
	}
	return errors.Join(w.Flush(), f.Close())
}

// compare records the program and samples it, unless dir has that already, and
// prints its rows.
func compare(dir, file string, p program) error {
	command := p.command(file)
	exact := map[model.StackKind][]*truth{}
	for i := range *recordings {
		recording := p.name
		if kept() {
			recording = fmt.Sprintf("%s.kept%d", p.name, i+1)
		}
		stacks := []model.StackKind{model.StackShared, model.StackPrivate}
		if i > 0 {
			stacks = stacks[:1] // private ones hardly depend on the order
		}
		x, err := truths(filepath.Join(dir, recording), command, stacks)
		if err != nil {
			return err
		}
		for stack, x := range x {
			exact[stack] = append(exact[stack], x)
		}
	}
	first := exact[model.StackShared][0]
	if first.Threads < 2 {
		return fmt.Errorf("%q makes %d thread: it shares nothing", command, first.Threads)
	}
	live, err := sampled(dir, file, p, first.Accesses)
	if err != nil {
		return err
	}
	for _, stack := range []model.StackKind{model.StackPrivate, model.StackShared} {
		if *stacks != "both" && *stacks != stack.String() {
			continue
		}
		for _, x := range exact[stack] {
			if err := score(p.name, live.OnStack(stack), stack, x); err != nil {
				return err
			}
		}
		printAgreement(p.name, stack, exact[stack])
	}
	fmt.Printf("%-6s %.3g accesses a ns of CPU time, by the exact count and undisturbed runs; an access touches %.2f words, by what was read ahead %.2f\n",
		"", live.Clock.Rate, first.Touches/first.Accesses, live.Clock.Touches)
	return nil
}

// truths are the exact answers to a recording of the command, which is made unless it is there.
func truths(recording, command string, stacks []model.StackKind) (map[model.StackKind]*truth, error) {
	if !exists(recording + ".rdt") {
		if err := record(recording+".rdt", command); err != nil {
			return nil, err
		}
	}
	exact := map[model.StackKind]*truth{}
	for _, stack := range stacks {
		known := recording + "." + stack.String() + "." + *order + ".json"
		x, err := load(known)
		if errors.Is(err, os.ErrNotExist) {
			if x, err = exactly(stack, recording+".rdt"); err == nil {
				err = x.save(known)
			}
		}
		if err != nil {
			return nil, err
		}
		exact[stack] = x
	}
	return exact, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// run runs rdx and returns what is printed.
func run(args ...string) ([]byte, error) {
	cmd := exec.Command(*rdx, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("rdx %s: %w", args[0], err)
	}
	return out, nil
}
