package exact

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/rdx-profiler/rdx/model"
)

// merger joins pieces to the analysis of the stream before them.
type merger struct {
	counts *Counts
	config ParallelConfig
	// Blocks are cut by their hash into one table for each of a few jobs.
	index   []blockIndex
	chosen  [][]int32 // by table: the piece's first touches that are its
	order   timedOrder
	next    uint64                   // position of the first touch of the piece located next
	touched uint64                   // in the pieces counted
	known   [vectorBlocks]recentSlot // of the piece located, by lane in its filter, see vectorStack
	missed  Counts                   // of what filters did not find
	// pieceBlocks is the distinct blocks of the pieces located, added up.
	pieceBlocks uint64
	err         error // of the pieces located

	// merged is the distances that the approximate merge has found, on bins
	// fine enough for the factor to be applied at the end.
	merged [2]tally
}

// maxTables bounds how many jobs look blocks up at once: each of them passes
// over the whole list.
const maxTables = 8

// mergedBins per octave hold distances until the effective factor is known:
// it moves none by more than a four-hundredth.
const mergedBins = 256

func (m *merger) init(counts *Counts, config ParallelConfig) {
	m.counts, m.config = counts, config
	m.index = make([]blockIndex, min(max(config.Jobs/2, 1), maxTables))
	m.chosen = make([][]int32, len(m.index))
	for i := range m.index {
		m.index[i].init()
	}
	m.order.least = 2 * uint32(config.PieceTouches+maxRun)
	m.order.init()
	m.next = uint64(m.order.now)
	if config.Approximate {
		m.merged = [2]tally{newTally(model.LogBins(mergedBins)), newTally(model.LogBins(mergedBins))}
	}
}

func (m *merger) bytes() uint64 {
	n := m.order.bytes()
	for i := range m.index {
		n += m.index[i].bytes()
	}
	return n
}

// full reports whether to compact before the piece. The approximate merge has
// positions of its own, see locate.
func (m *merger) full(x *piece) bool {
	return !m.config.Approximate && m.next+uint64(x.touches) > uint64(m.order.end)
}

// compact makes room. All pieces located must have been counted.
func (m *merger) compact() {
	if m.err != nil {
		return
	}
	if m.order.live > maxLive {
		m.err = ErrTooManyBlocks
		return
	}
	m.order.compact(func(to *ranks) {
		var all sync.WaitGroup
		for part := range m.config.Jobs {
			all.Go(func() {
				for i := range m.index {
					m.index[i].renumberPart(to, part, m.config.Jobs)
				}
			})
		}
		all.Wait()
	})
	m.next = uint64(m.order.now)
}

// locate finds for each first touch of the piece where its block was touched
// last before, and enters where it is touched last now. work holds a token for
// each processor in use.
func (m *merger) locate(x *piece, work chan struct{}) {
	defer func() { x.err = m.err }()
	if m.err == nil {
		m.err = x.err
	}
	if m.err != nil {
		return
	}
	x.start = uint32(m.next)
	m.next += uint64(x.touches)
	if x.whole {
		m.locateWhole(x, work)
		return
	}
	if m.config.Approximate {
		// The position of a block is how many distinct blocks the pieces had
		// when it was touched last: those before this piece, and its rank.
		if m.pieceBlocks+uint64(len(x.first)) >= uint64(noPos) {
			m.err = fmt.Errorf("approximate merge: the pieces have more than %d blocks in all (consider: an exact merge)", noPos)
			return
		}
		x.start = uint32(m.pieceBlocks)
	}
	m.pieceBlocks += uint64(len(x.first))
	if cap(x.prev) < len(x.first) {
		x.prev = make([]uint32, len(x.first), cap(x.first))
	}
	x.prev = x.prev[:len(x.first)]
	m.eachTable(work, func(table int) { m.locateIn(table, x) })
}

// eachTable does f for all tables of the index, as many at once as work allows, by itself if that is nil.
func (m *merger) eachTable(work chan struct{}, f func(table int)) {
	if work == nil {
		for i := range m.index {
			f(i)
		}
		return
	}
	var all sync.WaitGroup
	for i := range m.index {
		all.Go(func() {
			work <- struct{}{}
			f(i)
			<-work
		})
	}
	all.Wait()
}

func (m *merger) locateIn(table int, x *piece) {
	tables := uint64(len(m.index))
	chosen := m.chosen[table][:0]
	for i := range x.first {
		// The index uses the hash's ends.
		if tables == 1 || hashBlock(x.first[i].block)>>20%tables == uint64(table) {
			chosen = append(chosen, int32(i))
		}
	}
	m.chosen[table] = chosen
	block := func(i int) uint64 { return x.first[chosen[i]].block }
	eachSlot(&m.index[table], len(chosen), block, func(i int, slot *uint32) {
		k := chosen[i]
		f := &x.first[k]
		x.prev[k] = *slot
		if m.config.Approximate {
			rank, _ := slices.BinarySearch(x.last, f.last)
			*slot = x.start + uint32(rank) + 1
		} else {
			*slot = x.start + f.last
		}
	})
}

// count counts the first touches of a piece that was located. It may run while
// later ones are located.
func (m *merger) count(x *piece) {
	if x.err != nil {
		return
	}
	elapsed := m.touched
	m.touched += uint64(x.touches)
	if x.whole {
		m.countWhole(x, elapsed)
		return
	}
	for i := range x.first {
		f, p := &x.first[i], x.prev[i]
		store := f.store
		if p == coldPos {
			m.order.live++
			m.counts.cold(store, elapsed+uint64(f.offset)+1)
			continue
		}
		if m.config.Approximate {
			// Formula 1: blocks after it in its piece, those of the pieces
			// between, and those before it in this one.
			m.merged[store].add(uint64(x.start-p) + uint64(i))
			continue
		}
		time := m.order.since(p) + uint64(f.offset)
		m.counts.reuse(store, time, uint64(m.order.take(p))+uint64(i))
	}
	if !m.config.Approximate {
		m.order.extend(uint32(x.touches), x.last)
	}
}

// finish adds what the approximate merge has found.
func (m *merger) finish() {
	if !m.config.Approximate {
		return
	}
	factor := 1.0
	if m.config.Factor && m.pieceBlocks > 0 {
		factor = float64(m.order.live) / float64(m.pieceBlocks)
	}
	m.counts.addMerged(&m.merged, uint64(m.order.live), factor)
}

// addMerged applies the effective factor to the distances of the approximate
// merge: a distance above the number of blocks of the stream, which cannot be,
// is multiplied by blocks/(blocks of each piece, added up).
func (c *Counts) addMerged(merged *[2]tally, streamBlocks uint64, factor float64) {
	blocks := float64(streamBlocks)
	for store := range merged {
		t := &c.dist[store]
		merged[store].each(func(_ int, n uint64, sum float64) {
			d := sum / float64(n)
			if d > blocks {
				d *= factor
			}
			t.addMany(uint64(math.Round(d)), n)
		})
	}
}
