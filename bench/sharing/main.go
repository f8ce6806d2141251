// Command sharing compares what rdx finds in private and shared stacks of real
// programs with several threads to the exact answer, and prints a table. It
// needs root and the instrumentation engine (make engine).
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
	"strconv"
	"strings"
	"syscall"
)

var (
	rdx      = flag.String("rdx", "./rdx", "binary")
	seconds  = flag.Float64("seconds", 20, "of CPU time to sample each program, which is run again and again")
	overhead = flag.String("overhead", "5", "percent")
	only     = flag.String("only", "", "part of a program's name")
	byMade   = flag.Bool("made", false, "instead, programs whose sharing is known by construction, each run for -seconds")
)

// sizes of caches, in bytes: the edges of the bins that are compared.
func sizes() []string {
	var out []string
	for s := 16; s <= 64<<20; s *= 2 {
		out = append(out, strconv.Itoa(s))
	}
	return out
}

func main() {
	flag.Parse()
	os.Setenv("LC_ALL", "C")
	if *byMade {
		if err := compareMade(*seconds); err != nil {
			fmt.Fprintln(os.Stderr, "sharing:", err)
			os.Exit(1)
		}
		return
	}
	file, err := input()
	if err == nil {
		defer os.Remove(file)
		fmt.Printf("%-10s %-8s %9s %9s %10s %10s %12s\n", "program", "stack", "accuracy", "mean miss", "endless", "exact", "observations")
		for _, p := range []struct{ name, command string }{
			// Not xz -T2: its workers block all signals, and are sampled by --interrupt only.
			{"sort", "sort --parallel=2 -S 16M " + file},
		} {
			if strings.Contains(p.name, *only) && err == nil {
				err = compare(p.name, p.command)
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sharing:", err)
		os.Exit(1)
	}
}

// input is a megabyte of words in an order that nothing knows.
func input() (string, error) {
	f, err := os.CreateTemp("", "rdx-sharing-")
	if err != nil {
		return "", err
	}
	x := uint64(1)
	for n := 0; n < 1<<20; {
		x = x*6364136223846793005 + 1442695040888963407
		k, _ := fmt.Fprintf(f, "word%d of a line\n", x>>44)
		n += k
	}
	return f.Name(), f.Close()
}

func compare(name, command string) error {
	cpu, err := native(command)
	if err != nil {
		return err
	}
	exact := map[string][]float64{}
	accesses := 0.0
	for _, stack := range []string{"private", "shared"} {
		var r struct {
			Accesses float64 `json:"accesses"`
			Misses   []struct {
				Ratio float64 `json:"miss_ratio"`
			} `json:"miss_ratio"`
		}
		args := []string{"exact", "--stack", stack, "--block", "word", "--format", "json", "--sizes", strings.Join(sizes(), ","), "--"}
		if err := run(&r, append(args, strings.Fields(command)...)...); err != nil {
			return err
		}
		accesses = r.Accesses
		for _, m := range r.Misses {
			exact[stack] = append(exact[stack], m.Ratio)
		}
	}
	out := "/tmp/rdx-sharing-bench.pb.gz"
	defer os.Remove(out)
	times := int(math.Ceil(*seconds / cpu))
	loop := fmt.Sprintf("for i in $(seq %d); do %s > /dev/null; done", times, command)
	if err := run(nil, "run", "-q", "--follow", "--stack", "both", "--overhead", *overhead, "--access-rate", fmt.Sprint(accesses/cpu/1e9), "-o", out, "--", "sh", "-c", loop); err != nil {
		return err
	}
	for _, stack := range []string{"private", "shared"} {
		var r struct {
			Curves []struct {
				Observations float64 `json:"effective_observations"`
				Points       []struct {
					MissRatio *float64 `json:"miss_ratio"`
					Low       float64  `json:"low"`
					High      float64  `json:"high"`
				} `json:"points"`
			} `json:"curves"`
		}
		if err := run(&r, "mrc", "--stack", stack, "--format", "json", "--sizes", strings.Join(sizes(), ","), out); err != nil {
			return err
		}
		var got []float64
		for _, q := range r.Curves[0].Points {
			if q.MissRatio != nil {
				got = append(got, *q.MissRatio)
			} else {
				got = append(got, (q.Low+q.High)/2) // too rare, or too short, to quote
			}
		}
		// Bins between the sizes, and what misses in all of them.
		want, off, mean := exact[stack], 0.0, 0.0
		for i := range want {
			before, beforeGot := 1.0, 1.0
			if i > 0 {
				before, beforeGot = want[i-1], got[i-1]
			}
			off += math.Abs((before - want[i]) - (beforeGot - got[i]))
			mean += math.Abs(want[i]-got[i]) / float64(len(want))
		}
		last := len(want) - 1
		off += math.Abs(want[last] - got[last])
		fmt.Printf("%-10s %-8s %8.1f%% %8.2f%% %9.2f%% %9.2f%% %12.0f\n", name, stack, 100*(1-off/2), 100*mean, 100*got[last], 100*want[last], r.Curves[0].Observations)
	}
	fmt.Printf("%-10s %.3g accesses a ns of CPU time, by the exact count and an undisturbed run\n", "", accesses/cpu/1e9)
	return nil
}

// native is the user CPU time of the program in seconds.
func native(command string) (float64, error) {
	words := strings.Fields(command)
	cmd := exec.Command(words[0], words[1:]...)
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w", command, err)
	}
	t := cmd.ProcessState.SysUsage().(*syscall.Rusage).Utime
	return float64(t.Sec) + float64(t.Usec)/1e6, nil
}

// run runs rdx and reads what it prints, unless into is nil.
func run(into any, args ...string) error {
	cmd := exec.Command(*rdx, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("rdx %s: %w", args[0], err)
	}
	if into == nil {
		return nil
	}
	// The program's own output comes first.
	if i := strings.LastIndex(string(out), "{\n  \"trace\""); i > 0 {
		out = out[i:]
	}
	return json.Unmarshal(out, into)
}
