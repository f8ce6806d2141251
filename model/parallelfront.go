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

// frontTop is what a pieceFront leaves of a piece to the merge.
type frontTop struct {
	plain bool // all: the front was not used
	fresh bool // the front was empty at the beginning as wanted

	settled []givenBlock // given back before the piece, the oldest first
	given   []givenBlock // and in it
	// What was not found.
	blocks, hashes []uint64
	missed         []topMiss
}

type topMiss struct {
	offset uint32 // touches of the piece before it
	above  uint8  // blocks then in the front
	place  uint8  // that it got there
	store  uint8
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
	t.settled, t.given = t.settled[:0], t.given[:0]
	t.blocks, t.hashes, t.missed = t.blocks[:0], t.hashes[:0], t.missed[:0]
	t.fresh = f.wanted.Load()
	if t.fresh {
		f.wanted.Store(false)
	}
	if f.useless() {
		f.pause()
	}
	t.plain = f.off > 0
	if t.fresh || t.plain {
		t.settled = f.settle(t.settled)
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
		for i := range f.gives {
			f.given[i].misses += uint32(len(t.missed))
		}
		t.given = append(t.given, f.given[:f.gives]...)
		t.blocks, t.hashes = append(t.blocks, f.blocks[:f.misses]...), append(t.hashes, f.hashes[:f.misses]...)
		for i, k := range f.missed[:f.misses] {
			t.missed = append(t.missed, topMiss{uint32(f.time[k] - first), f.above[i], f.places[i], runs[k] & 1})
			f.dist[k], f.time[k] = 0, 0
		}
		f.misses, f.gives = 0, 0
		f.counts.tally(runs, f.dist[:n], f.time[:n], 0)
	}
	f.tried += x.n
	f.found += x.n - len(t.missed)
}

// settle empties the front and appends what it held.
func (f *pieceFront) settle(to []givenBlock) []givenBlock {
	f.giveBack(0)
	to = append(to, f.given[:f.gives]...)
	f.gives = 0
	return to
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
	return &frontTop{settled: f.settle(nil)}
}

// positionOf is the position of a touch of after the last compaction.
func (m *merger) positionOf(touch uint64) uint32 {
	return uint32(touch - m.baseTouch + m.basePosition)
}

// locateTop is locate for a piece that was taken through the front.
func (m *merger) locateTop(x *piece) {
	t, index := &x.top, &m.index[0]
	m.locateGiven(t.settled)
	x.prev = x.prev[:len(t.missed)]
	var slots [batch]*uint32
	gives := 0
	readBuckets(index, t.hashes[:min(batch, len(t.hashes))])
	for at := 0; at < len(t.missed); {
		grown := index.grown
		end := min(at+batch, len(t.missed))
		readBuckets(index, t.hashes[end:min(end+batch, len(t.hashes))])
		n := index.findHashed(t.blocks[at:end], t.hashes[at:end], &slots)
		if index.grown != grown {
			index.lookUpAgain(&m.known)
		}
		for i := range n {
			from := gives
			for gives < len(t.given) && t.given[gives].misses <= uint32(at+i) {
				gives++
			}
			m.locateGiven(t.given[from:gives])
			slot := slots[i%batch]
			m.known[t.missed[at+i].place%topBlocks] = recentSlot{t.blocks[at+i], slot}
			x.prev[at+i] = *slot
		}
		at += n
	}
	m.locateGiven(t.given[gives:])
}

// countTop is count and tally for a piece that was located by locateTop.
func (m *merger) countTop(x *piece) {
	t, c := &x.top, &m.front.missedCounts
	m.countGiven(t.settled)
	gives := 0
	for at := 0; at < len(t.missed); at += batch {
		end := min(at+batch, len(t.missed))
		m.readOrder(x.prev[end:min(end+batch, len(x.prev))])
		for i, p := range x.prev[at:end] {
			from := gives
			for gives < len(t.given) && t.given[gives].misses <= uint32(at+i) {
				gives++
			}
			m.countGiven(t.given[from:gives])
			k := &t.missed[at+i]
			if p == coldPos {
				m.order.live++
				c.cold(k.store, x.before+uint64(k.offset)+1)
			} else {
				time := m.order.sinceAt(p, x.start+k.offset)
				c.reuse(k.store, time, uint64(k.above)+uint64(m.order.take(p)))
			}
		}
	}
	m.countGiven(t.given[gives:])
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
	t.settled = t.settled[:0]
	m.order.extend(uint32(m.next)-m.order.now, nil)
}

// end makes index and order have all blocks when all pieces have been counted.
func (m *merger) end() {
	if m.err == nil {
		m.settle(m.front.rest(m.counts))
	}
}

// locateGiven is for the index and countGiven for the order.
func (m *merger) locateGiven(given []givenBlock) {
	for i := range given {
		g := &given[i]
		*m.known[g.place%topBlocks].slot = m.positionOf(g.pos)
	}
}

func (m *merger) countGiven(given []givenBlock) {
	for i := range given {
		m.order.put(m.positionOf(given[i].pos))
	}
}
