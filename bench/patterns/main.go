// Command patterns profiles programs whose reuse times are known by
// construction and prints how much of the measured mass lies where it must.
//
// Needs root, bpf, watchpoints and gcc. The truth is in the clock's own unit:
// each program reports the CPU time of one of its accesses. "In place" is the
// mass within the octave centred on the true time, which is as wide as a log2
// bin; for random walks it is 1 - sum|R-R^|/2 on log2 bins against the
// geometric law.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

type pattern struct {
	kind string
	n    int
	// times the usual duration: where pairs take long, or are many different.
	times float64
	// score takes the measured law of native times and what the program said
	// of itself, and returns the mass in place and the true share of accesses
	// never reused.
	score func(l law, said map[string]float64, n float64) (inPlace, endless float64)
}

// law is the measured distribution of native reuse times, with total mass 1.
type law struct {
	time, mass []float64
	endless    float64
}

// within is the mass of the octave centred on t.
func (l law) within(t float64) (m float64) {
	for i, v := range l.time {
		if math.Abs(math.Log2(v/t)) <= 0.5 {
			m += l.mass[i]
		}
	}
	return m
}

func cyclic(l law, said map[string]float64, n float64) (float64, float64) {
	return l.within(said["ns"] * n), 0
}

func random(l law, said map[string]float64, n float64) (float64, float64) {
	mean := said["ns"] * n
	got := map[int]float64{}
	for i, v := range l.time {
		got[int(math.Floor(math.Log2(v)))] += l.mass[i]
	}
	off := l.endless
	for b := range 64 {
		lo, hi := math.Exp2(float64(b)), math.Exp2(float64(b+1))
		want := math.Exp(-lo/mean) - math.Exp(-hi/mean)
		off += math.Abs(want - got[b])
	}
	return 1 - off/2, 0
}

// twolevel: the shares of the two times are those of CPU time, by which the
// clock source samples, and not those of accesses.
func twolevel(l law, said map[string]float64, n float64) (float64, float64) {
	const hot = 10000
	round := hot * (said["hot_ns"] + said["cold_ns"])
	want := said["hot_ns"] / (said["hot_ns"] + said["cold_ns"])
	near, far := l.within(round), l.within(round*n/hot)
	return min(near, want) + min(far, 1-want), 0
}

func stream(l law, _ map[string]float64, _ float64) (float64, float64) { return l.endless, 1 }

func main() {
	rdx := flag.String("rdx", "./rdx", "rdx to test")
	seconds := flag.Float64("seconds", 30, "CPU time of each pattern; slow and random ones take a multiple")
	extra := flag.String("flags", "", "more flags for rdx attach, separated by spaces")
	only := flag.String("only", "", "only patterns that begin so, as in \"cyclic 10000\"")
	flag.Parse()
	if err := run(*rdx, *seconds, strings.Fields(*extra), *only); err != nil {
		fmt.Fprintln(os.Stderr, "patterns:", err)
		os.Exit(1)
	}
}

func run(rdx string, seconds float64, extra []string, only string) error {
	dir, err := os.MkdirTemp("", "patterns")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "pattern")
	if out, err := exec.Command("gcc", "-O2", "-fno-omit-frame-pointer", "-o", bin, "bench/patterns/pattern.c").CombinedOutput(); err != nil {
		return fmt.Errorf("compile pattern.c: %w: %s", err, out)
	}
	fmt.Printf("%-9s %10s %9s %12s %10s %9s %9s %6s %9s %8s\n", "pattern", "words", "ns/access", "true time", "in place", "endless", "true", "pairs", "censored", "lost")
	for _, p := range []pattern{
		{"cyclic", 1e4, 1, cyclic}, {"cyclic", 1e5, 1, cyclic}, {"cyclic", 1e6, 1, cyclic}, {"cyclic", 1e7, 4, cyclic},
		{"random", 1e5, 2, random}, {"random", 1e6, 2, random},
		{"twolevel", 1e6, 2, twolevel},
		{"stream", 4e9, 1, stream},
	} {
		if !strings.HasPrefix(fmt.Sprintf("%s %d", p.kind, p.n), only) {
			continue
		}
		if err := one(p, rdx, bin, dir, seconds, extra); err != nil {
			return fmt.Errorf("%s %d: %w", p.kind, p.n, err)
		}
	}
	return nil
}

func one(p pattern, rdx, bin, dir string, seconds float64, extra []string) error {
	file := filepath.Join(dir, "p.pb.gz")
	target := exec.Command(bin, p.kind, strconv.Itoa(p.n), fmt.Sprint(seconds*p.times))
	target.Stderr = os.Stderr
	pipe, err := target.StdoutPipe()
	if err != nil {
		return err
	}
	if err := target.Start(); err != nil {
		return err
	}
	defer target.Wait()
	defer target.Process.Kill()
	out := bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
		return fmt.Errorf("target says %q: %w", line, err)
	}
	// Until the target ends.
	cmd := exec.Command(rdx, append([]string{"attach", "-q", "-p", strconv.Itoa(target.Process.Pid), "--granularity", "word", "-o", file}, extra...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	line, err := out.ReadString('\n')
	if err != nil {
		return err
	}
	said := map[string]float64{}
	for _, f := range strings.Fields(line) {
		if k, v, ok := strings.Cut(f, "="); ok {
			said[k], _ = strconv.ParseFloat(v, 64)
		}
	}
	prof, err := pprofout.ReadFile(file)
	if err != nil {
		return err
	}
	if err := prof.Derive(); err != nil {
		return err
	}
	ns := said["ns"]
	if prof.Clock.Unit == "accesses" {
		// Samples and times are in accesses: each is one.
		said["ns"], said["hot_ns"], said["cold_ns"] = 1, 1, 1
	}
	var l law
	var total float64
	obs := map[model.Kind]int64{}
	for _, r := range prof.Records {
		total += r.Accesses
		obs[r.Kind] += r.Observations
	}
	l.endless = 1
	for _, r := range prof.Records {
		if r.Kind == model.Reuse {
			l.time = append(l.time, float64(r.Native))
			l.mass = append(l.mass, r.Reuses/total)
			l.endless -= r.Reuses / total
		}
	}
	var lost int64
	for _, c := range prof.Counts {
		if strings.HasPrefix(c.Name, "lost: ") {
			lost += c.N
		}
	}
	inPlace, endless := p.score(l, said, float64(p.n))
	n := obs[model.Reuse] + obs[model.Censored] + lost
	fmt.Printf("%-9s %10d %9.2f %10.3fms %9.1f%% %8.2f%% %8.2f%% %6d %8.1f%% %7.2f%%\n", p.kind, p.n, ns, ns*float64(p.n)/1e6,
		100*inPlace, 100*l.endless, 100*endless, obs[model.Reuse], 100*float64(obs[model.Censored])/float64(n), 100*float64(lost)/float64(n))
	return nil
}
