// Command sharing compares what rdx finds in private and shared stacks of real
// programs with several threads to the exact answer, and prints where what is
// missing comes from. It needs root and the instrumentation engine (make engine).
//
// The engine runs one thread at a time: what threads do to each other's data is
// interleaved in another way than on the processor, in turns of thousands of
// accesses. That changes shared distances most.
//
// With -made it compares the shares of invalidated, falsely shared and foreign
// accesses to what programs were made for.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

var (
	rdx      = flag.String("rdx", "./rdx", "binary")
	seconds  = flag.Float64("seconds", 20, "of CPU time to sample each program, which is run again and again")
	overhead = flag.String("overhead", "5", "percent")
	only     = flag.String("only", "", "part of a program's name")
	bins     = flag.Bool("bins", false, "print the octaves of times and distances, too")
	byMade   = flag.Bool("made", false, "instead, programs whose sharing is known by construction, each run for -seconds")
)

// pinned are choices of the C library that it makes otherwise on the engine's
// processor, as with bench/accuracy.
const pinned = "GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000:" +
	"glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD"

func main() {
	flag.Parse()
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
	if *byMade {
		return compareMade(*seconds)
	}
	file, err := input()
	if err != nil {
		return err
	}
	defer os.Remove(file)
	printHead()
	for _, p := range []struct{ name, command string }{
		// Not xz -T2: its workers block all signals, and are sampled by --interrupt only.
		{"sort", "sort --parallel=2 -S 64M " + file},
		{"zstd", "zstd -T2 -B512KB -q -c " + file},
	} {
		if !strings.Contains(p.name, *only) {
			continue
		}
		if err := compare(p.name, p.command); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// lines of the input: sort works alone on fewer than 131,072.
const lines = 200_000

// input is four megabytes of words in an order that nothing knows.
func input() (string, error) {
	f, err := os.CreateTemp("", "rdx-sharing-")
	if err != nil {
		return "", err
	}
	x := uint64(1)
	for range lines {
		x = x*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(f, "word%d of a line\n", x>>44)
	}
	return f.Name(), f.Close()
}

func compare(name, command string) error {
	cpu, err := native(command)
	if err != nil {
		return err
	}
	exact := map[model.StackKind]*truth{}
	for _, stack := range []model.StackKind{model.StackPrivate, model.StackShared} {
		if exact[stack], err = exactly(stack, command); err != nil {
			return err
		}
	}
	if n := exact[model.StackShared].threads; n < 2 {
		return fmt.Errorf("%q makes %d thread: it shares nothing", command, n)
	}
	out, err := os.CreateTemp("", "rdx-sharing-*.pb.gz")
	if err != nil {
		return err
	}
	out.Close()
	defer os.Remove(out.Name())
	rate := exact[model.StackShared].accesses / cpu / 1e9
	loop := fmt.Sprintf("for i in $(seq %d); do %s > /dev/null; done", int(math.Ceil(*seconds/cpu)), command)
	if _, err := run("run", "-q", "--follow", "--stack", "both", "--overhead", *overhead, "--access-rate", fmt.Sprint(rate), "-o", out.Name(), "--", "sh", "-c", loop); err != nil {
		return err
	}
	p, err := pprofout.ReadFile(out.Name())
	if err != nil {
		return err
	}
	for _, stack := range []model.StackKind{model.StackPrivate, model.StackShared} {
		if err := score(name, p.OnStack(stack), stack, exact[stack]); err != nil {
			return err
		}
	}
	fmt.Printf("%-6s %.3g accesses a ns of CPU time, by the exact count and undisturbed runs; an access touches %.2f words, by what was read ahead %.2f\n",
		"", rate, exact[model.StackShared].touches/exact[model.StackShared].accesses, p.Clock.Touches)
	return nil
}

// native is the CPU time of the program in seconds, the kernel's on its behalf
// included, as rdx's clock counts it: the mean of some runs.
func native(command string) (float64, error) {
	const runs = 10
	words, sum := strings.Fields(command), 0.0
	for range runs {
		cmd := exec.Command(words[0], words[1:]...)
		if err := cmd.Run(); err != nil {
			return 0, fmt.Errorf("%s: %w", command, err)
		}
		sum += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	return sum / runs, nil
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

// truth is the exact answer, in touches of words.
type truth struct {
	accesses, touches float64
	threads           int
	times, distances  *model.Hist
}

// exactBins are fine enough for the conversion of times.
const exactBins = 10

func exactly(stack model.StackKind, command string) (*truth, error) {
	trace, err := os.CreateTemp("", "rdx-sharing-*.rdt")
	if err != nil {
		return nil, err
	}
	trace.Close()
	defer os.Remove(trace.Name())
	if _, err := run(append([]string{"trace", "record", "-q", "-o", trace.Name(), "--"}, strings.Fields(command)...)...); err != nil {
		return nil, err
	}
	info, err := run("trace", "info", trace.Name())
	if err != nil {
		return nil, err
	}
	out, err := run("exact", "--stack", stack.String(), "--block", "word", "--format", "json", "--bins", fmt.Sprint(exactBins), trace.Name())
	if err != nil {
		return nil, err
	}
	var r struct {
		Accesses, Touches float64
		Times             exactHist `json:"reuse_time"`
		Distances         exactHist `json:"stack_distance"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, err
	}
	return &truth{r.Accesses, r.Touches, strings.Count(string(info), "\nthread "), r.Times.hist(), r.Distances.hist()}, nil
}

type exactHist struct {
	Bins []struct {
		From    uint64
		Touches float64
	}
	Cold, Invalidated float64
}

func (x exactHist) hist() *model.Hist {
	h := model.NewHist(model.LogBins(exactBins))
	for _, b := range x.Bins {
		h.Add(b.From, b.Touches)
	}
	h.Cold, h.Invalidated = x.Cold, x.Invalidated
	return h
}
