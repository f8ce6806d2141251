package interp

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
	Inst  int32  // number of the instruction within the Run, or since Append
	Size  uint16 // bytes
	Store bool
}

func (m *Machine) log(addr uint64, n int32, store bool) {
	m.acc = append(m.acc, Access{PC: m.pc, Addr: addr, Size: uint16(n), Inst: int32(m.base + m.done), Store: store})
}

// load reads n = 1, 2, 4 or 8 bytes.
func (m *Machine) load(addr uint64, n uint8) uint64 {
	m.log(addr, int32(n), false)
	return m.Peek(addr, n)
}

// store writes the low n = 1, 2, 4 or 8 bytes of v.
func (m *Machine) store(addr uint64, n uint8, v uint64) {
	m.log(addr, int32(n), true)
	m.Poke(addr, n, v)
}
