package exact

import (
	"container/heap"
	"fmt"
	"math"

	"github.com/rdx-profiler/rdx/model"
)

// Shards estimates the stack distances of a stream from a sample of its blocks
// in little memory: SHARDS of Waldspurger et al. (FAST 2015). A block is in the
// sample if its hash is below a threshold, so that all its touches are or none;
// a distance among the sampled blocks stands for one greater by the inverse of
// the rate, and a touch for as many.
//
// The rate is fixed, or falls so that the sample never exceeds a number of
// blocks. As in SHARDS-adj what the touches counted lack to those there were
// goes to distance 0: which of the few hottest blocks are in the sample is the
// main error, and those are reused at once.
//
// A Shards is for one goroutine.
type Shards struct {
	gran      model.Granularity
	split     splitter
	blocks    [exactChunk]uint64
	runs      [exactChunk]uint8
	threshold uint64  // greatest hash that is in the sample
	rate      float64 // the share of hashes that are
	max       int     // blocks in the sample at most, 0 for no limit

	order    recency
	position map[uint64]uint32 // of the blocks in the sample
	byHash   hashHeap          // them again, if there is a limit

	touches uint64
	sampled uint64 // touches
	group   [shardGroups]*model.Hist
}

// shardGroups is the number of parts of the sample whose disagreement gives
// the error.
const shardGroups = 16

// ShardsConfig says what a Shards samples: Rate of the blocks, or as many as
// keep the sample at or below Size blocks. One of them is 0.
type ShardsConfig struct {
	Rate float64
	Size int
}

// NewShards returns an estimator with blocks of the given number of bytes, a
// power of two, whose histogram has the given bins.
func NewShards(blockBytes int, bins *model.Bins, c ShardsConfig) (*Shards, error) {
	g, err := model.NewGranularity(blockBytes)
	if err != nil {
		return nil, err
	}
	s := &Shards{gran: g, max: c.Size, threshold: math.MaxUint64, rate: 1, position: map[uint64]uint32{}}
	switch {
	case c.Size == 0 && c.Rate > 0 && c.Rate <= 1:
		if c.Rate < 1 {
			s.threshold, s.rate = uint64(c.Rate*(1<<64)), c.Rate
		}
	case c.Rate == 0 && c.Size >= shardGroups && c.Size <= 1<<30:
	default:
		return nil, fmt.Errorf("shards: rate %v, size %d: want a rate above 0 and up to 1, or a size from %d to %d", c.Rate, c.Size, shardGroups, 1<<30)
	}
	s.order.reset(0, olkenSpread)
	for i := range s.group {
		s.group[i] = model.NewHist(bins)
	}
	return s, nil
}

// Add analyses the next accesses of the stream. The only error is
// ErrTooManyBlocks.
func (s *Shards) Add(accesses []model.Access) error {
	for len(accesses) > 0 {
		var n int
		n, _, accesses = s.split.fill(s.gran, accesses, s.blocks[:], s.runs[:], math.MaxInt)
		if err := s.add(s.blocks[:n], s.runs[:n]); err != nil {
			return err
		}
	}
	return nil
}

// AddTouches is Add for accesses that were cut into touches of blocks of the
// same size.
func (s *Shards) AddTouches(t *model.Touches) error {
	s.split.add(t)
	return s.add(t.Blocks, t.Runs)
}

func (s *Shards) add(blocks []uint64, runs []uint8) error {
	for i, b := range blocks {
		more := runs[i] >> 1
		s.touches += uint64(more) + 1
		h := shardHash(b)
		for range more + 1 {
			if h > s.threshold {
				break
			}
			if err := s.touch(b, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// shardHash is not hashBlock: neighbours in the sample must not be neighbours
// in tables.
func shardHash(b uint64) uint64 {
	// The finalizer of splitmix64.
	b += 0x9e3779b97f4a7c15
	b = (b ^ b>>30) * 0xbf58476d1ce4e5b9
	b = (b ^ b>>27) * 0x94d049bb133111eb
	return b ^ b>>31
}

func (s *Shards) touch(b, h uint64) error {
	if s.order.full() {
		if s.order.live > maxLive {
			return ErrTooManyBlocks
		}
		ranks := s.order.ranks()
		for b, p := range s.position {
			s.position[b] = ranks.of(p)
		}
		s.order.reset(s.order.live, olkenSpread)
	}
	s.sampled++
	group := s.group[h%shardGroups]
	p, ok := s.position[b]
	s.position[b] = s.order.now
	if ok {
		d := float64(s.order.move(p))
		group.Add(uint64(math.Round(d/s.rate)), 1/s.rate)
		return nil
	}
	s.order.push()
	group.AddKind(model.Cold, 0, 1/s.rate)
	if s.max > 0 {
		heap.Push(&s.byHash, hashedBlock{h, b})
		if len(s.byHash) > s.max {
			s.lower()
		}
	}
	return nil
}

// lower lowers the threshold until the block of the greatest hash is out.
func (s *Shards) lower() {
	h := s.byHash[0].hash
	for len(s.byHash) > 0 && s.byHash[0].hash == h {
		b := heap.Pop(&s.byHash).(hashedBlock).block
		s.order.take(s.position[b])
		s.order.live--
		delete(s.position, b)
	}
	s.threshold = h - 1
	s.rate = float64(h) / (1 << 64)
}

// Touches is the number of blocks touched, repetitions included, and Sampled
// how many of those touches were in the sample.
func (s *Shards) Touches() uint64 { return s.touches }
func (s *Shards) Sampled() uint64 { return s.sampled }

// Accesses, Loads and Stores are those of all the stream.
func (s *Shards) Accesses() uint64 {
	return s.split.count.Ops[model.OpUnknown] + s.split.count.Ops[model.Load] + s.split.count.Ops[model.Store]
}
func (s *Shards) Loads() uint64  { return s.split.count.Ops[model.Load] }
func (s *Shards) Stores() uint64 { return s.split.count.Ops[model.Store] }

// Rate is the share of the blocks that are in the sample now.
func (s *Shards) Rate() float64 { return s.rate }

// SampledBlocks is the number of blocks in the sample now, and Blocks an
// estimate of the distinct blocks of the stream.
func (s *Shards) SampledBlocks() int { return len(s.position) }
func (s *Shards) Blocks() float64    { return float64(len(s.position)) / s.rate }

// Distances estimates the histogram of stack distances, in blocks and touches.
func (s *Shards) Distances() *model.Hist { return s.without(-1) }

// without is the estimate without one of the groups; -1 leaves none out.
func (s *Shards) without(group int) *model.Hist {
	h := model.NewHist(s.group[0].Bins)
	for i, g := range s.group {
		if i != group {
			h.Merge(g) // the bins are the same
		}
	}
	if group >= 0 {
		h.Scale(float64(shardGroups) / (shardGroups - 1))
	}
	zero := h.Bins.Index(0)
	h.W[zero] = max(0, h.W[zero]+float64(s.touches)-h.Total())
	return h
}

// MissRatio is the estimated miss ratio of a fully associative LRU cache of
// the given number of blocks, and the half width of its 95 % confidence
// interval: from the disagreement of the sample's parts (jackknife) and from
// the binomial spread of the number of sampled blocks among that many.
func (s *Shards) MissRatio(blocks uint64) (ratio, plusMinus float64) {
	h := s.Distances()
	ratio = h.MissRatio(blocks)
	var sum, squares float64
	for i := range s.group {
		r := s.without(i).MissRatio(blocks)
		sum += r
		squares += r * r
	}
	variance := (squares - sum*sum/shardGroups) * (shardGroups - 1) / shardGroups
	// A distance of c blocks is seen as c +- sqrt(c (1-rate) / rate).
	c := float64(blocks)
	spread := math.Sqrt(c * (1 - s.rate) / s.rate)
	low, high := h.MissRatio(uint64(c+spread)), h.MissRatio(uint64(max(0, c-spread)))
	variance += (high - low) * (high - low) / 4
	return ratio, 1.96 * math.Sqrt(max(0, variance))
}

type hashedBlock struct{ hash, block uint64 }

// hashHeap is a heap with the greatest hash first.
type hashHeap []hashedBlock

func (h hashHeap) Len() int           { return len(h) }
func (h hashHeap) Less(i, j int) bool { return h[i].hash > h[j].hash }
func (h hashHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *hashHeap) Push(x any)        { *h = append(*h, x.(hashedBlock)) }
func (h *hashHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
