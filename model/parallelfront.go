package model

import "sync/atomic"

// pieceFront keeps the top of the stack for pieces that are merged touch by
// touch, see stackTop: of them only what it does not find is merged. It runs ahead of
// the merge, and its positions are numbers of touches, from 1.
type pieceFront struct {
	stackTop
	// counts is of what was found, which needs nothing of the merge. What was not found is
	// there as reuses after no time, see rest.
	counts       ExactCounts
	missedCounts ExactCounts // of the rest, by the merge
	dist, time   [topChunk]uint64
	// wanted: the merge will soon have to compact, before which the front
	// must be empty.
	wanted atomic.Bool
}

// frontTop is what a pieceFront leaves of a piece to the merge, in lists of a kind each: another processor reads them.
type frontTop struct {
	plain bool // all: the front was not used
	fresh bool // the front was empty at the beginning as wanted

	settled givenTop // given back before the piece, the oldest first
	given   givenTop // and in it
	gave    []gaveTop
	// What was not found: the block, the place that it got, touches of the piece before it, and misses.
	blocks  []uint64
	places  []uint8
	offsets []uint32
	missed  []topMiss
}

// givenTop is what was given back: the lower half of the number of the last touch, and the place.
type givenTop struct {
	touches []uint32
	places  []uint8
}

// gaveTop says that blocks were given back when so many had been missed, and how many had been given back then.
type gaveTop struct{ misses, given int }

// topMiss is whether a touch is a store, and above that how many blocks the front held.
type topMiss uint8

func (g *givenTop) add(given []givenBlock) {
	for i := range given {
		g.touches = append(g.touches, uint32(given[i].pos))
		g.places = append(g.places, given[i].place)
	}
}

func (g *givenTop) clear() { g.touches, g.places = g.touches[:0], g.places[:0] }

// part is what was given back from there to there.
func (g *givenTop) part(from, to int) givenTop {
	return givenTop{g.touches[from:to], g.places[from:to]}
}

func newPieceFront(blockBytes int, bins *Bins) (*pieceFront, error) {
	f := &pieceFront{}
	for _, c := range []*ExactCounts{&f.counts, &f.missedCounts} {
		var err error
		if *c, err = newExactCounts(blockBytes, bins); err != nil {
			return nil, err
		}
	}
	// The table that is below is another processor's: one that is always in a cache is read ahead instead.
	f.index = &blockIndex{}
	bucket := make([]indexBucket, 1)
	for i := range f.index.shards {
		f.index.shards[i].buckets = bucket
	}
	f.clear()
	f.next = 1
	return f, nil
}

// touch takes a piece through the front.
func (f *pieceFront) touch(x *piece) {
	t := &x.top
	t.settled.clear()
	t.given.clear()
	t.gave, t.blocks, t.places = t.gave[:0], t.blocks[:0], t.places[:0]
	t.offsets, t.missed = t.offsets[:0], t.missed[:0]
	t.fresh = f.wanted.Load()
	if t.fresh {
		f.wanted.Store(false)
	}
	if f.useless() {
		f.pause()
	}
	t.plain = f.off > 0
	if t.fresh || t.plain {
		f.settle(&t.settled)
	}
	if t.plain {
		f.off -= min(f.off, x.n)
		f.next += uint64(x.touches)
		return
	}
	first := f.next
	for at := 0; at < x.n; at += topChunk {
		end := min(at+topChunk, x.n)
		n := end - at
		runs := x.runs[at:end]
		f.stackTop.touch(x.blocks[at:end], runs, f.dist[:n], f.time[:n])
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
		for i, k := range f.missed[:f.misses] {
			t.offsets = append(t.offsets, uint32(f.time[k]-first))
			t.missed = append(t.missed, topMiss(runs[k]&1|f.above[i]<<1))
			f.dist[k], f.time[k] = 0, 0
		}
		f.misses, f.gives = 0, 0
		f.counts.tally(runs, f.dist[:n], f.time[:n], 0)
	}
	f.tried += x.n
	f.found += x.n - len(t.blocks)
}

// settle empties the front and appends what it held.
func (f *pieceFront) settle(to *givenTop) {
	f.giveBack(0)
	to.add(f.given[:f.gives])
	f.gives = 0
}

// rest is what the front holds when no more pieces come; all that was counted is added to counts.
func (f *pieceFront) rest(counts *ExactCounts) *frontTop {
	c := &f.counts
	for store := range c.time {
		c.dist[store].small[0] -= c.time[store].small[0]
		c.time[store].small[0] = 0
	}
	c.windows.small[0] = 0
	counts.add(c)
	counts.add(&f.missedCounts)
	t := &frontTop{}
	f.settle(&t.settled)
	return t
}

// fromTouch is how much the position of a touch of after the last compaction is above its number. All are below 2^32 or taken modulo it.
func (m *merger) fromTouch() uint32 { return uint32(m.basePosition - m.baseTouch) }

// locateTop is locate for a piece that was taken through the front.
func (m *merger) locateTop(x *piece) {
	t, index := &x.top, &m.index[0]
	m.locateGiven(t.settled)
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
				m.locateGiven(t.given.part(given, gave[0].given))
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
	m.locateGiven(t.given.part(given, len(t.given.touches)))
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
	m.countGiven(t.settled)
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
			return
		}
		m.countGiven(t.given.part(given, t.gave[k].given))
		given = t.gave[k].given
	}
}

// countMissed counts what was not found, from there to there, at most batch. Nothing is given back between them. Distances are found first:
// what histograms make of them cannot be foretold, and the processor would not come to the next ones meanwhile.
func (m *merger) countMissed(x *piece, from, to int) {
	t, c := &x.top, &m.front.missedCounts
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
		offset, store := offsets[i], uint8(missed[i]&1)
		if p == coldPos {
			c.cold(store, x.before+uint64(offset)+1)
		} else {
			c.reuse(store, m.order.sinceAt(p, x.start+offset), dist[i%batch])
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

// settle takes what the front gave back, so that index and order have all blocks. All pieces located must have been counted.
func (m *merger) settle(t *frontTop) {
	m.locateGiven(t.settled)
	m.countGiven(t.settled)
	t.settled.clear()
	m.order.extend(uint32(m.next)-m.order.now, nil)
}

// end makes index and order have all blocks when all pieces have been counted.
func (m *merger) end() {
	if m.err == nil {
		m.settle(m.front.rest(m.counts))
	}
}

// locateGiven is for the index and countGiven for the order; see fromTouch.
func (m *merger) locateGiven(given givenTop) {
	from := m.fromTouch()
	for i, place := range given.places {
		*m.known[place%topBlocks].slot = given.touches[i] + from
	}
}

func (m *merger) countGiven(given givenTop) { m.order.putAll(given.touches, m.fromTouch()) }
