// Command gpu measures rdx exact --gpu: million touches a second on the three streams by which exact analysers are
// compared, and on recordings, if some are named, against one core and all cores in the same run. What the GPU takes has the
// transfers in it, and the shared memory between two processes; its start is apart. All results are compared: one that differs
// is an error. Kernels' times are of one more run, in which they do not overlap with anything.
package main

import (
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"sort"
	"text/tabwriter"
	"time"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/gpu"
	"github.com/rdx-profiler/rdx/gpu/device"
	"github.com/rdx-profiler/rdx/gpu/opencl"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/trace"
)

var (
	which    = flag.String("device", "", "number or part of the name of the device; pocl's processor is 0")
	millions = flag.Int("n", 50, "million touches of each stream")
	rounds   = flag.Int("rounds", 3, "rounds, of which medians are shown")
	segment  = flag.Int("segment", 0, "touches that the GPU analyses at once")
	bins     = model.LogBins(10)
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	all, err := gpu.List()
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range all {
		fmt.Printf("device %d: %s, %s, driver %s, %d compute units, %d MB\n", d.Number, d.Name, d.Kind, d.Driver, d.Units, d.Memory>>20)
	}
	fmt.Printf("%d processors, %s\n\n", runtime.NumCPU(), runtime.GOARCH)
	for _, s := range []struct {
		name string
		make func(n int) ([]uint64, error)
	}{{"lines", zipf(1.5, 110_000)}, {"words", zipf(1.2, 870_000)}, {"uniform", uniform}} {
		blocks, err := s.make(*millions * 1_000_000)
		if err != nil {
			log.Fatal(err)
		}
		measure(s.name, batches(blocks))
	}
	for _, path := range flag.Args() {
		b, err := recorded(path)
		if err != nil {
			log.Fatal(err)
		}
		measure(path, b)
	}
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

// batches are touches as decoding a recording makes them.
func batches(blocks []uint64) []*model.Touches {
	cutter, err := exact.NewCutter(model.LineBytes, 1<<15, 0)
	if err != nil {
		log.Fatal(err)
	}
	var all []*model.Touches
	accesses := make([]model.Access, 1<<15)
	for at := 0; at < len(blocks); at += len(accesses) {
		part := accesses[:min(len(accesses), len(blocks)-at)]
		for i := range part {
			part[i] = model.Access{Addr: blocks[at+i] * model.LineBytes, Size: 8, Op: model.Op(1 + i%3/2)}
		}
		if err := cutter.Cut(part, func(t *model.Touches) error { all = append(all, clone(t)); return nil }); err != nil {
			log.Fatal(err)
		}
	}
	return all
}

func clone(t *model.Touches) *model.Touches {
	c := *t
	c.Blocks, c.Runs = slices.Clone(t.Blocks), slices.Clone(t.Runs)
	return &c
}

func recorded(path string) (all []*model.Touches, err error) {
	f, err := trace.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	g, err := model.NewGranularity(model.LineBytes)
	if err != nil {
		return nil, err
	}
	err = trace.NewSource(f.Reader).Touches(g, func(t *model.Touches) error { all = append(all, clone(t)); return nil })
	return all, err
}

// found is what is compared.
type found struct {
	times, distances *model.Hist
	footprint        []model.FootprintPoint
	windowError      float64
}

type analysis interface {
	Times() *model.Hist
	Distances() *model.Hist
	Footprint() []model.FootprintPoint
	WindowError() float64
}

func all(a analysis) *found { return &found{a.Times(), a.Distances(), a.Footprint(), a.WindowError()} }

// way is a way to analyse; start is what is not measured of it.
type way struct {
	name string
	run  func(in []*model.Touches) (start, elapsed time.Duration, result *found, err error)
}

func measure(name string, in []*model.Touches) {
	var touches float64
	for _, t := range in {
		touches += float64(len(t.Blocks)) + float64(t.Repeats[0]+t.Repeats[1])
	}
	ways := []way{{"one core", oneCore}, {fmt.Sprintf("%d cores", runtime.NumCPU()), cores}, {"GPU, by rdx-gpu", byProgram}, {"GPU, in this process", within(false)}, {"GPU, octaves only", within(true)}}
	elapsed := make([][]time.Duration, len(ways))
	starts := make([]time.Duration, len(ways))
	var want *found
	for range *rounds {
		for i, w := range ways {
			start, t, got, err := w.run(in)
			if err != nil {
				log.Fatalf("%s, %s: %v", name, w.name, err)
			}
			elapsed[i], starts[i] = append(elapsed[i], t), start
			if want == nil {
				want = got
			} else if got != nil && !reflect.DeepEqual(want, got) {
				log.Fatalf("%s: %s has another result than %s", name, w.name, ways[0].name)
			}
		}
	}
	fmt.Printf("%s: %.1f million touches\n", name, touches/1e6)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "\tmillion touches a second\tby one core\tby all cores\tstart, s\t")
	median := func(i int) float64 { slices.Sort(elapsed[i]); return elapsed[i][len(elapsed[i])/2].Seconds() }
	one, many := median(0), median(1)
	for i, w := range ways {
		fmt.Fprintf(out, "%s\t%.1f\t%.2f\t%.2f\t%.2f\t\n", w.name, touches/1e6/median(i), one/median(i), many/median(i), starts[i].Seconds())
	}
	out.Flush()
	if err := kernels(in, touches); err != nil {
		log.Fatal(err)
	}
	fmt.Println()
}

func oneCore(in []*model.Touches) (start, elapsed time.Duration, result *found, err error) {
	begun := time.Now()
	e, err := exact.New(model.LineBytes, bins)
	if err != nil {
		return 0, 0, nil, err
	}
	for _, t := range in {
		if err := e.AddTouches(t); err != nil {
			return 0, 0, nil, err
		}
	}
	elapsed = time.Since(begun)
	return 0, elapsed, all(e), nil
}

func cores(in []*model.Touches) (start, elapsed time.Duration, result *found, err error) {
	begun := time.Now()
	p, err := exact.NewParallel(model.LineBytes, bins, exact.ParallelConfig{Jobs: runtime.NumCPU()})
	if err != nil {
		return 0, 0, nil, err
	}
	for _, t := range in {
		if err := p.AddTouches(t); err != nil {
			return 0, 0, nil, err
		}
	}
	if err := p.Finish(); err != nil {
		return 0, 0, nil, err
	}
	elapsed = time.Since(begun)
	return 0, elapsed, all(p), nil
}

func byProgram(in []*model.Touches) (start, elapsed time.Duration, result *found, err error) {
	begun := time.Now()
	e, err := gpu.NewExact(model.LineBytes, bins, gpu.Config{Device: *which, Segment: *segment})
	if err != nil {
		return 0, 0, nil, err
	}
	defer e.Close()
	start, begun = time.Since(begun), time.Now()
	for _, t := range in {
		if err := e.AddTouches(t); err != nil {
			return 0, 0, nil, err
		}
	}
	r, err := e.Result()
	if err != nil {
		return 0, 0, nil, err
	}
	elapsed = time.Since(begun)
	return start, elapsed, all(r), nil
}

// within does the same without rdx-gpu; untimed counts distances by octave and nothing else.
func within(untimed bool) func(in []*model.Touches) (start, elapsed time.Duration, result *found, err error) {
	return func(in []*model.Touches) (start, elapsed time.Duration, result *found, err error) {
		begun := time.Now()
		ctx, err := open()
		if err != nil {
			return 0, 0, nil, err
		}
		defer ctx.Close()
		b := bins
		if untimed {
			b = model.LogBins(1)
		}
		a, err := device.NewAnalysis(ctx, device.Config{Edges: b.Edges(), Untimed: untimed, Segment: *segment})
		if err != nil {
			return 0, 0, nil, err
		}
		start, begun = time.Since(begun), time.Now()
		counted, without, err := run(a, in)
		if err != nil {
			return 0, 0, nil, err
		}
		elapsed = time.Since(begun)
		if untimed {
			return start, elapsed, nil, nil
		}
		r, err := exact.NewCountedAnalysis(model.LineBytes, b, counted, without, false)
		if err != nil {
			return 0, 0, nil, err
		}
		return start, elapsed, all(r), nil
	}
}

func run(a *device.Analysis, in []*model.Touches) (*exact.Counted, *model.Touches, error) {
	var without model.Touches
	for _, t := range in {
		if err := a.Add(t.Blocks, t.Runs); err != nil {
			return nil, nil, err
		}
		for op := range t.Ops {
			without.Ops[op] += t.Ops[op]
		}
		for store := range t.Repeats {
			without.Repeats[store] += t.Repeats[store]
		}
	}
	counted, err := a.Finish()
	return counted, &without, err
}

func open() (*opencl.Context, error) {
	api, err := opencl.Load(opencl.Libraries...)
	if err != nil {
		return nil, err
	}
	return device.OpenNamed(api, *which)
}

// kernels shows how long each took of all.
func kernels(in []*model.Touches, touches float64) error {
	ctx, err := open()
	if err != nil {
		return err
	}
	defer ctx.Close()
	a, err := device.NewAnalysis(ctx, device.Config{Edges: bins.Edges(), Segment: *segment})
	if err != nil {
		return err
	}
	elapsed := map[string]time.Duration{}
	var sum time.Duration
	ctx.Observe = func(kernel string, d time.Duration) { elapsed[kernel] += d; sum += d }
	if _, _, err := run(a, in); err != nil {
		return err
	}
	var names []string
	for name := range elapsed {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return elapsed[names[i]] > elapsed[names[j]] })
	fmt.Printf("kernels one at a time: %.1f million touches a second, ns a touch:", touches/1e6/sum.Seconds())
	for _, name := range names {
		fmt.Printf(" %s %.2f", name, float64(elapsed[name].Nanoseconds())/touches)
	}
	fmt.Println()
	return nil
}
