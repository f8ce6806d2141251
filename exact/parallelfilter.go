package exact

import (
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// pieceFilter keeps the top of the stack for a piece that is merged touch by touch, see vectorStack: of it only what the
// filter does not find is merged. It is empty at the beginning of a piece and at its end, so that pieces need not go
// through it in their order; the few touches that it would have found otherwise are merged instead. Its positions are numbers of
// touches of the piece before. There is one for each goroutine.
type pieceFilter struct {
	vectorStack
	// counts is of what was found, which needs nothing of the merge. What was not found is
	// there as reuses after no time, see addTo.
	counts     Counts
	absent     [2]uint64 // touches not found; [1] stores
	dist, time [vectorChunk]uint64

	// Touches to be taken through it, on their way.
	newBlocks [vectorChunk]uint64
	newRuns   [vectorChunk]uint8
}

// filterOutput is what a pieceFilter leaves of a piece to the merge, in lists of a kind each: another processor reads them.
type filterOutput struct {
	evicted evictedList
	marks   []evictionMark
	// What was not found: the block, the lane that it got, touches of the piece before it, and misses.
	blocks  []uint64
	lanes   []uint8
	offsets []uint32
	missed  []filterMiss
}

// evictedList is what was evicted: touches of the piece before the last one, and the lane.
type evictedList struct {
	touches []uint32
	lanes   []uint8
}

// evictionMark says that blocks were evicted when so many had been missed, and how many had been evicted then.
type evictionMark struct{ misses, evicted int }

// filterMiss is whether a touch is a store, and above that how many blocks the filter held.
type filterMiss uint8

func (g *evictedList) add(evicted []evictedBlock) {
	touches, lanes := more(&g.touches, len(evicted)), more(&g.lanes, len(evicted))
	for i := range evicted {
		touches[i], lanes[i] = uint32(evicted[i].pos), evicted[i].lane
	}
}

// more makes a list longer by n, and returns those n.
func more[E any](list *[]E, n int) []E {
	at := len(*list)
	*list = slices.Grow(*list, n)[:at+n]
	return (*list)[at:]
}

// part is what was evicted from there to there.
func (g *evictedList) part(from, to int) evictedList {
	return evictedList{g.touches[from:to], g.lanes[from:to]}
}

func (t *filterOutput) clear() {
	t.evicted.touches, t.evicted.lanes, t.marks = t.evicted.touches[:0], t.evicted.lanes[:0], t.marks[:0]
	t.blocks, t.lanes, t.offsets, t.missed = t.blocks[:0], t.lanes[:0], t.offsets[:0], t.missed[:0]
}

func newPieceFilter(blockBytes int, bins *model.Bins) (*pieceFilter, error) {
	f := &pieceFilter{}
	var err error
	if f.counts, err = newCounts(blockBytes, bins); err != nil {
		return nil, err
	}
	// The table that is below is another processor's: one that is always in a cache is read ahead instead.
	f.index = &blockIndex{}
	bucket := make([]indexBucket, 1)
	for i := range f.index.shards {
		f.index.shards[i].buckets = bucket
	}
	f.clear()
	return f, nil
}

// begin makes the filter ready for a piece.
func (f *pieceFilter) begin(t *filterOutput) {
	t.clear()
	f.next = 0
}

// touch takes the next runs of a piece through the filter, at most vectorChunk.
func (f *pieceFilter) touch(t *filterOutput, blocks []uint64, runs []uint8) {
	n := len(blocks)
	dist, time := f.dist[:n], f.time[:n]
	f.vectorStack.touch(blocks, runs, dist, time)
	for from := 0; from < f.evictions; {
		// Those evicted at once.
		misses, to := f.evicted[from].misses, from+1
		for to < f.evictions && f.evicted[to].misses == misses {
			to++
		}
		t.evicted.add(f.evicted[from:to])
		t.marks = append(t.marks, evictionMark{len(t.blocks) + int(misses), len(t.evicted.touches)})
		from = to
	}
	t.blocks, t.lanes = append(t.blocks, f.blocks[:f.misses]...), append(t.lanes, f.lanes[:f.misses]...)
	offsets, missed := more(&t.offsets, f.misses), more(&t.missed, f.misses)
	for i, k := range f.missed[:f.misses] {
		offsets[i], missed[i] = uint32(time[k]), filterMiss(runs[k]&1|f.above[i]<<1)
		dist[k], time[k] = 0, 0
		f.absent[runs[k]&1]++
	}
	f.misses, f.evictions = 0, 0
	f.counts.tally(runs, dist, time, 0)
}

// end empties the filter.
func (f *pieceFilter) end(t *filterOutput) {
	f.evict(0)
	t.evicted.add(f.evicted[:f.evictions])
	f.evictions = 0
}

// whole takes a piece through the filter that was filled.
func (f *pieceFilter) whole(x *piece) {
	f.begin(&x.output)
	for at := 0; at < x.n; at += vectorChunk {
		end := min(at+vectorChunk, x.n)
		f.touch(&x.output, x.blocks[at:end], x.runs[at:end])
	}
	f.end(&x.output)
}

// addTo adds all that was counted to counts.
func (f *pieceFilter) addTo(counts *Counts) {
	c := &f.counts
	for store, n := range f.absent {
		c.dist[store].small[0] -= n
	}
	c.time.small[0], c.windows.small[0] = 0, 0
	counts.add(c)
}

// locateFiltered is locate for a piece that was taken through the filter.
func (m *merger) locateFiltered(x *piece) {
	t, index := &x.output, &m.index[0]
	x.prev = x.prev[:len(t.blocks)]
	var slots [batch]*uint32
	var hashes [batch]uint64
	marks, evicted := t.marks, 0
	readBuckets(index, hashBlocks(t.blocks[:min(batch, len(t.blocks))], &hashes))
	for at := 0; at < len(t.blocks); {
		grown := index.grown
		end := min(at+batch, len(t.blocks))
		readBuckets(index, hashBlocks(t.blocks[end:min(end+batch, len(t.blocks))], &hashes))
		blocks := t.blocks[at:end]
		n := index.findHashed(blocks, hashBlocks(blocks, &hashes), &slots)
		if index.grown != grown {
			index.lookUpAgain(&m.known)
		}
		blocks, lanes, prev := blocks[:n], t.lanes[at:at+n], x.prev[at:at+n]
		for i := 0; i < n; {
			if len(marks) > 0 && marks[0].misses == at+i {
				m.locateEvicted(x.start, t.evicted.part(evicted, marks[0].evicted))
				marks, evicted = marks[1:], marks[0].evicted
			}
			to := n
			if len(marks) > 0 {
				to = min(n, marks[0].misses-at)
			}
			for ; i < to; i++ {
				slot := slots[i%batch]
				m.known[lanes[i]%vectorBlocks] = recentSlot{blocks[i], slot}
				prev[i] = *slot
			}
		}
		at += n
	}
	m.locateEvicted(x.start, t.evicted.part(evicted, len(t.evicted.touches)))
}

func hashBlocks(blocks []uint64, hashes *[batch]uint64) []uint64 {
	for i, b := range blocks {
		hashes[i%batch] = hashBlock(b)
	}
	return hashes[:len(blocks)]
}

// countFiltered is count and tally for a piece that was located by locateFiltered.
func (m *merger) countFiltered(x *piece) {
	t := &x.output
	evicted, read := 0, min(batch, len(t.blocks))
	m.readOrder(x.prev[:read])
	for at, k := 0, 0; ; k++ {
		end := len(t.blocks)
		if k < len(t.marks) {
			end = t.marks[k].misses
		}
		for at < end {
			to := min(at+batch, end)
			ahead := min(to+batch, len(t.blocks))
			m.readOrder(x.prev[read:ahead])
			m.countMissed(x, at, to)
			at, read = to, ahead
		}
		if k == len(t.marks) {
			break
		}
		m.order.putAll(t.evicted.touches[evicted:t.marks[k].evicted], x.start)
		evicted = t.marks[k].evicted
	}
	m.order.putAll(t.evicted.touches[evicted:], x.start)
	m.order.extend(x.start+uint32(x.touches)-m.order.now, nil)
}

// countMissed counts what was not found, from there to there, at most batch. Nothing is evicted between them. Distances are found first:
// what histograms make of them cannot be foretold, and the processor would not come to the next ones meanwhile.
func (m *merger) countMissed(x *piece, from, to int) {
	t, c := &x.output, &m.missed
	var slots [batch]*uint32
	var above [batch]uint8
	var dist [batch]uint64
	offsets, missed, prev := t.offsets[from:to], t.missed[from:to], x.prev[from:to]
	for i, k := range missed {
		slots[i%batch], above[i%batch] = &prev[i], uint8(k>>1)
	}
	n := len(missed)
	m.order.live += uint32(takeSlots(&m.order, slots[:n], above[:n], dist[:n]))
	for i, p := range prev {
		offset, store, d := offsets[i], uint8(missed[i]&1), dist[i%batch]
		if p == coldPos {
			c.cold(store, x.before+uint64(offset)+1)
		} else if time := m.order.sinceAt(p, x.start+offset); time < smallValues {
			c.smallReuse(store, time, d)
		} else {
			c.reuse(store, time, d)
		}
	}
}

// readOrder is readOrder for positions.
func (m *merger) readOrder(positions []uint32) {
	var slots [batch]*uint32
	for i := range positions {
		slots[i%batch] = &positions[i]
	}
	readOrder(&m.order, &slots, len(positions))
}

// locateEvicted enters where blocks were touched last that were evicted, in a piece that starts there.
func (m *merger) locateEvicted(start uint32, evicted evictedList) {
	for i, lane := range evicted.lanes {
		*m.known[lane%vectorBlocks].slot = evicted.touches[i] + start
	}
}
