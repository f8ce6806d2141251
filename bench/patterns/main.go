// Command patterns profiles programs whose reuse times are known by
// construction and prints how much of the measured mass lies where it must.
//
// Needs root, bpf, watchpoints and gcc. The truth is in the clock's own unit:
// each program reports the CPU time of its accesses and of each of its laps,
// which vary where others share the caches and the memory. "In place" is how
// much of the measured mass can be paired with true mass no further than half an
// octave away, that is within an octave, as wide as a log2 bin; for random walks,
// whose every time is possible, it is 1 - sum|R-R^|/2 on log2 bins. "By chance"
// is what as many pairs would score on average if each were right.
package main

import (
	"bufio"
	"flag"
	"fmt"
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
	truth func(said said, n float64) law
	score func(measured, truth law) (inPlace float64)
}

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
	if out, err := exec.Command("gcc", "-O2", "-fno-omit-frame-pointer", "-o", bin, "bench/patterns/pattern.c", "-lm").CombinedOutput(); err != nil {
		return fmt.Errorf("compile pattern.c: %w: %s", err, out)
	}
	fmt.Printf("%-9s %10s %9s %12s %10s %10s %9s %9s %6s %9s %8s\n", "pattern", "words", "ns/access", "true time", "in place", "by chance", "endless", "true", "pairs", "censored", "lost")
	for _, p := range []pattern{
		{"cyclic", 1e4, 1, cyclic, near}, {"cyclic", 1e5, 1, cyclic, near}, {"cyclic", 1e6, 1, cyclic, near}, {"cyclic", 1e7, 4, cyclic, near},
		{"random", 1e5, 8, random, octaves}, {"random", 1e6, 8, random, octaves},
		{"twolevel", 1e6, 4, twolevel, near},
		{"stream", 4e9, 1, stream, near},
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
	said := parse(line)
	prof, err := pprofout.ReadFile(file)
	if err != nil {
		return err
	}
	if err := prof.Derive(); err != nil {
		return err
	}
	truth := p.truth(said, float64(p.n))
	if prof.Clock.Unit == "accesses" {
		// Samples and times are in accesses: each is one.
		truth = p.truth(said.inAccesses(), float64(p.n))
	}
	var total float64
	obs := map[model.Kind]int64{}
	for _, r := range prof.Records {
		total += r.Accesses
		obs[r.Kind] += r.Observations
	}
	l := law{endless: 1}
	for _, r := range prof.Records {
		if r.Kind == model.Reuse {
			l.points = append(l.points, point{float64(r.Native), r.Reuses / total})
			l.endless -= r.Reuses / total
		}
	}
	l.endless = max(l.endless, 0) // less is rounding
	var lost int64
	for _, c := range prof.Counts {
		if model.LostBecause.Has(c.Name) {
			lost += c.N
		}
	}
	n := obs[model.Reuse] + obs[model.Censored] + lost
	fmt.Printf("%-9s %10d %9.2f %10.3fms %9.1f%% %9.1f%% %8.2f%% %8.2f%% %6d %8.1f%% %7.2f%%\n", p.kind, p.n, said.ns, said.ns*float64(p.n)/1e6,
		100*p.score(l, truth), 100*byChance(truth, p.score, int(obs[model.Reuse])), 100*l.endless, 100*truth.endless,
		obs[model.Reuse], 100*float64(obs[model.Censored])/float64(n), 100*float64(lost)/float64(n))
	return nil
}
