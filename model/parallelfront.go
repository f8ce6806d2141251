package model

import "sync/atomic"

// pieceFront keeps the top of the stack for pieces that are merged touch by
// touch, see front: of them only what it does not find is merged. It runs ahead of
// the merge, and its positions are numbers of touches, from 1.
type pieceFront struct {
	front
	// wanted: the merge will soon have to compact, before which the front
	// must be empty.
	wanted atomic.Bool
}

// frontTop is what a pieceFront has found of a piece.
type frontTop struct {
	plain bool // nothing: the front was not used
	fresh bool // the front was empty at the beginning as wanted

	// The front gave these back before the piece, the oldest last.
	settled         int
	settledBlocks   [frontBlocks]uint64
	settledTouches  [frontBlocks]uint64
	missed          []uint32 // runs that were not found
	out, outTouches []uint64 // by them, what they displaced; outTouches is 0 if nothing
	times           []uint64 // by run
}

// touch takes a piece through the front. It sets found and times for what is there;
// for the others found to the number of blocks in the front and times to the touch.
func (f *pieceFront) touch(x *piece) {
	t := &x.top
	if t.times == nil {
		t.times, x.found = make([]uint64, len(x.blocks)), make([]uint64, len(x.blocks))
	}
	x.found = x.found[:x.n]
	t.missed, t.out, t.outTouches = t.missed[:0], t.out[:0], t.outTouches[:0]
	t.settled, t.fresh = 0, f.wanted.Load()
	if t.fresh {
		f.wanted.Store(false)
	}
	if f.useless() {
		f.pause()
	}
	t.plain = f.off > 0
	if t.fresh || t.plain {
		t.settled, t.settledBlocks, t.settledTouches = f.held, f.blocks, f.pos
		f.held = 0
	}
	if t.plain {
		f.off -= min(f.off, x.n)
		f.next += uint64(x.touches)
		return
	}
	for at := 0; at < x.n; {
		n := 1
		if f.held < frontBlocks {
			f.fillPiece(x, at)
		} else {
			n = min(x.n-at, frontChunk)
			touchFront(&f.front, x.blocks[at:at+n], x.runs[at:at+n], x.found[at:at+n], t.times[at:at+n])
			for _, k := range f.missed[:f.misses] {
				t.missed = append(t.missed, uint32(at)+k)
			}
			t.out = append(t.out, f.out[:f.misses]...)
			t.outTouches = append(t.outTouches, f.outPos[:f.misses]...)
		}
		at += n
	}
	f.tried += x.n
	f.found += x.n - len(t.missed)
}

// rest is what the front holds when no more pieces come.
func (f *pieceFront) rest() *frontTop {
	t := &frontTop{settled: f.held, settledBlocks: f.blocks, settledTouches: f.pos}
	f.held = 0
	return t
}

// fillPiece is touch for one run while the front has room.
func (f *pieceFront) fillPiece(x *piece, k int) {
	t := &x.top
	d, time, found := f.find(x.blocks[k], x.runs[k])
	x.found[k], t.times[k] = uint64(d), time
	if !found {
		t.missed, t.out, t.outTouches = append(t.missed, uint32(k)), append(t.out, 0), append(t.outTouches, 0)
	}
}

// positionOf is the position of a touch of after the last compaction.
func (m *merger) positionOf(touch uint64) uint32 {
	return uint32(touch - m.baseTouch + m.basePosition)
}

// locateTop is locate for a piece that was taken through the front.
func (m *merger) locateTop(x *piece) {
	t, index := &x.top, &m.index[0]
	m.locateSettled(t)
	var blocks [batch]uint64
	var slots, outs [batch]*uint32
	for at := 0; at < len(t.missed); {
		n := min(len(t.missed)-at, batch)
		for i, k := range t.missed[at : at+n] {
			blocks[i%batch] = x.blocks[k]
		}
		n = index.find(blocks[:n], &slots)
		for i, touch := range t.outTouches[at : at+n] {
			if touch == 0 {
				t.out[at+i] = blocks[i%batch] // which is in the table, too
			}
		}
		index.known(t.out[at:at+n], &outs)
		for i, touch := range t.outTouches[at : at+n] {
			x.prev[at+i] = *slots[i%batch]
			if touch != 0 {
				*outs[i%batch] = m.positionOf(touch)
			}
		}
		at += n
	}
}

// countTop is count for a piece that was located by locateTop.
func (m *merger) countTop(x *piece) {
	t := &x.top
	m.putSettled(t)
	for i, k := range t.missed {
		if p := x.prev[i]; p == coldPos {
			m.order.live++
			x.found[k] = Infinite
		} else {
			x.found[k] += uint64(m.order.take(p))
		}
		if touch := t.outTouches[i]; touch != 0 {
			m.order.put(m.positionOf(touch))
		}
	}
}

// settle takes what the front gave back, so that index and order have all blocks. All pieces located must have been counted.
func (m *merger) settle(t *frontTop) {
	m.locateSettled(t)
	m.putSettled(t)
	t.settled = 0
	m.order.extend(uint32(m.next)-m.order.now, nil)
}

// end makes index and order have all blocks when all pieces have been counted.
func (m *merger) end() {
	if m.err == nil {
		m.settle(m.front.rest())
	}
}

// locateSettled is for the index and putSettled for the order.
func (m *merger) locateSettled(t *frontTop) {
	for i := t.settled - 1; i >= 0; i-- {
		*m.index[0].slot(t.settledBlocks[i]) = m.positionOf(t.settledTouches[i])
	}
}

func (m *merger) putSettled(t *frontTop) {
	for i := t.settled - 1; i >= 0; i-- {
		m.order.put(m.positionOf(t.settledTouches[i]))
	}
}

// timesTop sets the times of what the front did not find.
func (m *merger) timesTop(x *piece) {
	t := &x.top
	for i, k := range t.missed {
		if p := x.prev[i]; p == coldPos {
			t.times[k] = Infinite
		} else {
			t.times[k] = m.order.sinceAt(p, m.positionOf(t.times[k]))
		}
	}
}
