// Command verdict holds the verdict of rdx why against programs of which it is known by construction how much of their time waits
// for memory: the same instructions with data in the first cache, and on data many times as large. It prints both, whether the
// band holds the truth, and how many findings there are. And beside the bytes that rdx why says go into the first two caches in a
// second, those that must by the kernel's construction and the time that it takes alone.
//
// Needs root, bpf, gcc and a quiet machine.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// kernels are those of verdict.c, by other names where one is twice, with how many times the first cache's size their data are, and how many lines an item brings into
// each of the first two caches: by LRU, where the first has 32 to 64 KiB and the second 256 KiB to 3 MiB. 0: not worked out.
var kernels = []struct {
	name   string
	kernel string
	times  string
	lines  [2]float64
}{
	{"compute", "compute", "1", [2]float64{}},
	{"blocked", "blocked", "32", [2]float64{}},
	{"unblocked", "unblocked", "43", [2]float64{1 + 1./8, 1. / 8}}, // a column has a line in each row; eight columns have the same lines
	{"column", "column", "512", [2]float64{1, 0}},
	{"few", "lookups", "1", [2]float64{}},
	{"near", "lookups", "8", [2]float64{}},
	{"lookups", "lookups", "4096", [2]float64{1, 1}}, // 65,536 lines, again and again
	{"ring", "list", "1", [2]float64{}},
	{"list", "list", "4096", [2]float64{1, 1}},
	{"triad", "triad", "4096", [2]float64{3. / 8, 3. / 8}},
}

func main() {
	rdx := flag.String("rdx", "./rdx", "rdx to test")
	seconds := flag.Int("seconds", 8, "of each session")
	rounds := flag.Int("rounds", 3, "times that each is timed; the median counts")
	overhead := flag.String("overhead", "5", "of each session")
	only := flag.String("only", "", "kernels, separated by commas")
	flag.Parse()
	if err := run(*rdx, *overhead, *only, *seconds, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "verdict:", err)
		os.Exit(1)
	}
}

func run(rdx, overhead, only string, seconds, rounds int) error {
	dir, err := os.MkdirTemp("", "verdict")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "verdict")
	if out, err := exec.Command("gcc", "-O2", "-g", "-o", bin, "bench/verdict/kernels/verdict.c").CombinedOutput(); err != nil {
		return fmt.Errorf("compile verdict.c: %w: %s", err, out)
	}
	fmt.Printf("%-10s %8s %8s %8s %6s %-14s %-5s %s\n", "kernel", "in cache", "large", "waits", "said", "band", "holds", "samples, findings")
	for _, k := range kernels {
		if only != "" && !slices.Contains(strings.Split(only, ","), k.name) {
			continue
		}
		var in, out []float64
		for range rounds {
			for _, x := range []struct {
				times string
				to    *[]float64
			}{{"1", &in}, {k.times, &out}} {
				text, err := exec.Command(bin, k.kernel, x.times, "1").Output()
				if err != nil {
					return fmt.Errorf("%s: %w", k.name, err)
				}
				ns, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
				if err != nil {
					return fmt.Errorf("%s: %w", k.name, err)
				}
				*x.to = append(*x.to, ns)
			}
		}
		slices.Sort(in)
		slices.Sort(out)
		fast, slow := in[rounds/2], out[rounds/2]
		truth := max(0, 1-fast/slow)
		a, err := session(rdx, bin, dir, k.kernel, k.times, overhead, seconds)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		v := a.Verdict
		if !v.Known {
			fmt.Printf("%-10s %8.3f %8.3f %7.1f%% not known: %s\n", k.name, fast, slow, 100*truth, v.Why)
			continue
		}
		holds := "yes"
		if truth < v.Memory.Low || truth > v.Memory.High {
			holds = "NO"
		}
		fmt.Printf("%-10s %8.3f %8.3f %7.1f%% %5.1f%% %5.1f to %5.1f %-5s %d, %d%s\n", k.name, fast, slow, 100*truth, 100*v.Memory.Value, 100*v.Memory.Low, 100*v.Memory.High, holds, v.Samples, len(a.Findings), a.traffic(k.lines, slow))
	}
	return nil
}

// traffic is what is said of it, in GB/s, beside what so many lines an item make.
func (a *answer) traffic(lines [2]float64, ns float64) (text string) {
	const line = 64
	for i, n := range lines {
		if n == 0 || i >= len(a.Traffic) {
			continue
		}
		t := a.Traffic[i]
		truth, said := n*line/ns, fmt.Sprintf("%.2f", t.Fill/1e9)
		if t.Bound {
			said = "?"
		}
		holds := "yes"
		if truth < t.Low/1e9 || truth > t.High/1e9 {
			holds = "NO"
		}
		text += fmt.Sprintf("; into %s %s [%.2f, %.2f] of %.2f GB/s %s", t.Level, said, t.Low/1e9, t.High/1e9, truth, holds)
	}
	return text
}

type answer struct {
	Traffic []struct {
		Level string
		Fill  float64 `json:"fill_bytes_per_second"`
		Low   float64 `json:"fill_low"`
		High  float64 `json:"fill_high"`
		Bound bool    `json:"upper_bound"`
	}
	Verdict struct {
		Known   bool
		Why     string
		Samples int64
		Memory  struct{ Value, Low, High float64 }
	}
	Findings []struct{ Rule string }
}

// session is what rdx why says of a kernel.
func session(rdx, bin, dir, kernel, times, overhead string, seconds int) (a answer, err error) {
	target := exec.Command(bin, kernel, times, "1000")
	said, err := target.StderrPipe()
	if err != nil {
		return a, err
	}
	if err := target.Start(); err != nil {
		return a, err
	}
	defer target.Wait()
	defer target.Process.Kill()
	if _, err := said.Read(make([]byte, 1)); err != nil {
		return a, fmt.Errorf("wait for its data: %w", err)
	}
	file := filepath.Join(dir, "p.pb.gz")
	if out, err := exec.Command(rdx, "attach", "-q", "-p", strconv.Itoa(target.Process.Pid), "-d", fmt.Sprintf("%ds", seconds), "--overhead", overhead, "-o", file).CombinedOutput(); err != nil {
		return a, fmt.Errorf("attach: %w: %s", err, out)
	}
	out, err := exec.Command(rdx, "why", "--format", "json", file).Output()
	if err != nil {
		return a, fmt.Errorf("why: %w", err)
	}
	return a, json.Unmarshal(out, &a)
}
