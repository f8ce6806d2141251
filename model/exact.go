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
// goroutine.
type Exact struct {
	gran  Granularity
	olken *Olken
	time  [2]tally // by isStore
	dist  [2]tally
	// For a block's first touch, the number of touches up to and including it.
	first   tally
	windows windowTally // of reuses

	ops [Store + 1]uint64 // accesses by Op

	blocks, dists, times []uint64
	store                []uint8 // by touch in blocks
}

// exactChunk is the number of touches that are processed at once.
const exactChunk = 1024

// NewExact returns an analysis with blocks of the given number of bytes, a
// power of two, whose histograms have the given bins.
func NewExact(blockBytes int, bins *Bins) (*Exact, error) {
	g, err := NewGranularity(blockBytes)
	if err != nil {
		return nil, err
	}
	e := &Exact{
		gran:    g,
		olken:   NewOlken(),
		first:   newTally(bins),
		windows: newWindowTally(bins),
		blocks:  make([]uint64, 0, exactChunk),
		dists:   make([]uint64, exactChunk),
		times:   make([]uint64, exactChunk),
		store:   make([]uint8, 0, exactChunk),
	}
	for op := range e.time {
		e.time[op], e.dist[op] = newTally(bins), newTally(bins)
	}
	return e, nil
}

// isStore maps a direction to an index: 1 for stores, 0 for all else.
func isStore(op Op) uint8 {
	if op == Store {
		return 1
	}
	return 0
}

// Add analyses the next accesses of the stream. The only error is
// ErrTooManyBlocks, after which the results are those of a part of the stream.
func (e *Exact) Add(accesses []Access) error {
	for i := range accesses {
		a := &accesses[i]
		op := isStore(a.Op)
		e.ops[min(a.Op, Store)]++
		b, last := e.gran.Span(a)
		for ; ; b++ {
			e.blocks = append(e.blocks, b)
			e.store = append(e.store, op)
			if len(e.blocks) == exactChunk {
				if err := e.flush(); err != nil {
					return err
				}
			}
			if b == last {
				break
			}
		}
	}
	return e.flush()
}

func (e *Exact) flush() error {
	n := len(e.blocks)
	dists, times, store := e.dists[:n], e.times[:n], e.store[:n]
	before := e.olken.Accesses()
	err := e.olken.Touch(e.blocks, dists, times)
	e.blocks, e.store = e.blocks[:0], e.store[:0]
	if err != nil {
		return err
	}
	for i, d := range dists {
		op := store[i] & 1
		e.dist[op].add(d)
		e.time[op].add(times[i])
		if d == Infinite {
			e.first.add(before + uint64(i) + 1)
			continue
		}
		e.windows.add(times[i], d)
	}
	return nil
}

// Accesses is the number of accesses added. Loads and Stores are those of
// known direction.
func (e *Exact) Accesses() uint64 { return e.ops[OpUnknown] + e.ops[Load] + e.ops[Store] }
func (e *Exact) Loads() uint64    { return e.ops[Load] }
func (e *Exact) Stores() uint64   { return e.ops[Store] }

// Touches is the number of blocks touched, repetitions included: Accesses
// plus one for each block boundary that an access crosses.
func (e *Exact) Touches() uint64 { return e.olken.Accesses() }

// Blocks is the number of distinct blocks touched.
func (e *Exact) Blocks() uint64 { return e.olken.Blocks() }

// BlockBytes is the size of a block.
func (e *Exact) BlockBytes() int { return e.gran.Bytes() }

// Times is the histogram of reuse times, in touches, one entry a touch.
func (e *Exact) Times() *Hist { return tallied(&e.time[0], &e.time[1]) }

// Distances is the histogram of stack distances, in blocks, one entry a touch.
func (e *Exact) Distances() *Hist { return tallied(&e.dist[0], &e.dist[1]) }

// LoadDistances and StoreDistances are the parts of Distances that are due to
// loads and to stores, on the stack that both share. An access of unknown
// direction is taken as a load.
func (e *Exact) LoadDistances() *Hist  { return tallied(&e.dist[0]) }
func (e *Exact) StoreDistances() *Hist { return tallied(&e.dist[1]) }

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
	n, m := e.Touches(), float64(e.Blocks())
	if n == 0 {
		return nil
	}
	bins := e.first.bins
	last := newTally(bins)
	e.olken.LastAccesses(func(before uint64) { last.add(n - before) })
	excess := make([]float64, bins.Len())
	for _, t := range []*tally{&e.first, &last, &e.time[0], &e.time[1]} {
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
func (e *Exact) WindowGap() float64 {
	fp := e.Footprint()
	n, length := make([]float64, len(e.windows.bin)), make([]float64, len(e.windows.bin))
	for op := range e.time {
		e.time[op].each(func(i int, c uint64, sum float64) {
			n[i] += float64(c)
			length[i] += sum
		})
	}
	var gap, reuses float64
	e.windows.each(func(i int, sum float64) {
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
