package interp

// inst.rep of the string instructions
const (
	repNE = 0xf2
	repE  = 0xf3
)

// strings runs step once, or under a REP prefix until rcx is zero, or stop
// reports true. It leaves in the middle when the accesses asked for are done:
// between iterations the state is that of an interrupted instruction.
func (m *Machine) strings(in *inst, step func(delta uint64) (stop bool)) {
	delta := uint64(in.w)
	if m.flags&FlagDF != 0 {
		delta = -delta
	}
	if in.rep == 0 {
		step(delta)
		return
	}
	cw := m.addrSize(in)
	for m.reg(RCX, cw) != 0 {
		if len(m.acc) >= m.max {
			m.rip = m.pc
			m.done--
			return
		}
		stop := step(delta)
		m.setReg(RCX, cw, m.reg(RCX, cw)-1)
		m.accStart = len(m.acc)
		if stop {
			return
		}
	}
}

func (m *Machine) addrSize(in *inst) uint8 {
	if in.addr32 {
		return 4
	}
	return 8
}

// source is the address of the string at rsi, dest that at rdi, which no
// prefix moves to another segment.
func (m *Machine) source(in *inst) uint64 {
	return m.reg(RSI, m.addrSize(in)) + m.segBase[in.seg&3]
}

func (m *Machine) dest(in *inst) uint64 { return m.reg(RDI, m.addrSize(in)) }

func (m *Machine) advance(in *inst, r uint8, delta uint64) {
	m.setReg(r, m.addrSize(in), m.r[r]+delta)
}

func movs(m *Machine, in *inst) {
	m.strings(in, func(delta uint64) bool {
		m.store(m.dest(in), in.w, m.load(m.source(in), in.w))
		m.advance(in, RSI, delta)
		m.advance(in, RDI, delta)
		return false
	})
}

func stos(m *Machine, in *inst) {
	m.strings(in, func(delta uint64) bool {
		m.store(m.dest(in), in.w, m.r[RAX])
		m.advance(in, RDI, delta)
		return false
	})
}

func lods(m *Machine, in *inst) {
	m.strings(in, func(delta uint64) bool {
		m.setReg(RAX, in.w, m.load(m.source(in), in.w))
		m.advance(in, RSI, delta)
		return false
	})
}

func cmps(m *Machine, in *inst) {
	m.strings(in, func(delta uint64) bool {
		a := m.load(m.source(in), in.w)
		b := m.load(m.dest(in), in.w)
		m.sub(a, b, 0, in.w)
		m.advance(in, RSI, delta)
		m.advance(in, RDI, delta)
		return m.flags&FlagZF != 0 == (in.rep == repNE)
	})
}

func scas(m *Machine, in *inst) {
	m.strings(in, func(delta uint64) bool {
		m.sub(m.reg(RAX, in.w), m.load(m.dest(in), in.w), 0, in.w)
		m.advance(in, RDI, delta)
		return m.flags&FlagZF != 0 == (in.rep == repNE)
	})
}
