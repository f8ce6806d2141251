package exact

import (
	"math"
	"sort"

	"github.com/rdx-profiler/rdx/model"
)

// Analysis is the exact analysis of an access stream on one LRU stack that all
// threads share: reuse times, stack distances and footprint, counted for each
// block an access overlaps.
//
// An access that overlaps k blocks touches them one after the other, the
// lowest first, and counts k times in every total; reuse times count touches.
// Memory is that of an Olken; the stream is not kept. An Analysis is for one
// goroutine; see Parallel for more of them.
type Analysis struct {
	Counts
	olken  *Olken
	split  splitter
	blocks [exactChunk]uint64
	runs   [exactChunk]uint8
	dists  [exactChunk]uint64
	times  [exactChunk]uint64
}

// Counts is what an exact analysis has found so far.
type Counts struct {
	gran model.Granularity
	time tally
	dist [2]tally // [1] for stores, [0] for all else
	// For a block's first touch, the number of touches up to and including it.
	first   tally
	windows windowTally             // of reuses
	ops     [model.Store + 1]uint64 // accesses by Op
}

func newCounts(blockBytes int, bins *model.Bins) (Counts, error) {
	g, err := model.NewGranularity(blockBytes)
	if err != nil {
		return Counts{}, err
	}
	c := Counts{gran: g, time: newTally(bins), first: newTally(bins), windows: newWindowTally(bins)}
	for op := range c.dist {
		c.dist[op] = newTally(bins)
	}
	return c, nil
}

// exactChunk is the number of touches that are processed at once.
const exactChunk = 1024

// New returns an analysis with blocks of the given number of bytes, a
// power of two, whose histograms have the given bins.
func New(blockBytes int, bins *model.Bins) (*Analysis, error) {
	c, err := newCounts(blockBytes, bins)
	if err != nil {
		return nil, err
	}
	return &Analysis{Counts: c, olken: NewOlken()}, nil
}

// Add analyses the next accesses of the stream. The only error is
// ErrTooManyBlocks, after which the results are those of a part of the stream.
func (e *Analysis) Add(accesses []model.Access) error {
	for len(accesses) > 0 {
		var n int
		n, _, accesses = e.split.fill(e.gran, accesses, e.blocks[:], e.runs[:], math.MaxInt)
		if err := e.touch(e.blocks[:n], e.runs[:n]); err != nil {
			return err
		}
	}
	e.split.counted(&e.Counts)
	return nil
}

// AddTouches is Add for accesses that were cut into touches of blocks of the
// same size.
func (e *Analysis) AddTouches(t *model.Touches) error {
	e.Counts.repeated(t)
	for at := 0; at < len(t.Blocks); at += exactChunk {
		end := min(at+exactChunk, len(t.Blocks))
		if err := e.touch(t.Blocks[at:end], t.Runs[at:end]); err != nil {
			return err
		}
	}
	return nil
}

// repeated counts what is known without the blocks.
func (c *Counts) repeated(t *model.Touches) {
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
func (e *Analysis) touch(blocks []uint64, runs []uint8) error {
	n := len(blocks)
	before := e.olken.Accesses()
	if err := e.olken.touch(blocks, runs, e.dists[:n], e.times[:n]); err != nil {
		return err
	}
	e.tally(runs, e.dists[:n], e.times[:n], before)
	return nil
}

// tally counts the first touches of runs, before which there were so many.
func (c *Counts) tally(runs []uint8, dists, times []uint64, before uint64) {
	for i, d := range dists {
		run, t := runs[i], times[i]
		store := run & 1
		if t < smallValues {
			c.smallReuse(store, t, d)
		} else if d == model.Infinite {
			c.cold(store, before+1)
		} else {
			c.reuse(store, t, d)
		}
		before += uint64(run>>1) + 1
	}
}

// smallReuse is reuse after fewer than smallValues touches, as most are. The distance is below the time.
func (c *Counts) smallReuse(store uint8, time, dist uint64) {
	c.dist[store].small[dist%smallValues]++
	c.time.small[time%smallValues]++
	c.windows.small[time%smallValues] += dist + 1
}

// reuse counts a touch of a block that was touched before.
func (c *Counts) reuse(store uint8, time, dist uint64) {
	i, k := c.dist[store].bins.Index(dist), c.windows.bins.Index(time)
	c.dist[store].addTo(i, dist)
	c.time.addTo(k, time)
	c.windows.addTo(k, time, dist+1)
}

// cold counts a block's first touch, which is the n-th of all touches.
func (c *Counts) cold(store uint8, n uint64) {
	c.dist[store].cold++
	c.time.cold++
	c.first.add(n)
}

// Accesses is the number of accesses added. Loads and Stores are those of
// known direction.
func (c *Counts) Accesses() uint64 {
	return c.ops[model.OpUnknown] + c.ops[model.Load] + c.ops[model.Store]
}
func (c *Counts) Loads() uint64  { return c.ops[model.Load] }
func (c *Counts) Stores() uint64 { return c.ops[model.Store] }

// BlockBytes is the size of a block.
func (c *Counts) BlockBytes() int { return c.gran.Bytes() }

// Times is the histogram of reuse times, in touches, one entry a touch.
func (c *Counts) Times() *model.Hist { return tallied(&c.time) }

// Distances is the histogram of stack distances, in blocks, one entry a touch.
func (c *Counts) Distances() *model.Hist { return tallied(&c.dist[0], &c.dist[1]) }

// LoadDistances and StoreDistances are the parts of Distances that are due to
// loads and to stores, on the stack that both share. An access of unknown
// direction is taken as a load.
func (c *Counts) LoadDistances() *model.Hist  { return tallied(&c.dist[0]) }
func (c *Counts) StoreDistances() *model.Hist { return tallied(&c.dist[1]) }

// add adds what o has found in another part of the stream, with the same
// blocks and bins.
func (c *Counts) add(o *Counts) {
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
func (e *Analysis) Touches() uint64 { return e.olken.Accesses() }

// Blocks is the number of distinct blocks touched.
func (e *Analysis) Blocks() uint64 { return e.olken.Blocks() }

// Bytes is the memory held for blocks, in bytes.
func (e *Analysis) Bytes() uint64 { return e.olken.Bytes() }

// Footprint is the average footprint fp(w) at each lower bin edge w from 1 to
// the length of the stream, and at the length itself. It is exact, by Xiang et
// al. (PACT 2011, equation 3) in the form
//
//	fp(w) = m - [sum_i (f_i-w)^+ + sum_i (l_i-w)^+ + sum_t (t-w)^+ n_t] / (n-w+1)
//
// for m blocks with first and last touches f_i from the front and l_i from the
// back of n touches, and n_t reuses of time t: each term counts the windows of
// w that fit into a gap between two touches of one block.
func (e *Analysis) Footprint() []model.FootprintPoint {
	e.olken.settle()
	return e.footprint(&e.olken.order)
}

func (c *Counts) footprint(o *timedOrder) []model.FootprintPoint {
	n := o.elapsed()
	last := newTally(c.first.bins)
	o.each(func(p uint32) { last.add(n - o.at(p)) })
	return c.footprintOf(n, uint64(o.live), &last)
}

// footprintOf is the footprint of n touches of so many blocks; last has of each the touches from its last one on.
func (c *Counts) footprintOf(n, blocks uint64, last *tally) []model.FootprintPoint {
	if n == 0 {
		return nil
	}
	bins, m := c.first.bins, float64(blocks)
	excess := make([]float64, bins.Len())
	for _, t := range []*tally{&c.first, last, &c.time} {
		t.addExcess(excess)
	}
	var fp []model.FootprintPoint
	for i := range excess {
		w := bins.Lo(i)
		if w == 0 || w >= n {
			continue
		}
		// At edges a sum of (v-w)+ is known without an assumption on how
		// values lie in bins. Rounding must not make it fall below 1.
		fp = append(fp, model.FootprintPoint{Window: w, Blocks: max(1, m-excess[i]/float64(n-w+1))})
	}
	return append(fp, model.FootprintPoint{Window: n, Blocks: m})
}

// WindowError is how far the footprint theory is from being right for this
// stream. It needs windows that end in a reuse to touch as many blocks, rfp(l),
// as all windows of their length, fp(l) (Ding & Xiang, theorem 1); the gap is
// the mean of |rfp(l) - fp(l)| / fp(l) over all reuses, taken bin by bin: 0
// where the theory is exact, or where nothing is reused.
func (e *Analysis) WindowError() float64 { return e.windowError(e.Footprint()) }

func (c *Counts) windowError(fp []model.FootprintPoint) float64 {
	n, length := make([]float64, len(c.windows.bin)), make([]float64, len(c.windows.bin))
	c.time.each(func(i int, count uint64, sum float64) { n[i], length[i] = float64(count), sum })
	var difference, reuses float64
	c.windows.each(func(i int, sum float64) {
		if n[i] == 0 {
			return
		}
		all := footprintAt(fp, length[i]/n[i])
		difference += n[i] * math.Abs(sum/n[i]-all) / all
		reuses += n[i]
	})
	if reuses == 0 {
		return 0
	}
	return difference / reuses
}

// footprintAt is the footprint of a window of w touches, between points by a
// straight line.
func footprintAt(points []model.FootprintPoint, w float64) float64 {
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
