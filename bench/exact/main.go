// Command exact measures the exact analysers on generated streams of the three
// kinds by which they are compared: most accesses to the last few of 1.1e5
// lines, words of 8.7e5, and 4e6 blocks with no locality. It prints millions of
// accesses a second, processors used (CPU time by wall time: what was taken
// by others shows there), bytes per distinct block, and ratios. Two analyses
// side by side that have nothing to do with each other show what two
// processors of the machine can give at most. A table that grows and is new is of less weight the longer a stream is: they are as
// long as those by which the goals' analysers were measured, unless -n says otherwise. Analysers in C, see
// peers, of the kinds that the goals are of, show what those come to on the
// same machine and streams; they need gcc.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/model"
)

// stream is a benchmark input, and what the fastest public analysers do on one
// of its kind, on one core of a machine like the one of the goals.
type stream struct {
	name      string
	make      func(n int) ([]uint64, error)
	n         int
	full, log float64 // bitmap and Fenwick tree in C++; bucket markers. Million accesses a second
}

func zipf(exponent float64, blocks uint64) func(int) ([]uint64, error) {
	return func(n int) ([]uint64, error) {
		law, err := exact.ZipfLaw(exponent, blocks)
		if err != nil {
			return nil, err
		}
		g, err := exact.NewGenerator(law, blocks, 1)
		if err != nil {
			return nil, err
		}
		s := make([]uint64, n)
		return s, g.Fill(s)
	}
}

func uniform(n int) ([]uint64, error) {
	r := rand.New(rand.NewPCG(1, 2))
	s := make([]uint64, n)
	for i := range s {
		s[i] = r.Uint64N(4_000_000)
	}
	return s, nil
}

var streams = []stream{
	{"lines", zipf(1.5, 110_000), 50_000_000, 56, 90},
	{"words", zipf(1.2, 870_000), 50_000_000, 25, 40},
	{"uniform", uniform, 30_000_000, 4.1, 2.0},
}

// An analysis runs over the stream and returns the bytes it holds for blocks.
type analysis struct {
	name string
	run  func(accesses []model.Access) (bytes uint64, err error)
	work float64 // times the stream is gone through
}

func sequential(accesses []model.Access) (uint64, error) {
	e, err := exact.New(model.LineBytes, model.LogBins(10))
	if err != nil {
		return 0, err
	}
	err = add(e, accesses)
	return e.Bytes(), err
}

func olken(accesses []model.Access) (uint64, error) {
	o := exact.NewOlken()
	var blocks, dist, time [4096]uint64
	for len(accesses) > 0 {
		n := min(len(accesses), len(blocks))
		for i := range n {
			blocks[i] = accesses[i].Addr / model.LineBytes
		}
		if err := o.Touch(blocks[:n], dist[:n], time[:n]); err != nil {
			return 0, err
		}
		accesses = accesses[n:]
	}
	return o.Bytes(), nil
}

func parallel(jobs int) func([]model.Access) (uint64, error) {
	return func(accesses []model.Access) (uint64, error) {
		p, err := exact.NewParallel(model.LineBytes, model.LogBins(10), exact.ParallelConfig{Jobs: jobs})
		if err != nil {
			return 0, err
		}
		if err := add(p, accesses); err != nil {
			return 0, err
		}
		err = p.Finish()
		return p.Bytes(), err
	}
}

func log2(accesses []model.Access) (uint64, error) {
	s := exact.NewLog2Stack()
	var blocks [4096]uint64
	for len(accesses) > 0 {
		n := min(len(accesses), len(blocks))
		for i := range n {
			blocks[i] = accesses[i].Addr / model.LineBytes
		}
		if err := s.Touch(blocks[:n]); err != nil {
			return 0, err
		}
		accesses = accesses[n:]
	}
	return s.Bytes(), nil
}

func shards(c exact.ShardsConfig) func([]model.Access) (uint64, error) {
	return func(accesses []model.Access) (uint64, error) {
		s, err := exact.NewShards(model.LineBytes, model.LogBins(10), c)
		if err != nil {
			return 0, err
		}
		return 0, add(s, accesses)
	}
}

const oneGoroutine = "exact, one goroutine"

// twice runs an analysis of the same accesses on two goroutines.
func twice(run func([]model.Access) (uint64, error)) func([]model.Access) (uint64, error) {
	return func(accesses []model.Access) (uint64, error) {
		var other error
		var both sync.WaitGroup
		both.Go(func() { _, other = run(accesses) })
		bytes, err := run(accesses)
		both.Wait()
		return bytes, errors.Join(err, other)
	}
}

// add feeds an analysis as a reader of traces would.
func add(to interface{ Add([]model.Access) error }, accesses []model.Access) error {
	for part := range slices.Chunk(accesses, 4096) {
		if err := to.Add(part); err != nil {
			return err
		}
	}
	return nil
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func main() {
	length := flag.Int("n", 0, "accesses per stream, 0 for 50, 50 and 30 million")
	rounds := flag.Int("rounds", 3, "interleaved runs of each; the median is printed")
	only := flag.String("only", "", "analyses whose names match this regular expression")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err != nil {
		log.Fatal(err)
	}
	analyses := allAnalyses(match)
	dir, err := os.MkdirTemp("", "rdx-bench")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	peers := buildPeers(dir, match)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "stream\tanalysis\tM accesses/s\tCPUs\tbytes/block\tby goal\tby one goroutine\t")
	for _, s := range streams {
		n := s.n
		if *length > 0 {
			n = *length
		}
		s.compare(t, n, *rounds, analyses, peers)
	}
	t.Flush()
}

// allAnalyses are those of exact whose names match.
func allAnalyses(match *regexp.Regexp) []analysis {
	cores := runtime.NumCPU()
	analyses := []analysis{
		{"Olken alone, distances and times", olken, 1},
		{oneGoroutine, sequential, 1},
		{"exact, 1 job", parallel(1), 1},
		{"exact, 2 jobs", parallel(2), 1},
		{"two exact ones side by side", twice(sequential), 2},
		{"log2 bins", log2, 1},
		{"SHARDS, 1 %", shards(exact.ShardsConfig{Rate: 0.01}), 1},
		{"SHARDS, 8192 blocks", shards(exact.ShardsConfig{Size: 8192}), 1},
	}
	if cores > 2 {
		analyses = append(analyses, analysis{fmt.Sprintf("exact, %d jobs", cores), parallel(cores), 1})
	}
	return slices.DeleteFunc(analyses, func(a analysis) bool { return !match.MatchString(a.name) })
}

// built is a peer, ready to run.
type built struct{ name, path string }

// buildPeers builds those whose names match, as far as they can be.
func buildPeers(dir string, match *regexp.Regexp) (all []built) {
	for _, p := range peers {
		if !match.MatchString(p.name) {
			continue
		}
		path, err := buildPeer(dir, p.name, p.source)
		if err != nil {
			fmt.Fprintln(os.Stderr, "left out:", err)
			continue
		}
		all = append(all, built{p.name, path})
	}
	return all
}

// compare has all go through one stream, by turns, and prints what each took.
func (s *stream) compare(out io.Writer, n, rounds int, analyses []analysis, peers []built) {
	blocks, err := s.make(n)
	if err != nil {
		log.Fatal(err)
	}
	accesses := make([]model.Access, len(blocks))
	for i, b := range blocks {
		accesses[i] = model.Access{Addr: b * model.LineBytes, Size: 8, Op: model.Op(1 + b%2)}
	}
	stack := exact.NewLog2Stack()
	if err := stack.Touch(blocks); err != nil {
		log.Fatal(err)
	}
	want := stack.Distances()
	for _, peer := range peers {
		p, err := startPeer(peer.path, blocks)
		if err != nil {
			log.Fatal(err)
		}
		analyses = append(slices.Clip(analyses), analysis{peer.name, func([]model.Access) (uint64, error) { return p.run(want) }, 1})
		defer p.end() // it holds its stream till then
	}
	slices.Sort(blocks)
	distinct := float64(len(slices.Compact(blocks)))
	speed, used, bytes := make([][]float64, len(analyses)), make([][]float64, len(analyses)), make([]float64, len(analyses))
	for range rounds {
		for i, a := range analyses {
			runtime.GC()
			c, start := cpu(), time.Now()
			held, err := a.run(accesses)
			wall := time.Since(start).Seconds()
			if err != nil {
				log.Fatalf("%s, %s: %v", s.name, a.name, err)
			}
			speed[i] = append(speed[i], a.work*float64(n)/wall/1e6)
			used[i] = append(used[i], (cpu()-c).Seconds()/wall)
			bytes[i] = float64(held) / distinct
		}
	}
	for i, a := range analyses {
		v, base, goal := median(speed[i]), one(analyses, speed), s.full
		if strings.HasPrefix(a.name, "log2 bins") {
			goal = s.log
		}
		fmt.Fprintf(out, "%s\t%s\t%.1f\t%.2f\t%.1f\t%.2f\t%.2f\t\n", s.name, a.name, v, median(used[i]), bytes[i], v/goal, v/base)
	}
}

// one is the speed of one goroutine, not a number if that was left out.
func one(analyses []analysis, speed [][]float64) float64 {
	i := slices.IndexFunc(analyses, func(a analysis) bool { return a.name == oneGoroutine })
	if i < 0 {
		return math.NaN()
	}
	return median(speed[i])
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}
