// Command exact measures the exact analysers on generated streams of the three
// kinds by which they are compared: most accesses to the last few of 1.1e5
// lines, words of 8.7e5, and 4e6 blocks with no locality. It prints millions of
// accesses a second, processors used (CPU time by wall time: what was taken
// by others shows there), bytes per distinct block, and ratios.
package main

import (
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

// stream is a benchmark input, and what the fastest public analysers do on one
// of its kind, on one core of a machine like the one of the goals.
type stream struct {
	name      string
	make      func(n int) ([]uint64, error)
	full, log float64 // bitmap and Fenwick tree in C++; bucket markers. Million accesses a second
}

func zipf(exponent float64, blocks uint64) func(int) ([]uint64, error) {
	return func(n int) ([]uint64, error) {
		law, err := model.ZipfLaw(exponent, blocks)
		if err != nil {
			return nil, err
		}
		g, err := model.NewGenerator(law, blocks, 1)
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
	{"lines", zipf(1.5, 110_000), 56, 90},
	{"words", zipf(1.2, 870_000), 25, 40},
	{"uniform", uniform, 4.1, 2.0},
}

// An analysis runs over the stream and returns the bytes it holds for blocks.
type analysis struct {
	name string
	run  func(accesses []model.Access) (bytes uint64, err error)
}

func exact(accesses []model.Access) (uint64, error) {
	e, err := model.NewExact(model.LineBytes, model.LogBins(10))
	if err != nil {
		return 0, err
	}
	err = add(e, accesses)
	return e.Bytes(), err
}

func olken(accesses []model.Access) (uint64, error) {
	o := model.NewOlken()
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
		p, err := model.NewParallelExact(model.LineBytes, model.LogBins(10), model.ParallelConfig{Jobs: jobs})
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
	n := flag.Int("n", 20_000_000, "accesses per stream")
	rounds := flag.Int("rounds", 3, "interleaved runs of each; the median is printed")
	flag.Parse()
	cores := runtime.NumCPU()
	analyses := []analysis{
		{"Olken alone, distances and times", olken},
		{"exact, one goroutine", exact},
		{"exact, 1 job", parallel(1)},
		{"exact, 2 jobs", parallel(2)},
	}
	if cores > 2 {
		analyses = append(analyses, analysis{fmt.Sprintf("exact, %d jobs", cores), parallel(cores)})
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "stream\tanalysis\tM accesses/s\tCPUs\tbytes/block\tby goal\tby one goroutine\t")
	for _, s := range streams {
		blocks, err := s.make(*n)
		if err != nil {
			log.Fatal(err)
		}
		accesses := make([]model.Access, len(blocks))
		for i, b := range blocks {
			accesses[i] = model.Access{Addr: b * model.LineBytes, Size: 8, Op: model.Op(1 + b%2)}
		}
		slices.Sort(blocks)
		distinct := float64(len(slices.Compact(blocks)))
		speed, used, bytes := make([][]float64, len(analyses)), make([][]float64, len(analyses)), make([]float64, len(analyses))
		for range *rounds {
			for i, a := range analyses {
				runtime.GC()
				c, start := cpu(), time.Now()
				held, err := a.run(accesses)
				wall := time.Since(start).Seconds()
				if err != nil {
					log.Fatalf("%s, %s: %v", s.name, a.name, err)
				}
				speed[i] = append(speed[i], float64(*n)/wall/1e6)
				used[i] = append(used[i], (cpu()-c).Seconds()/wall)
				bytes[i] = float64(held) / distinct
			}
		}
		for i, a := range analyses {
			v, base := median(speed[i]), median(speed[1])
			fmt.Fprintf(t, "%s\t%s\t%.1f\t%.2f\t%.1f\t%.2f\t%.2f\t\n", s.name, a.name, v, median(used[i]), bytes[i], v/s.full, v/base)
		}
	}
	t.Flush()
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}
