package interp

import "encoding/binary"

const (
	pageSize = 4096
	pageMask = pageSize - 1
	tlbSize  = 256

	// maxPages bounds the copies one burst may hold (16 MiB).
	maxPages = 4096
	// maxAgain is how many of them may make room for others (Recycle).
	maxAgain = 3 << 14
)

// page is the burst's own copy of a page, with its stores.
type page struct {
	num   uint64 // address / 4096
	code  bool   // instructions of it have run in this burst
	dirty bool
	// touched by the burst: what was read ahead may not be.
	touched bool
	kept    bool // lent by those of earlier bursts: it is still to be looked whether it was right
	data    [pageSize]byte
	// read is what data was before the burst's first store, if dirty.
	read *[pageSize]byte
}

// write makes the page ready for a store.
func (p *page) write() {
	if p.dirty {
		return
	}
	if p.read == nil {
		p.read = new([pageSize]byte)
	}
	*p.read = p.data
	p.dirty = true
}

// asRead is what data was before the burst's stores.
func (p *page) asRead() *[pageSize]byte {
	if p.dirty {
		return p.read
	}
	return &p.data
}

// Pages are the burst's own copies of the target's pages, made on first use, with
// its stores on top. An access that cannot be made panics with a Halt.
type Pages struct {
	mem   Memory
	tlb   [tlbSize]*page
	pages map[uint64]*page
	pool  []*page
	used  int
	again int // may still make room for others
	hand  int // where the next that may is looked for
	rows  rows
	hints map[int]*hints // by owner
	// learns is where what the burst touches is to be remembered, nil: nowhere.
	learns *hints
	// codeWritten is called when a page changes that Code was asked for.
	codeWritten func(num uint64)
}

// none is what empty TLB entries point to: no address has its number.
var none = &page{num: ^uint64(0)}

// NewPages returns memory to be used again and again. codeWritten is called
// when a page, by its address / 4096, changes that Code was asked for.
func NewPages(codeWritten func(num uint64)) Pages {
	p := Pages{pages: make(map[uint64]*page), hints: make(map[int]*hints), codeWritten: codeWritten}
	for i := range p.tlb {
		p.tlb[i] = none
	}
	return p
}

// Reserve makes room for copies of so many pages, with what they were before stores, and touches it: memory that is new to a process
// takes longer than all else that a burst does.
func (m *Pages) Reserve(pages int) {
	n := min(pages, maxPages) - len(m.pool)
	if n <= 0 {
		return
	}
	if len(m.pages) == 0 {
		m.pages = make(map[uint64]*page, pages)
	}
	made, read := make([]page, n), make([][pageSize]byte, n)
	for i := range made {
		p := &made[i]
		p.read = &read[i]
		p.data[0], p.data[pageSize-1], p.read[0], p.read[pageSize-1] = 0, 0, 0, 0
		m.pool = append(m.pool, p)
	}
}

// Recycle has copies make room for others, from then on until Drop, where the burst has not stored to them: they are read once
// more when it comes by again. It is for one whose pages do not change meanwhile, or that can do with it.
func (m *Pages) Recycle() { m.again = maxAgain }

// recycle makes room for one copy. The latest stays: an access may need it and the next.
func (m *Pages) recycle() (ok bool) {
	for range m.used {
		i := m.hand % m.used
		m.hand = i + 1
		p, last := m.pool[i], m.used-1
		if i == last || p.dirty || p.code || p.kept {
			continue
		}
		if m.pages[p.num] == p { // it may have been forgotten, and read anew
			delete(m.pages, p.num)
		}
		if at := &m.tlb[p.num%tlbSize]; *at == p {
			*at = none
		}
		m.pool[i], m.pool[last] = m.pool[last], p
		m.used--
		m.again--
		return true
	}
	return false
}

// Reset forgets all copies and stores; what comes is read from mem.
func (m *Pages) Reset(mem Memory) {
	m.Drop()
	m.mem = mem
}

// Drop forgets all copies and stores, and learns of those. Reset does it too, but when Reset comes a thread may be waiting.
func (m *Pages) Drop() {
	m.Learn()
	if m.used == 0 && m.mem == nil {
		return
	}
	m.mem = nil
	m.takeBack()
	clear(m.pages)
	m.used, m.again, m.hand = 0, 0, 0
	m.rows.missed, m.rows.known = [len(m.rows.missed)]uint64{}, [maxRows]row{}
	for i := range m.tlb {
		m.tlb[i] = none
	}
}

// Undo takes all stores back. What was read stays.
func (m *Pages) Undo() {
	for _, p := range m.pages {
		if p.dirty {
			p.data, p.dirty = *p.read, false
			m.changed(p)
		}
	}
}

// changed tells of a page with code that is not what it was.
func (m *Pages) changed(p *page) {
	if p.code {
		p.code = false
		m.codeWritten(p.num)
	}
}

// Code returns the page with address addr, to be told of when it changes. lasting says that what is at this place is the same in
// all bursts.
func (m *Pages) Code(addr uint64) (b *[pageSize]byte, lasting bool) {
	p := m.at(addr)
	p.code = true
	return &p.data, p.kept && !p.dirty
}

// Holds says whether the page with address addr was read in this burst.
func (m *Pages) Holds(addr uint64) bool { return m.pages[addr/pageSize] != nil }

// at returns the copy of the page with address addr.
func (m *Pages) at(addr uint64) *page {
	num := addr / pageSize
	if p := m.tlb[num%tlbSize]; p.num == num {
		return p
	}
	return m.miss(num)
}

func (m *Pages) miss(num uint64) *page {
	p := m.pages[num]
	if p == nil {
		if m.used >= maxPages && (m.again == 0 || !m.recycle()) {
			panic(Halt{Cause: MemoryLimit})
		}
		if !m.readRow(num) {
			p = m.room(0)
			if err := m.mem.ReadPage(num*pageSize, &p.data); err != nil {
				panic(Halt{Cause: Unreadable, Err: err})
			}
			m.add(num)
		}
		p = m.pages[num]
	}
	p.touched = true
	m.tlb[num%tlbSize] = p
	return p
}

// add takes the first page of the pool that is not used, which has been filled.
func (m *Pages) add(num uint64) {
	p := m.pool[m.used]
	m.used++
	p.num, p.code, p.dirty, p.touched, p.kept = num, false, false, false, false
	m.pages[num] = p
}

// Peek reads n = 1, 2, 4 or 8 bytes.
func (m *Pages) Peek(addr uint64, n uint8) uint64 {
	off := addr & pageMask
	if off > pageSize-8 {
		var b [8]byte
		m.Read(addr, b[:n])
		return binary.LittleEndian.Uint64(b[:])
	}
	v := binary.LittleEndian.Uint64(m.at(addr).data[off:])
	return v & sizeMask(n)
}

// Poke writes the low n = 1, 2, 4 or 8 bytes of v to the burst's own copy.
func (m *Pages) Poke(addr uint64, n uint8, v uint64) {
	off := addr & pageMask
	if off > pageSize-8 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v)
		m.Write(addr, b[:n])
		return
	}
	p := m.at(addr)
	p.write()
	d := p.data[off : off+8]
	switch n {
	case 8:
		binary.LittleEndian.PutUint64(d, v)
	case 4:
		binary.LittleEndian.PutUint32(d, uint32(v))
	case 2:
		binary.LittleEndian.PutUint16(d, uint16(v))
	default:
		d[0] = byte(v)
	}
	m.changed(p)
}

// Read copies memory to b, at most a page.
func (m *Pages) Read(addr uint64, b []byte) {
	n := copy(b, m.at(addr).data[addr&pageMask:])
	if n < len(b) {
		copy(b[n:], m.at(addr + uint64(n)).data[:])
	}
}

// Write copies b, at most a page, to the burst's copies. Both pages are fetched
// before the first byte is written.
func (m *Pages) Write(addr uint64, b []byte) {
	last := addr + uint64(len(b)) - 1
	p, q := m.at(addr), m.at(last)
	p.write()
	q.write()
	n := copy(p.data[addr&pageMask:], b)
	copy(q.data[:], b[n:])
	m.changed(p)
	m.changed(q)
}

// Store writes b to the burst's own copies from outside of a run, as the kernel
// does; false if that memory can't be had.
func (m *Pages) Store(addr uint64, b []byte) (ok bool) {
	defer halted(&ok)
	for len(b) > 0 {
		n := min(len(b), pageSize)
		m.Write(addr, b[:n])
		addr, b = addr+uint64(n), b[n:]
	}
	return true
}

// Forget drops the burst's copies of the pages from start to limit: what they hold is
// asked for anew. It costs time in proportion to the pages that are held.
func (m *Pages) Forget(start, limit uint64) {
	for num, p := range m.pages {
		if start <= num*pageSize && num*pageSize < limit {
			m.changed(p)
			delete(m.pages, num)
			m.tlb[num%tlbSize] = none
		}
	}
}

// Load reads b from the burst's copies from outside of a run; false if that memory
// can't be had.
func (m *Pages) Load(addr uint64, b []byte) (ok bool) {
	defer halted(&ok)
	m.Read(addr, b)
	return true
}

// Held is n = 1, 2, 4 or 8 bytes from the burst's copies, false if they are not among them.
func (m *Pages) Held(addr uint64, n uint8) (v uint64, ok bool) {
	off, size := addr&pageMask, uint64(n)
	p := m.tlb[addr/pageSize%tlbSize]
	if p.num != addr/pageSize {
		if p = m.pages[addr/pageSize]; p == nil {
			return 0, false
		}
	}
	if off+8 <= pageSize {
		return binary.LittleEndian.Uint64(p.data[off:]) & sizeMask(n), true
	}
	var b [8]byte
	if rest := copy(b[:size], p.data[off:]); uint64(rest) < size {
		next := m.pages[addr/pageSize+1]
		if next == nil {
			return 0, false
		}
		copy(b[rest:size], next.data[:])
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// halted, deferred, makes ok false where memory could not be had.
func halted(ok *bool) {
	if r := recover(); r != nil {
		if _, halt := r.(Halt); !halt {
			panic(r)
		}
		*ok = false
	}
}

// Overlay puts what the burst has stored over a copy of the target's memory at
// addr, so that b is that memory as the burst sees it.
func (m *Pages) Overlay(addr uint64, b []byte) {
	for at := addr &^ pageMask; at < addr+uint64(len(b)); at += pageSize {
		p := m.pages[at/pageSize]
		if p == nil || !p.dirty {
			continue
		}
		if at >= addr {
			copy(b[at-addr:], p.data[:])
		} else {
			copy(b, p.data[addr-at:])
		}
	}
}

// StoredTo is how many of the n bytes at addr, from the first on, lie up to the end of the last page among
// them that the burst has stored to: those after it are the target's own.
func (m *Pages) StoredTo(addr uint64, n int) int {
	stored := uint64(0)
	for at := addr &^ pageMask; at < addr+uint64(n); at += pageSize {
		if p := m.pages[at/pageSize]; p != nil && p.dirty {
			stored = at + pageSize - addr
		}
	}
	return min(int(stored), n)
}

// sizeMask is the mask of n = 1, 2, 4 or 8 bytes.
func sizeMask(n uint8) uint64 { return sizeMasks[n&15] }

var sizeMasks = [16]uint64{1: 0xff, 2: 0xffff, 4: 0xffffffff, 8: 1<<64 - 1}
