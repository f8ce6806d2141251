package main

import (
	"fmt"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// exactSink is one kind of analysis of a whole access stream.
type exactSink interface {
	add([]model.Access) error
	// fill ends the analysis and sets the report's results.
	fill(*exactRun) error
}

// touchSink is an exactSink that needs only the blocks that accesses touch.
type touchSink interface {
	exactSink
	addTouches(*model.Touches) error
}

// newExactSink is the analysis that the flags ask for; bins are those of the
// report.
func newExactSink(r *exactRun, f *exactFlags, bins *model.Bins) (exactSink, error) {
	switch {
	case f.sampled > 0:
		return newSampledSink(r, f, bins)
	case r.Stack == "private":
		s := &privateSink{times: model.NewHist(bins), distances: model.NewHist(bins), perThread: map[int32]uint64{}}
		var err error
		s.stacks, err = newStacks(r.Block, true, f, s.touch)
		return s, err
	case f.gpu != "":
		return newGPUSink(r, f, bins)
	case f.log2:
		g, err := model.NewGranularity(r.Block)
		return &log2Sink{gran: g, stack: exact.NewLog2Stack()}, err
	case f.shards.value != exact.ShardsConfig{}:
		s, err := exact.NewShards(r.Block, bins, f.shards.value)
		return shardsSink{s}, err
	case f.approximate != "" || f.jobs > 1:
		c := exact.ParallelConfig{Jobs: f.jobs, Approximate: f.approximate != "", Factor: f.approximate == "factor", PieceTouches: f.piece}
		p, err := exact.NewParallel(r.Block, bins, c)
		return parallelSink{p, f.approximate}, err
	}
	e, err := exact.New(r.Block, bins)
	return sharedSink{e}, err
}

type sharedSink struct{ *exact.Analysis }

func (s sharedSink) add(a []model.Access) error        { return s.Add(a) }
func (s sharedSink) addTouches(t *model.Touches) error { return s.AddTouches(t) }

func (s sharedSink) fill(r *exactRun) error {
	r.fillExact(s.Analysis)
	return nil
}

type parallelSink struct {
	*exact.Parallel
	approximate string
}

func (s parallelSink) add(a []model.Access) error        { return s.Add(a) }
func (s parallelSink) addTouches(t *model.Touches) error { return s.AddTouches(t) }

func (s parallelSink) fill(r *exactRun) error {
	if err := s.Finish(); err != nil {
		return err
	}
	r.approximate(s.approximate, s.Factor)
	r.fillExact(s.Parallel)
	return nil
}

// approximate says how an approximate merge was done; "" is an exact one.
func (r *exactRun) approximate(how string, factor func() float64) {
	if how == "" {
		return
	}
	r.Method = "approximate merge"
	if how == "factor" {
		r.Method += fmt.Sprintf(", effective factor %.3g", factor())
	}
}

// fillExact sets what an analysis on one stack gives.
func (r *exactRun) fillExact(e interface {
	Accesses() uint64
	Loads() uint64
	Stores() uint64
	Touches() uint64
	Blocks() uint64
	Times() *model.Hist
	Distances() *model.Hist
	Footprint() []model.FootprintPoint
	WindowError() float64
}) {
	r.Accesses, r.Loads, r.Stores, r.Touches, r.Blocks = e.Accesses(), e.Loads(), e.Stores(), e.Touches(), e.Blocks()
	r.found.Times, r.found.Distances = e.Times(), e.Distances()
	for _, p := range e.Footprint() {
		r.Footprint = append(r.Footprint, report.ExactFootprint(p))
	}
	if r.Footprint != nil {
		windowError := e.WindowError()
		r.WindowError = &windowError
	}
}

// opCounts counts accesses by direction for analyses that do not.
type opCounts [model.Store + 1]uint64

func (c *opCounts) add(a []model.Access) {
	for i := range a {
		c[min(a[i].Op, model.Store)]++
	}
}

func (c *opCounts) fill(r *exactRun) {
	r.Loads, r.Stores = c[model.Load], c[model.Store]
	r.Accesses = c[model.OpUnknown] + r.Loads + r.Stores
}

type privateSink struct {
	stacks
	times, distances *model.Hist
	ops              opCounts
	touches          uint64
	blocks           uint64 // of the largest stack
	perThread        map[int32]uint64
}

func (s *privateSink) add(a []model.Access) error {
	s.ops.add(a)
	return s.stacks.Add(a)
}

func (s *privateSink) touch(t *exact.Touch) {
	s.touches++
	s.times.AddKind(t.Kind, t.Time, 1)
	s.distances.AddKind(t.Kind, t.Dist, 1)
	if t.Kind == model.Cold {
		s.perThread[t.Thread]++
		s.blocks = max(s.blocks, s.perThread[t.Thread])
	}
}

func (s *privateSink) fill(r *exactRun) error {
	if err := s.stacks.Finish(); err != nil {
		return err
	}
	s.ops.fill(r)
	r.Touches, r.Blocks, r.Device = s.touches, s.blocks, s.device()
	r.found.Times, r.found.Distances = s.times, s.distances
	return nil
}

type log2Sink struct {
	gran   model.Granularity
	stack  *exact.Log2Stack
	ops    opCounts
	blocks []uint64
	n      uint64 // touches
}

func (s *log2Sink) add(a []model.Access) error {
	s.ops.add(a)
	for i := range a {
		for b, last := s.gran.Span(&a[i]); ; b++ {
			s.blocks = append(s.blocks, b)
			if b == last {
				break
			}
		}
		// many at a time: the stack looks them up together
		if len(s.blocks) >= 1024 || i == len(a)-1 {
			s.n += uint64(len(s.blocks))
			if err := s.stack.Touch(s.blocks); err != nil {
				return err
			}
			s.blocks = s.blocks[:0]
		}
	}
	return nil
}

func (s *log2Sink) addTouches(t *model.Touches) error {
	for op, n := range t.Ops {
		s.ops[op] += n
	}
	n := t.Repeats[0] + t.Repeats[1]
	s.n += uint64(len(t.Blocks)) + n
	s.stack.Repeat(n)
	return s.stack.Touch(t.Blocks)
}

const log2Method = "distances in bins of an octave"

func (s *log2Sink) fill(r *exactRun) error {
	s.ops.fill(r)
	r.Method = log2Method
	r.Touches, r.Blocks, r.found.Distances = s.n, s.stack.Blocks(), s.stack.Distances()
	return nil
}

type shardsSink struct{ *exact.Shards }

func (s shardsSink) add(a []model.Access) error        { return s.Add(a) }
func (s shardsSink) addTouches(t *model.Touches) error { return s.AddTouches(t) }

func (s shardsSink) fill(r *exactRun) error {
	r.Method = fmt.Sprintf("SHARDS: %d blocks sampled, %s of all, %d of %d touches", s.SampledBlocks(), report.Percent(s.Rate(), 1), s.Sampled(), s.Touches())
	r.Accesses, r.Loads, r.Stores, r.Touches = s.Accesses(), s.Loads(), s.Stores(), s.Touches()
	r.Blocks = uint64(s.Shards.Blocks() + 0.5)
	r.found.Distances, r.found.MissRatio = s.Distances(), s.MissRatio
	if s.Sampled() == 0 && r.Touches > 0 {
		return fmt.Errorf("no block is in the sample (consider: a higher rate, or a size)")
	}
	return nil
}

type sampledSink struct {
	sampler          *exact.ThreadSampler
	rate             float64
	ops              opCounts
	times, distances *model.Hist
	kinds            map[model.Kind]int
	unseen           uint64 // accesses that the engine left out
	err              error
}

// Skip and Skipped make it a trace.Skipper. An access that went by unseen is
// counted as one touch.
func (s *sampledSink) Skip() uint64 { return s.sampler.Idle() }

func (s *sampledSink) Skipped(n uint64) {
	s.unseen += n
	if err := s.sampler.Skip(n); err != nil && s.err == nil {
		s.err = err
	}
}

func newSampledSink(r *exactRun, f *exactFlags, bins *model.Bins) (exactSink, error) {
	c := exact.ThreadSamplerConfig{BlockBytes: r.Block, MeanPeriod: 1 / f.sampled, Seed: f.seed,
		Shared: r.Stack == "shared", Parallel: f.late, PruneAfter: f.pruneAfter, PruneQuantile: 0.99}
	s, err := exact.NewThreadSampler(c)
	return &sampledSink{sampler: s, rate: f.sampled, times: model.NewHist(bins), distances: model.NewHist(bins), kinds: map[model.Kind]int{}}, err
}

func (s *sampledSink) note(x *exact.ThreadSample) {
	s.times.AddKind(x.Kind, x.Time, 1)
	s.distances.AddKind(x.Kind, x.Dist, 1)
	s.kinds[x.Kind]++
}

func (s *sampledSink) add(a []model.Access) error {
	s.ops.add(a)
	s.sampler.Add(a, s.note)
	return nil
}

func (s *sampledSink) fill(r *exactRun) error {
	s.sampler.Finish(s.note)
	if err := s.sampler.Err(); err != nil {
		return err
	}
	c := s.sampler.Counts()
	s.ops.fill(r)
	if s.unseen > 0 {
		r.Accesses += s.unseen
		r.Loads, r.Stores = 0, 0 // not known of all
	}
	if c.Samples == 0 && r.Accesses > 0 {
		return fmt.Errorf("no sample was taken in %d touches (consider: a rate above %.2g)", c.Touches, 1/float64(c.Touches))
	}
	r.Touches = c.Touches
	r.found.Times, r.found.Distances = s.times, s.distances
	r.Method = fmt.Sprintf("sampled: %d touches, 1 in %.6g; %s of the touches analysed; %d reused, %d pruned, %d open at the end",
		c.Samples, 1/s.rate, report.Percent(float64(c.Analyzed), float64(c.Touches)), s.kinds[model.Reuse], s.kinds[model.Pruned], s.kinds[model.Censored])
	return nil
}
