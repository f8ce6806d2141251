package interp

import "slices"

// BatchMemory is a Memory that can read several pages in one system call, which
// costs a fraction of a call for each.
type BatchMemory interface {
	Memory
	// ReadPages fills bufs with the pages at addrs, from the first on, and returns
	// how many it has read. It stops at one that it can't read or must not: that is
	// no error, as the thread may not come to any of them.
	ReadPages(addrs []uint64, bufs []*[4096]byte) int
}

// SteppedMemory is a Memory that can read pages in one call that a burst is likely to go to in steps, as down a column.
type SteppedMemory interface {
	Memory
	// ReadStepped is as BatchMemory's ReadPages.
	ReadStepped(addrs []uint64, bufs []*[4096]byte) int
}

// maxHints bounds the pages that are remembered, MaxBatch those that Prefetch reads.
const (
	maxHints = 1024
	MaxBatch = 192
)

// A hint is a page that bursts have touched of late.
type hint struct {
	num   uint64 // address / 4096
	score uint8  // hintGain for each burst that touched it, less an eighth at every further one
}

// A page is read ahead if the last burst touched it or several of the last few. Over
// programs of Debian this came to the least time, with some 3 µs for a call and a
// tenth of it for each further page.
const (
	hintGain   = 31 // so that a page that every burst touches comes to 255 at most
	hintDecay  = 3  // by 1/8
	hintWanted = 112
	hintKept   = 8
)

// hints are the pages that bursts have touched of late, of one owner's.
type hints struct {
	all   []hint
	index map[uint64]int32 // into all, by page
	addrs []uint64         // of the pages that are to be read ahead
	bufs  []*[pageSize]byte
	// code are pages that instructions of earlier bursts were of, as they were then: the burst begins with
	// these, and it is looked afterwards whether they still were so. kept are those of them that are to be read
	// ahead; changed those that were not: they are read each time.
	code    map[uint64]*page
	kept    []uint64
	changed map[uint64]bool
}

// maxKept bounds the pages with code that are kept of an owner.
const maxKept = 128

// maxOwners bounds whose pages are remembered.
const maxOwners = 64

// Prefetch reads, in few calls, the pages that the burst is likely to need,
// judged by the last bursts of the same owner, such as a process, that began with Prefetch. It is
// for bursts that read far, to be called after Start, and does nothing if their memory is not a
// BatchMemory. Code that earlier bursts have read is not read again: Unchanged has to say afterwards that it was as it is. It
// returns how many pages it has read.
func (m *Pages) Prefetch(owner int) int {
	mem, ok := m.mem.(BatchMemory)
	if !ok {
		return 0
	}
	h := m.hints[owner]
	if h == nil {
		if len(m.hints) >= maxOwners {
			clear(m.hints)
		}
		h = &hints{index: make(map[uint64]int32), code: make(map[uint64]*page), changed: make(map[uint64]bool)}
		m.hints[owner] = h
	}
	m.learns = h
	for _, num := range h.kept {
		m.lend(h.code[num])
	}
	h.bufs = h.bufs[:0]
	for range h.addrs {
		h.bufs = append(h.bufs, &m.room(len(h.bufs)).data)
	}
	base, done := m.used, 0
	for failed := 0; done < len(h.addrs) && failed < 4; failed++ {
		n := mem.ReadPages(h.addrs[done:], h.bufs[done:])
		for i := done; i < done+n; i++ {
			m.pool[m.used], m.pool[base+i] = m.pool[base+i], m.pool[m.used]
			m.add(h.addrs[i] / pageSize)
		}
		done += n + 1 // the next one can't be read
	}
	return m.used - base
}

// Unchanged says whether the pages that the burst had from earlier ones are what the memory holds, as far as it can be read,
// and forgets those that are not. It is to be called while nothing but the burst has run, or soon after.
func (m *Pages) Unchanged() bool {
	mem, ok := m.mem.(BatchMemory)
	h := m.learns
	if !ok || h == nil {
		return true
	}
	h.addrs, h.bufs = h.addrs[:0], h.bufs[:0] // learned anew when the burst is over
	for _, p := range m.pool[:m.used] {
		if p.kept && p.touched && h.code[p.num] != nil {
			h.addrs = append(h.addrs, p.num*pageSize)
		}
	}
	for range h.addrs {
		h.bufs = append(h.bufs, &m.room(len(h.bufs)).data)
	}
	same := true
	for done := 0; done < len(h.addrs); {
		n := mem.ReadPages(h.addrs[done:], h.bufs[done:])
		for i := done; i < done+n; i++ {
			num := h.addrs[i] / pageSize
			if *h.code[num].asRead() != *h.bufs[i] {
				same = false
				h.readAlways(num)
			}
		}
		if done += n; done < len(h.addrs) { // one that can't be read, or not in this way
			h.readAlways(h.addrs[done] / pageSize)
			done++
		}
	}
	return same
}

// readAlways has a page read each time.
func (h *hints) readAlways(num uint64) {
	h.changed[num] = true
	delete(h.code, num)
}

// lend has the burst hold a page that is kept, until it is dropped.
func (m *Pages) lend(p *page) {
	m.room(0)
	m.pool = append(m.pool, m.pool[m.used])
	m.pool[m.used] = p
	m.add(p.num)
	p.kept = true
}

// takeBack takes pages that were lent out of the pool, as they were.
func (m *Pages) takeBack() {
	for i := 0; i < m.used; i++ {
		p := m.pool[i]
		if !p.kept {
			continue
		}
		if p.dirty {
			p.data, p.dirty = *p.read, false
		}
		p.kept = false
		last := len(m.pool) - 1
		m.pool[i], m.pool[last] = m.pool[last], nil
		m.pool = m.pool[:last]
		m.used = min(m.used, last)
		i-- // what is there now is looked at, too
	}
}

// room is the n-th page of the pool that is not used.
func (m *Pages) room(n int) *page {
	for m.used+n >= len(m.pool) {
		m.pool = append(m.pool, new(page))
	}
	return m.pool[m.used+n]
}

// Learn notes what a burst that began with Prefetch has touched. Reset does it too; but when Reset
// comes a thread may be waiting.
func (m *Pages) Learn() {
	if m.learns != nil {
		m.learns.remember(m.pool[:m.used])
		m.learns = nil
	}
}

// ForgetOwner forgets the pages of an owner's bursts.
func (m *Pages) ForgetOwner(owner int) {
	if m.hints[owner] == m.learns {
		m.learns = nil
	}
	delete(m.hints, owner)
}

// remember notes what the burst has touched, and what the next one is to read ahead: neighbours one after the other, for they
// are looked up at once.
func (h *hints) remember(touched []*page) {
	for i := range h.all {
		h.all[i].score -= h.all[i].score >> hintDecay
	}
	for _, p := range touched {
		if !p.touched {
			continue
		}
		i, ok := h.index[p.num]
		if !ok {
			if len(h.all) == maxHints {
				continue
			}
			i = int32(len(h.all))
			h.all = append(h.all, hint{num: p.num})
			h.index[p.num] = i
		}
		h.all[i].score += hintGain
		if p.code && !p.dirty && !p.kept && len(h.code) < maxKept && !h.changed[p.num] {
			h.code[p.num] = &page{num: p.num, data: p.data}
		}
	}
	for i := 0; i < len(h.all); {
		if h.all[i].score >= hintKept {
			i++
			continue
		}
		delete(h.index, h.all[i].num)
		delete(h.code, h.all[i].num)
		last := len(h.all) - 1
		if h.all[i] = h.all[last]; i != last {
			h.index[h.all[i].num] = int32(i)
		}
		h.all = h.all[:last]
	}
	h.addrs, h.kept = h.addrs[:0], h.kept[:0]
	for _, e := range h.all {
		switch {
		case e.score < hintWanted:
		case h.code[e.num] != nil:
			h.kept = append(h.kept, e.num)
		case len(h.addrs) < MaxBatch:
			h.addrs = append(h.addrs, e.num*pageSize)
		}
	}
	slices.Sort(h.addrs)
}

// A row is of pages that a burst goes to in steps.
type row struct{ next, step uint64 }

// Rows of pages that are being read, and how many pages of one come in a call: in the first fewer, as a row may be over.
const maxRows, firstOfRow, moreOfRow = 4, 8, 16

// rows foresee pages by those that were missed last. Up to maxRows rows may take turns.
type rows struct {
	missed [2*maxRows + 1]uint64 // the last one first
	known  [maxRows]row
	oldest int
	addrs  []uint64
	bufs   []*[pageSize]byte
}

// miss notes a page that is not there, and says how many of a row that it begins or goes on should come with it.
func (r *rows) miss(num uint64) (at *row, pages int) {
	for i := range r.known {
		if k := &r.known[i]; k.step != 0 && k.next == num {
			return k, moreOfRow
		}
	}
	copy(r.missed[1:], r.missed[:])
	r.missed[0] = num
	for turns := 1; turns <= maxRows; turns++ {
		step := num - r.missed[turns]
		if r.missed[2*turns] != 0 && step != 0 && r.missed[turns]-r.missed[2*turns] == step {
			k := &r.known[r.oldest]
			r.oldest = (r.oldest + 1) % maxRows
			*k = row{num, step}
			return k, firstOfRow
		}
	}
	return nil, 0
}

// readRow reads a page with those that come after it, if it is in a row.
func (m *Pages) readRow(num uint64) (ok bool) {
	at, pages := m.rows.miss(num)
	mem, stepped := m.mem.(SteppedMemory)
	if at == nil || !stepped {
		return false
	}
	r := &m.rows
	r.addrs, r.bufs = r.addrs[:0], r.bufs[:0]
	for range min(pages, maxPages-m.used) {
		if m.pages[at.next] == nil && at.next < 1<<52 {
			r.bufs = append(r.bufs, &m.room(len(r.bufs)).data)
			r.addrs = append(r.addrs, at.next*pageSize)
		}
		at.next += at.step
	}
	n := mem.ReadStepped(r.addrs, r.bufs)
	for _, addr := range r.addrs[:n] {
		m.add(addr / pageSize)
	}
	if n < len(r.addrs) {
		*at = row{}
	}
	return n > 0
}
