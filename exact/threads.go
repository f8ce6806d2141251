package exact

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/rdx-profiler/rdx/model"
)

// ThreadSampler measures stack distances of a few accesses of a multithreaded
// stream, chosen at random, in private or shared stacks: the method of Schuff
// et al., section 3. Between samples it only counts; while a sample is open
// the blocks that go by are put on stacks, which all open samples share: a touch
// costs the same however many there are. That matters, as a block that is not
// touched again leaves its sample open.
//
// Memory is about 40 bytes for each block that each thread has touched since no
// sample was open; in Parallel mode that of the open samples' sets. A ThreadSampler
// is for one goroutine.
type ThreadSampler struct {
	gran   model.Granularity
	config ThreadSamplerConfig
	rand   *rand.PCG

	number    map[int32]int // of a thread, from 0
	clock     []uint64      // touches of each thread
	touches   uint64        // of all
	untilNext uint64        // touches until the next sample is taken

	// Touches that cannot change what is known of any open sample are left out:
	// those of what the thread has touched since the last sample was taken or
	// another thread ran, and written if this is a write.
	seen  [numSeen]seenBlock
	epoch uint64 // of entries of seen that hold

	open   []*openSample // oldest first
	free   []*openSample
	stacks *sampleStacks // nil in Parallel mode
	err    error
	past   tally // distances of samples reused; pruned ones as Infinite
	counts ThreadSamplerCounts
}

// numSeen is small enough for a first-level cache.
const numSeen = 1 << 10

type seenBlock struct {
	block uint64
	epoch uint64
	wrote bool
}

// ThreadSamplerConfig says what a ThreadSampler measures, and how.
type ThreadSamplerConfig struct {
	BlockBytes int
	// MeanPeriod is the mean number of touches from one sample to the next, 1
	// or more. Periods are geometric, so that every touch is as likely.
	MeanPeriod float64
	Seed       uint64
	// Shared measures in one stack for all threads, otherwise each has its own.
	Shared bool
	// Parallel works as threads that run in parallel must to do without locks:
	// for each open sample each notes what it touches in a set of its own, and the
	// sets are merged at a reuse of the sampled block and, for private stacks, at
	// Sync. Otherwise threads see each other's touches at once. With shared stacks the two
	// differ only if the stream's order is not the order of the accesses; with
	// private stacks Parallel learns late of other threads' writes.
	Parallel bool
	// PruneAfter is the number of finished samples from which on an open one
	// is given up when its distance exceeds PruneQuantile of theirs; 0 never
	// prunes. The paper's values are 100 and 0.99. Not more than 1-PruneQuantile
	// of the samples are pruned: if more touches than that are the last to
	// their block, samples stay open; a lower quantile bounds their number.
	PruneAfter    int
	PruneQuantile float64
}

// ThreadSample is the outcome of one sample.
type ThreadSample struct {
	Block  uint64
	Thread int32 // of the use
	PC     uint64
	Op     model.Op
	// Kind is Reuse, Invalidated (another thread wrote the block; private
	// stacks only), Pruned or Censored (open when the stream ended).
	Kind model.Kind
	// Dist is the stack distance in blocks. For Pruned and Censored it is the
	// distance reached, and for Invalidated the one at which that was noticed.
	Dist uint64
	Time uint64 // touches of the same stack since the use
	// Of the reuse or the invalidating write; 0 if there was none, or if the
	// write was noticed late.
	EndThread int32
	EndPC     uint64
}

// ThreadSamplerCounts says what a ThreadSampler has done so far.
type ThreadSamplerCounts struct {
	Touches  uint64
	Analyzed uint64 // touches that went by while a sample was open
	Samples  uint64 // taken
	MaxOpen  int    // the most that were open at once
}

// openSample is a sample that waits for its reuse.
type openSample struct {
	ThreadSample
	owner int    // number of Thread
	start uint64 // the stack's clock at the use

	// What follows is for Parallel mode. holes is the number of places above the block that invalidated blocks
	// have left and nothing has filled.
	holes uint64
	// set is the distance set, of valid blocks above the sampled one: the
	// owner's part of it. others[n] is thread n's: its write set for private stacks,
	// its distance set for shared ones.
	set    blockSet
	others []blockSet
}

// NewThreadSampler returns a sampler, or an error for a configuration that
// makes no sense.
func NewThreadSampler(c ThreadSamplerConfig) (*ThreadSampler, error) {
	g, err := model.NewGranularity(c.BlockBytes)
	if err != nil {
		return nil, err
	}
	if !(c.MeanPeriod >= 1) || c.MeanPeriod > 1e18 {
		return nil, fmt.Errorf("sample threads: mean period %v, want 1 to 1e18", c.MeanPeriod)
	}
	if c.PruneAfter < 0 || c.PruneAfter > 0 && !(c.PruneQuantile > 0 && c.PruneQuantile < 1) {
		return nil, fmt.Errorf("sample threads: prune above quantile %v after %d samples, want a quantile between 0 and 1", c.PruneQuantile, c.PruneAfter)
	}
	s := &ThreadSampler{
		gran:   g,
		config: c,
		rand:   rand.NewPCG(c.Seed, 0x7264785f736d70),
		number: map[int32]int{},
		epoch:  1,
		past:   newTally(model.LogBins(10)),
	}
	s.untilNext = s.drawPeriod()
	if !c.Parallel {
		s.stacks, err = newSampleStacks(c)
	}
	return s, err
}

// drawPeriod is geometric on 1, 2, ... with mean MeanPeriod.
func (s *ThreadSampler) drawPeriod() uint64 {
	if s.config.MeanPeriod == 1 {
		return 1
	}
	u := (float64(s.rand.Uint64()>>11) + 0.5) / (1 << 53)
	return 1 + uint64(math.Log(u)/math.Log1p(-1/s.config.MeanPeriod))
}

// Counts says what was done so far.
func (s *ThreadSampler) Counts() ThreadSamplerCounts {
	c := s.counts
	c.Touches = s.touches
	return c
}

// Err is ErrTooManyBlocks once samples have been open for more blocks than can
// be numbered; they are not followed from then on.
func (s *ThreadSampler) Err() error { return s.err }

// Add runs the next accesses of the stream through the sampler and calls f
// with each sample that they finish. f must not keep the sample.
func (s *ThreadSampler) Add(accesses []model.Access, f func(*ThreadSample)) {
	n := -1 // number of the thread of the access before
	for i := range accesses {
		a := &accesses[i]
		if n < 0 || a.Thread != accesses[i-1].Thread {
			n = s.numberOf(a.Thread)
			s.epoch++
		}
		b, last := s.gran.Span(a)
		for ; ; b++ {
			s.touches++
			s.clock[n]++
			if len(s.open) > 0 {
				s.counts.Analyzed++
				if !s.changesNothing(b, a.Op == model.Store) {
					s.analyze(a, n, b, f)
				}
			}
			if s.untilNext--; s.untilNext == 0 {
				s.untilNext = s.drawPeriod()
				s.prune(f)
				s.take(a, n, b)
			}
			if b == last {
				break
			}
		}
	}
}

// changesNothing reports whether the thread that runs has touched the block in
// this epoch, and notes that it has now. An open sample of the block would then
// have ended, and the others have it in their sets: only writes of other
// threads take it out.
func (s *ThreadSampler) changesNothing(b uint64, write bool) bool {
	x := &s.seen[hashBlock(b)%numSeen]
	known := x.block == b && x.epoch == s.epoch
	if known && (x.wrote || !write) {
		return true
	}
	*x = seenBlock{b, s.epoch, write}
	return false
}

// Idle is how many of the next touches the sampler would only count.
func (s *ThreadSampler) Idle() uint64 {
	if len(s.open) > 0 {
		return 0
	}
	return s.untilNext - 1
}

// Skip counts touches that went by unseen, at most Idle.
func (s *ThreadSampler) Skip(touches uint64) error {
	if touches > s.Idle() {
		return fmt.Errorf("sample threads: %d touches skipped, at most %d may be", touches, s.Idle())
	}
	s.touches += touches
	s.untilNext -= touches
	return nil
}

func (s *ThreadSampler) numberOf(thread int32) int {
	n, ok := s.number[thread]
	if !ok {
		n = len(s.clock)
		s.number[thread] = n
		s.clock = append(s.clock, 0)
	}
	return n
}

// Sync says that the threads have synchronised, at a barrier or the like:
// private stacks in Parallel mode then learn of each other's writes. It has no
// effect in other modes.
func (s *ThreadSampler) Sync(f func(*ThreadSample)) {
	if s.config.Shared || !s.config.Parallel {
		return
	}
	s.epoch++
	s.keep(func(x *openSample) bool {
		if x.mergeWrites() {
			return true
		}
		s.finish(x, model.Invalidated, nil, f)
		return false
	})
}

// Finish says that the stream has ended: open samples become Censored.
func (s *ThreadSampler) Finish(f func(*ThreadSample)) {
	s.keep(func(x *openSample) bool {
		if s.mergeAll(x) {
			s.finish(x, model.Censored, nil, f)
		} else {
			s.finish(x, model.Invalidated, nil, f)
		}
		return false
	})
}

func (s *ThreadSampler) stackClock(thread int) uint64 {
	if s.config.Shared {
		return s.touches
	}
	return s.clock[thread]
}

// take opens a sample.
func (s *ThreadSampler) take(a *model.Access, thread int, b uint64) {
	s.epoch++
	x := &openSample{}
	if n := len(s.free); n > 0 {
		x, s.free = s.free[n-1], s.free[:n-1]
	}
	x.ThreadSample = ThreadSample{Block: b, Thread: a.Thread, PC: a.PC, Op: a.Op, Kind: model.Censored}
	x.owner, x.start, x.holes = thread, s.stackClock(thread), 0
	if s.stacks != nil {
		if len(s.open) == 0 {
			s.stacks.trim()
		}
		if err := s.stacks.take(x, a.Op == model.Store); err != nil {
			s.fail(err)
			s.stacks.forget(x)
			return
		}
	}
	s.open = append(s.open, x)
	s.counts.Samples++
	s.counts.MaxOpen = max(s.counts.MaxOpen, len(s.open))
}

// keep drops the open samples for which f is false; the others stay in order.
func (s *ThreadSampler) keep(f func(*openSample) bool) {
	kept := s.open[:0]
	for _, x := range s.open {
		if f(x) {
			kept = append(kept, x)
		}
	}
	clear(s.open[len(kept):])
	s.open = kept
}

// analyze shows a touch to the open samples.
func (s *ThreadSampler) analyze(a *model.Access, thread int, b uint64, f func(*ThreadSample)) {
	if s.stacks == nil {
		s.analyzeSets(a, thread, b, f)
		return
	}
	ended := s.stacks.ended(thread, b, a.Op == model.Store)
	for _, x := range ended {
		kind := model.Reuse
		if !s.config.Shared && x.owner != thread {
			kind = model.Invalidated
		}
		s.finish(x, kind, a, f)
	}
	if len(ended) > 0 {
		s.keep(func(x *openSample) bool { return x.Kind == model.Censored })
	}
	s.fail(s.stacks.touch(thread, b, a.Op == model.Store))
}

func (s *ThreadSampler) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// distance is the stack distance that an open sample has reached.
func (s *ThreadSampler) distance(x *openSample) uint64 {
	if s.stacks != nil {
		return s.stacks.above(x)
	}
	return x.set.len() + x.holes
}

// prune gives up the oldest sample if its distance is already among the
// longest: else one block that is never touched again would keep the sampler
// at work for good.
func (s *ThreadSampler) prune(f func(*ThreadSample)) {
	if s.config.PruneAfter == 0 || len(s.open) == 0 {
		return
	}
	x := s.open[0]
	kind := model.Pruned
	if !s.mergeAll(x) {
		kind = model.Invalidated
	} else {
		n, below := s.past.below(s.distance(x))
		if n < uint64(s.config.PruneAfter) || float64(below) < s.config.PruneQuantile*float64(n) {
			return
		}
	}
	s.finish(x, kind, nil, f)
	s.open[0] = nil
	s.keep(func(x *openSample) bool { return x != nil })
}

// finish reports a sample. For the pruning of later ones a pruned sample counts
// as longer than all others. Were it left out, or counted with the distance it
// had reached, the threshold would follow the pruning down (measured: 10 % of
// the samples pruned instead of 1 %). An invalidated one says nothing of how
// long distances are.
func (s *ThreadSampler) finish(x *openSample, kind model.Kind, end *model.Access, f func(*ThreadSample)) {
	x.Kind = kind
	x.Dist = s.distance(x)
	x.Time = s.stackClock(x.owner) - x.start
	if end != nil && (kind == model.Reuse || !s.config.Parallel) {
		x.EndThread, x.EndPC = end.Thread, end.PC
	}
	switch kind {
	case model.Reuse:
		s.past.add(x.Dist)
	case model.Pruned:
		s.past.add(model.Infinite)
	}
	f(&x.ThreadSample)
	if s.stacks != nil {
		s.stacks.forget(x)
	}
	x.set.reset()
	for i := range x.others {
		x.others[i].reset()
	}
	s.free = append(s.free, x)
}
