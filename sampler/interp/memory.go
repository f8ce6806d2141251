package interp

import (
	"encoding/binary"
)

const (
	pageSize = 4096
	pageMask = pageSize - 1
	tlbSize  = 256

	// maxPages bounds the copies one burst may hold (16 MiB).
	maxPages = 4096
)

// Memory is the target's memory. It has no way to write.
type Memory interface {
	// ReadPage fills buf with the page at addr, a multiple of 4096. An error
	// means that user code could not read the page; it ends the burst. It is
	// called once a burst for each page; an owner that knows a page never to
	// change may answer from a copy of its own.
	ReadPage(addr uint64, buf *[4096]byte) error
}

// Access is one load or store of the thread.
type Access struct {
	PC    uint64 // of the instruction
	Addr  uint64
	Size  int32 // bytes
	Inst  int32 // number of the instruction within the Run
	Store bool
}

// page is the burst's own copy of a page, with its stores.
type page struct {
	num   uint64    // address / 4096
	code  *codePage // set once instructions of it have run in this burst
	dirty bool
	data  [pageSize]byte
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

func (m *Machine) log(addr uint64, n int32, store bool) {
	m.acc = append(m.acc, Access{PC: m.pc, Addr: addr, Size: n, Inst: int32(m.done), Store: store})
}

// at returns the copy of the page with address addr.
func (m *Machine) at(addr uint64) *page {
	num := addr / pageSize
	if p := m.tlb[num%tlbSize]; p.num == num {
		return p
	}
	return m.miss(num)
}

func (m *Machine) miss(num uint64) *page {
	p := m.pages[num]
	if p == nil {
		if m.used >= maxPages {
			panic(halt{cause: MemoryLimit})
		}
		if m.used == len(m.pool) {
			m.pool = append(m.pool, new(page))
		}
		p = m.pool[m.used]
		if err := m.mem.ReadPage(num*pageSize, &p.data); err != nil {
			panic(halt{cause: Unreadable, err: err})
		}
		m.used++
		p.num, p.code, p.dirty = num, nil, false
		m.pages[num] = p
	}
	m.tlb[num%tlbSize] = p
	return p
}

// load reads n = 1, 2, 4 or 8 bytes.
func (m *Machine) load(addr uint64, n uint8) uint64 {
	m.log(addr, int32(n), false)
	return m.peek(addr, n)
}

// peek is load without the access being reported.
func (m *Machine) peek(addr uint64, n uint8) uint64 {
	off := addr & pageMask
	if off > pageSize-8 {
		var b [8]byte
		m.read(addr, b[:n])
		return binary.LittleEndian.Uint64(b[:])
	}
	v := binary.LittleEndian.Uint64(m.at(addr).data[off:])
	return v & sizeMask(n)
}

// store writes the low n = 1, 2, 4 or 8 bytes of v to the burst's own copy.
func (m *Machine) store(addr uint64, n uint8, v uint64) {
	m.log(addr, int32(n), true)
	off := addr & pageMask
	if off > pageSize-8 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v)
		m.write(addr, b[:n])
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
	if p.code != nil {
		m.codeWritten(p)
	}
}

// read copies memory to b, at most a page, without reporting an access.
func (m *Machine) read(addr uint64, b []byte) {
	n := copy(b, m.at(addr).data[addr&pageMask:])
	if n < len(b) {
		copy(b[n:], m.at(addr + uint64(n)).data[:])
	}
}

// write copies b, at most a page, to the burst's copies without reporting an
// access. Both pages are fetched before the first byte is written.
func (m *Machine) write(addr uint64, b []byte) {
	last := addr + uint64(len(b)) - 1
	p, q := m.at(addr), m.at(last)
	p.write()
	q.write()
	n := copy(p.data[addr&pageMask:], b)
	copy(q.data[:], b[n:])
	for _, p := range [2]*page{p, q} {
		if p.code != nil {
			m.codeWritten(p)
		}
	}
}

// sizeMask is the mask of n = 1, 2, 4 or 8 bytes.
func sizeMask(n uint8) uint64 { return sizeMasks[n&15] }

var sizeMasks = [16]uint64{1: 0xff, 2: 0xffff, 4: 0xffffffff, 8: 1<<64 - 1}

// poke is an 8-byte store without the access being reported.
func (m *Machine) poke(addr, v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	m.write(addr, b[:])
}
