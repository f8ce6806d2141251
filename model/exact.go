package model

import (
	"math"
	"sort"
)

// Exact is the exact analysis of an access stream on one LRU stack that all
// threads share: reuse times, stack distances and footprint, counted for each
// block an access overlaps.
//
// An access that overlaps k blocks touches them one after the other, the
// lowest first, and counts k times in every total; reuse times count touches.
// Memory is that of an Olken; the stream is not kept. An Exact is for one
// goroutine; see ParallelExact for more of them.
type Exact struct {
	ExactCounts
	olken  *Olken
	split  splitter
	blocks [exactChunk]uint64
	runs   [exactChunk]uint8
	dists  [exactChunk]uint64
	times  [exactChunk]uint64
}

// ExactCounts is what an exact analysis has found so far.
type ExactCounts struct {
	gran Granularity
	time tally
	dist [2]tally // [1] for stores, [0] for all else
	// For a block's first touch, the number of touches up to and including it.
	first   tally
	windows windowTally       // of reuses
	ops     [Store + 1]uint64 // accesses by Op
}

func newExactCounts(blockBytes int, bins *Bins) (ExactCounts, error) {
	g, err := NewGranularity(blockBytes)
	if err != nil {
		return ExactCounts{}, err
	}
	c := ExactCounts{gran: g, time: newTally(bins), first: newTally(bins), windows: newWindowTally(bins)}
	for op := range c.dist {
		c.dist[op] = newTally(bins)
	}
	return c, nil
}

// exactChunk is the number of touches that are processed at once.
const exactChunk = 1024

// NewExact returns an analysis with blocks of the given number of bytes, a
// power of two, whose histograms have the given bins.
func NewExact(blockBytes int, bins *Bins) (*Exact, error) {
	c, err := newExactCounts(blockBytes, bins)
	if err != nil {
		return nil, err
	}
	return &Exact{ExactCounts: c, olken: NewOlken()}, nil
}

// Add analyses the next accesses of the stream. The only error is
// ErrTooManyBlocks, after which the results are those of a part of the stream.
func (e *Exact) Add(accesses []Access) error {
	for len(accesses) > 0 {
		var n int
		n, _, accesses = e.split.fill(e.gran, accesses, e.blocks[:], e.runs[:], math.MaxInt)
		if err := e.touch(e.blocks[:n], e.runs[:n]); err != nil {
			return err
		}
	}
	e.split.counted(&e.ExactCounts)
	return nil
}

// Touches is a part of a stream, cut into touches of single blocks. Touches of
// one block that follow each other are one run: all but the first have a stack
// distance of 0 and a reuse time of 1.
type Touches struct {
	Blocks []uint64
	// Runs has of each run the direction of its first touch, 1 for a store and
	// 0 for all else, and in the upper bits the number of touches after it, up
	// to 63.
	Runs    []uint8
	Repeats [2]uint64         // touches but the first of each run; [1] stores, [0] all else
	Ops     [Store + 1]uint64 // the accesses that these are, by Op
}

// AddTouches is Add for accesses that were cut into touches of blocks of the
// same size.
func (e *Exact) AddTouches(t *Touches) error {
	e.ExactCounts.repeated(t)
	for at := 0; at < len(t.Blocks); at += exactChunk {
		end := min(at+exactChunk, len(t.Blocks))
		if err := e.touch(t.Blocks[at:end], t.Runs[at:end]); err != nil {
			return err
		}
	}
	return nil
}

// repeated counts what is known without the blocks.
func (c *ExactCounts) repeated(t *Touches) {
	for op, n := range t.Ops {
		c.ops[op] += n
	}
	for store, n := range t.Repeats {
		c.dist[store].small[0] += n
		c.time.small[1] += n
		c.windows.small[1] += n
	}
}

// touch analyses up to exactChunk runs.
func (e *Exact) touch(blocks []uint64, runs []uint8) error {
	n := len(blocks)
	before := e.olken.Accesses()
	if err := e.olken.touch(blocks, runs, e.dists[:n], e.times[:n]); err != nil {
		return err
	}
	e.tally(runs, e.dists[:n], e.times[:n], before)
	return nil
}

// tally counts the first touches of runs, before which there were so many.
func (c *ExactCounts) tally(runs []uint8, dists, times []uint64, before uint64) {
	for i, d := range dists {
		run, t := runs[i], times[i]
		store := run & 1
		if t < smallValues {
			c.smallReuse(store, t, d)
		} else if d == Infinite {
			c.cold(store, before+1)
		} else {
			c.reuse(store, t, d)
		}
		before += uint64(run>>1) + 1
	}
}

// smallReuse is reuse after fewer than smallValues touches, as most are. The distance is below the time.
func (c *ExactCounts) smallReuse(store uint8, time, dist uint64) {
	c.dist[store].small[dist%smallValues]++
	c.time.small[time%smallValues]++
	c.windows.small[time%smallValues] += dist + 1
}

// reuse counts a touch of a block that was touched before.
func (c *ExactCounts) reuse(store uint8, time, dist uint64) {
	i, k := c.dist[store].bins.Index(dist), c.windows.bins.Index(time)
	c.dist[store].addTo(i, dist)
	c.time.addTo(k, time)
	c.windows.addTo(k, time, dist+1)
}

// cold counts a block's first touch, which is the n-th of all touches.
func (c *ExactCounts) cold(store uint8, n uint64) {
	c.dist[store].cold++
	c.time.cold++
	c.first.add(n)
}

// Accesses is the number of accesses added. Loads and Stores are those of
// known direction.
func (c *ExactCounts) Accesses() uint64 { return c.ops[OpUnknown] + c.ops[Load] + c.ops[Store] }
func (c *ExactCounts) Loads() uint64    { return c.ops[Load] }
func (c *ExactCounts) Stores() uint64   { return c.ops[Store] }

// BlockBytes is the size of a block.
func (c *ExactCounts) BlockBytes() int { return c.gran.Bytes() }

// Times is the histogram of reuse times, in touches, one entry a touch.
func (c *ExactCounts) Times() *Hist { return tallied(&c.time) }

// Distances is the histogram of stack distances, in blocks, one entry a touch.
func (c *ExactCounts) Distances() *Hist { return tallied(&c.dist[0], &c.dist[1]) }

// LoadDistances and StoreDistances are the parts of Distances that are due to
// loads and to stores, on the stack that both share. An access of unknown
// direction is taken as a load.
func (c *ExactCounts) LoadDistances() *Hist  { return tallied(&c.dist[0]) }
func (c *ExactCounts) StoreDistances() *Hist { return tallied(&c.dist[1]) }

// add adds what o has found in another part of the stream, with the same
// blocks and bins.
func (c *ExactCounts) add(o *ExactCounts) {
	c.time.merge(&o.time)
	for op := range c.dist {
		c.dist[op].merge(&o.dist[op])
	}
	c.first.merge(&o.first)
	c.windows.merge(&o.windows)
	for op, n := range o.ops {
		c.ops[op] += n
	}
}

// Touches is the number of blocks touched, repetitions included: Accesses
// plus one for each block boundary that an access crosses.
func (e *Exact) Touches() uint64 { return e.olken.Accesses() }

// Blocks is the number of distinct blocks touched.
func (e *Exact) Blocks() uint64 { return e.olken.Blocks() }

// Bytes is the memory held for blocks, in bytes.
func (e *Exact) Bytes() uint64 { return e.olken.Bytes() }

// FootprintPoint is the mean number of distinct blocks in a window.
type FootprintPoint struct {
	Window uint64  // touches
	Blocks float64 // mean over all windows of this length
}

// Footprint is the average footprint fp(w) at each lower bin edge w from 1 to
// the length of the stream, and at the length itself. It is exact, by Xiang et
// al. (PACT 2011, equation 3) in the form
//
//	fp(w) = m - [sum_i (f_i-w)^+ + sum_i (l_i-w)^+ + sum_t (t-w)^+ n_t] / (n-w+1)
//
// for m blocks with first and last touches f_i from the front and l_i from the
// back of n touches, and n_t reuses of time t: each term counts the windows of
// w that fit into a gap between two touches of one block.
func (e *Exact) Footprint() []FootprintPoint {
	e.olken.settle()
	return e.footprint(&e.olken.order)
}

func (c *ExactCounts) footprint(o *timedOrder) []FootprintPoint {
	n, m := o.elapsed(), float64(o.live)
	if n == 0 {
		return nil
	}
	bins := c.first.bins
	last := newTally(bins)
	o.each(func(p uint32) { last.add(n - o.at(p)) })
	excess := make([]float64, bins.Len())
	for _, t := range []*tally{&c.first, &last, &c.time} {
		t.addExcess(excess)
	}
	var fp []FootprintPoint
	for i := range excess {
		w := bins.Lo(i)
		if w == 0 || w >= n {
			continue
		}
		// At edges a sum of (v-w)+ is known without an assumption on how
		// values lie in bins. Rounding must not make it fall below 1.
		fp = append(fp, FootprintPoint{w, max(1, m-excess[i]/float64(n-w+1))})
	}
	return append(fp, FootprintPoint{n, m})
}

// WindowGap is how far the footprint theory is from being right for this
// stream. It needs windows that end in a reuse to touch as many blocks, rfp(l),
// as all windows of their length, fp(l) (Ding & Xiang, theorem 1); the gap is
// the mean of |rfp(l) - fp(l)| / fp(l) over all reuses, taken bin by bin: 0
// where the theory is exact, or where nothing is reused.
func (e *Exact) WindowGap() float64 { return e.windowGap(e.Footprint()) }

func (c *ExactCounts) windowGap(fp []FootprintPoint) float64 {
	n, length := make([]float64, len(c.windows.bin)), make([]float64, len(c.windows.bin))
	c.time.each(func(i int, count uint64, sum float64) { n[i], length[i] = float64(count), sum })
	var gap, reuses float64
	c.windows.each(func(i int, sum float64) {
		if n[i] == 0 {
			return
		}
		all := footprintAt(fp, length[i]/n[i])
		gap += n[i] * math.Abs(sum/n[i]-all) / all
		reuses += n[i]
	})
	if reuses == 0 {
		return 0
	}
	return gap / reuses
}

// footprintAt is the footprint of a window of w touches, between points by a
// straight line.
func footprintAt(points []FootprintPoint, w float64) float64 {
	i := sort.Search(len(points), func(i int) bool { return float64(points[i].Window) >= w })
	if i == len(points) {
		return points[i-1].Blocks
	}
	b := points[i]
	if i == 0 || float64(b.Window) == w {
		return b.Blocks
	}
	a := points[i-1]
	return a.Blocks + (b.Blocks-a.Blocks)*(w-float64(a.Window))/float64(b.Window-a.Window)
}
