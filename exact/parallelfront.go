package exact

import (
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// pieceFront keeps the top of the stack for a piece that is merged touch by touch, see stackTop: of it only what the
// front does not find is merged. It is empty at the beginning of a piece and at its end, so that pieces need not go
// through it in their order; the few touches that it would have found otherwise are merged instead. Its positions are numbers of
// touches of the piece before. There is one for each goroutine.
type pieceFront struct {
	stackTop
	// counts is of what was found, which needs nothing of the merge. What was not found is
	// there as reuses after no time, see addTo.
	counts     Counts
	absent     [2]uint64 // touches not found; [1] stores
	dist, time [topChunk]uint64

	// Touches to be taken through it, on their way.
	newBlocks [topChunk]uint64
	newRuns   [topChunk]uint8
}

// frontTop is what a pieceFront leaves of a piece to the merge, in lists of a kind each: another processor reads them.
type frontTop struct {
	given givenTop
	gave  []gaveTop
	// What was not found: the block, the place that it got, touches of the piece before it, and misses.
	blocks  []uint64
	places  []uint8
	offsets []uint32
	missed  []topMiss
}

// givenTop is what was given back: touches of the piece before the last one, and the place.
type givenTop struct {
	touches []uint32
	places  []uint8
}

// gaveTop says that blocks were given back when so many had been missed, and how many had been given back then.
type gaveTop struct{ misses, given int }

// topMiss is whether a touch is a store, and above that how many blocks the front held.
type topMiss uint8

func (g *givenTop) add(given []givenBlock) {
	touches, places := more(&g.touches, len(given)), more(&g.places, len(given))
	for i := range given {
		touches[i], places[i] = uint32(given[i].pos), given[i].place
	}
}

// more makes a list longer by n, and returns those n.
func more[E any](list *[]E, n int) []E {
	at := len(*list)
	*list = slices.Grow(*list, n)[:at+n]
	return (*list)[at:]
}

// part is what was given back from there to there.
func (g *givenTop) part(from, to int) givenTop {
	return givenTop{g.touches[from:to], g.places[from:to]}
}

func (t *frontTop) clear() {
	t.given.touches, t.given.places, t.gave = t.given.touches[:0], t.given.places[:0], t.gave[:0]
	t.blocks, t.places, t.offsets, t.missed = t.blocks[:0], t.places[:0], t.offsets[:0], t.missed[:0]
}

func newPieceFront(blockBytes int, bins *model.Bins) (*pieceFront, error) {
	f := &pieceFront{}
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

// begin makes the front ready for a piece.
func (f *pieceFront) begin(t *frontTop) {
	t.clear()
	f.next = 0
}

// touch takes the next runs of a piece through the front, at most topChunk.
func (f *pieceFront) touch(t *frontTop, blocks []uint64, runs []uint8) {
	n := len(blocks)
	dist, time := f.dist[:n], f.time[:n]
	f.stackTop.touch(blocks, runs, dist, time)
	for from := 0; from < f.gives; {
		// Those given back at once.
		misses, to := f.given[from].misses, from+1
		for to < f.gives && f.given[to].misses == misses {
			to++
		}
		t.given.add(f.given[from:to])
		t.gave = append(t.gave, gaveTop{len(t.blocks) + int(misses), len(t.given.touches)})
		from = to
	}
	t.blocks, t.places = append(t.blocks, f.blocks[:f.misses]...), append(t.places, f.places[:f.misses]...)
	offsets, missed := more(&t.offsets, f.misses), more(&t.missed, f.misses)
	for i, k := range f.missed[:f.misses] {
		offsets[i], missed[i] = uint32(time[k]), topMiss(runs[k]&1|f.above[i]<<1)
		dist[k], time[k] = 0, 0
		f.absent[runs[k]&1]++
	}
	f.misses, f.gives = 0, 0
	f.counts.tally(runs, dist, time, 0)
}

// end empties the front.
func (f *pieceFront) end(t *frontTop) {
	f.giveBack(0)
	t.given.add(f.given[:f.gives])
	f.gives = 0
}

// whole takes a piece through the front that was filled.
func (f *pieceFront) whole(x *piece) {
	f.begin(&x.top)
	for at := 0; at < x.n; at += topChunk {
		end := min(at+topChunk, x.n)
		f.touch(&x.top, x.blocks[at:end], x.runs[at:end])
	}
	f.end(&x.top)
}

// addTo adds all that was counted to counts.
func (f *pieceFront) addTo(counts *Counts) {
	c := &f.counts
	for store, n := range f.absent {
		c.dist[store].small[0] -= n
	}
	c.time.small[0], c.windows.small[0] = 0, 0
	counts.add(c)
}

// locateTop is locate for a piece that was taken through the front.
func (m *merger) locateTop(x *piece) {
	t, index := &x.top, &m.index[0]
	x.prev = x.prev[:len(t.blocks)]
	var slots [batch]*uint32
	var hashes [batch]uint64
	gave, given := t.gave, 0
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
		blocks, places, prev := blocks[:n], t.places[at:at+n], x.prev[at:at+n]
		for i := 0; i < n; {
			if len(gave) > 0 && gave[0].misses == at+i {
				m.locateGiven(x.start, t.given.part(given, gave[0].given))
				gave, given = gave[1:], gave[0].given
			}
			to := n
			if len(gave) > 0 {
				to = min(n, gave[0].misses-at)
			}
			for ; i < to; i++ {
				slot := slots[i%batch]
				m.known[places[i]%topBlocks] = recentSlot{blocks[i], slot}
				prev[i] = *slot
			}
		}
		at += n
	}
	m.locateGiven(x.start, t.given.part(given, len(t.given.touches)))
}

func hashBlocks(blocks []uint64, hashes *[batch]uint64) []uint64 {
	for i, b := range blocks {
		hashes[i%batch] = hashBlock(b)
	}
	return hashes[:len(blocks)]
}

// countTop is count and tally for a piece that was located by locateTop.
func (m *merger) countTop(x *piece) {
	t := &x.top
	given, read := 0, min(batch, len(t.blocks))
	m.readOrder(x.prev[:read])
	for at, k := 0, 0; ; k++ {
		end := len(t.blocks)
		if k < len(t.gave) {
			end = t.gave[k].misses
		}
		for at < end {
			to := min(at+batch, end)
			ahead := min(to+batch, len(t.blocks))
			m.readOrder(x.prev[read:ahead])
			m.countMissed(x, at, to)
			at, read = to, ahead
		}
		if k == len(t.gave) {
			break
		}
		m.order.putAll(t.given.touches[given:t.gave[k].given], x.start)
		given = t.gave[k].given
	}
	m.order.putAll(t.given.touches[given:], x.start)
	m.order.extend(x.start+uint32(x.touches)-m.order.now, nil)
}

// countMissed counts what was not found, from there to there, at most batch. Nothing is given back between them. Distances are found first:
// what histograms make of them cannot be foretold, and the processor would not come to the next ones meanwhile.
func (m *merger) countMissed(x *piece, from, to int) {
	t, c := &x.top, &m.missed
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

// locateGiven enters where blocks were touched last that were given back, in a piece that starts there.
func (m *merger) locateGiven(start uint32, given givenTop) {
	for i, place := range given.places {
		*m.known[place%topBlocks].slot = given.touches[i] + start
	}
}
