package exact

import (
	"math/bits"

	"github.com/rdx-profiler/rdx/model"
)

// locateWhole is locate for a piece that was not analysed on its own: of every
// run, not of every block.
func (m *merger) locateWhole(x *piece, work chan struct{}) {
	if cap(x.prev) < x.n {
		x.prev = make([]uint32, len(x.blocks))
	}
	if x.filtered {
		m.locateFiltered(x)
		return
	}
	x.prev = x.prev[:x.n]
	m.eachTable(work, func(table int) { m.locateRuns(table, x) })
}

// locateRuns enters the runs whose blocks belong to a table, in their order: a
// block may have several.
func (m *merger) locateRuns(table int, x *piece) {
	tables := uint64(len(m.index))
	index := &m.index[table]
	var blocks [batch]uint64
	var numbers, last [batch]uint32 // runs, and the positions of their last touches
	var slots [batch]*uint32
	n := 0
	flush := func() {
		for at := 0; at < n; {
			k := index.find(blocks[at:n], &slots)
			for i := range k {
				x.prev[numbers[at+i]] = *slots[i]
				*slots[i] = last[at+i]
			}
			at += k
		}
		n = 0
	}
	now := x.start
	runs := x.runs[:x.n]
	for i, b := range x.blocks[:x.n] {
		end := now + uint32(runs[i]>>1)
		now = end + 1
		if tables > 1 && hashBlock(b)>>20%tables != uint64(table) { // as in locateIn
			continue
		}
		blocks[n%batch], numbers[n%batch], last[n%batch] = b, uint32(i), end
		if n++; n == batch {
			flush()
		}
	}
	flush()
}

// countWhole finds the distances of a piece whose runs were located. They are
// counted by tally.
func (m *merger) countWhole(x *piece, elapsed uint64) {
	x.before = elapsed
	if x.filtered {
		m.countFiltered(x)
		return
	}
	if cap(x.found) < x.n {
		x.found = make([]uint64, len(x.blocks))
	}
	x.found = x.found[:x.n]
	prev, runs, found := x.prev, x.runs[:x.n], x.found
	for len(prev) > 0 {
		n := m.order.distances(prev, runs, found)
		prev, runs, found = prev[n:], runs[n:], found[n:]
	}
}

// tally counts the runs of a piece by countWhole. The times are found here: what
// they need stays as it is until the next compaction.
func (m *merger) tally(x *piece) {
	if x.err != nil {
		return
	}
	if x.filtered {
		return // countVector has done it
	}
	now, before := x.start, x.before
	clock := m.order.clock // what lies beside it is written meanwhile
	for at := 0; at < x.n; at += exactChunk {
		end := min(at+exactChunk, x.n)
		times := x.times[:end-at]
		start := now
		for i, p := range x.prev[at:end] {
			if p == coldPos {
				times[i] = model.Infinite
			} else {
				times[i] = clock.sinceAt(p, now)
			}
			now += uint32(x.runs[at+i]>>1) + 1
		}
		x.counts.tally(x.runs[at:end], x.found[at:end], times, before)
		before += uint64(now - start)
	}
}

// distances is touchWord for blocks whose positions before were prev, coldPos
// for none. It finds no times.
func (o *timedOrder) distances(prev []uint32, runs []uint8, dist []uint64) int {
	now := o.now
	w, first, older, newer := o.openWords(runs[0])
	from, width := first*64, w*64+64-first*64
	runs, dist = runs[:len(prev)], dist[:len(prev)]
	n := len(prev)
	for i, p := range prev {
		last := now + uint32(runs[i]>>1)
		if last/64 != w {
			n = i
			break
		}
		if p-from < width { // not for coldPos
			s := p - w*64 + 64 // 64 and above: in newer
			dist[i] = above(older, newer, s)
			older &^= 1 << s
			newer &^= 1 << (s - 64) // nothing if s is below
		} else if p == coldPos {
			o.live++
			dist[i] = model.Infinite
		} else {
			o.now = last
			dist[i] = uint64(int(o.take(p)) + bits.OnesCount64(older) + bits.OnesCount64(newer))
		}
		newer |= 1 << (last % 64)
		now = last + 1
	}
	o.closeWords(w, first, older, newer, now)
	return n
}
