package interp

// inst.flags
const (
	usesVector = 1 << iota // needs Machine.vec
	usesFloat              // depends on MXCSR
	usesX87                // depends on which x87 exceptions are masked
	isLocked               // atomic read-modify-write
)

// inst.seg, index into Machine.segBase
const (
	segNone = iota
	segFS
	segGS
)

const (
	noReg    = 16 // always reads as zero: absent base or index
	highByte = 20 // ah, ch, dh, bh are 20-23
)

// inst is a decoded instruction, of which a burst reads thousands that no cache has any more: it is a line of one.
type inst struct {
	fn   func(*Machine, *inst)
	at   uint64 // its address
	next uint64 // that of the next instruction
	disp uint64 // displacement, the next instruction's address added if RIP-relative
	imm  uint64 // immediate, sign-extended; the target of a direct jump

	base, index, scale uint8 // into Machine.r; scale is a shift
	seg                uint8
	mem                bool // the r/m operand is memory
	addr32             bool

	reg, rm, v uint8 // operands of modrm.reg, modrm.rm and VEX.vvvv
	w          uint8 // operand size in bytes
	op         uint8 // which of the operations or conditions a handler does
	rep        uint8 // 0, 0xf3 or 0xf2
	flags      uint8

	*vecForm // noForm of those that are neither vector nor x87 instructions
}

// ea is the address of the memory operand.
func (m *Machine) ea(in *inst) uint64 {
	a := m.address(in)
	if in.addr32 {
		a = uint64(uint32(a))
	}
	return a + m.segBase[in.seg&3]
}

// reg reads the low w bytes of general register r.
func (m *Machine) reg(r, w uint8) uint64 {
	v := m.r[r&31]
	switch w {
	case 8:
		return v
	case 4:
		return uint64(uint32(v))
	case 2:
		return uint64(uint16(v))
	}
	if r >= highByte {
		return m.r[(r-highByte)&31] >> 8 & 0xff
	}
	return v & 0xff
}

// setReg writes the low w bytes; writing 4 clears the upper half.
func (m *Machine) setReg(r, w uint8, v uint64) {
	p := &m.r[r&31]
	switch w {
	case 8:
		*p = v
	case 4:
		*p = uint64(uint32(v))
	case 2:
		*p = *p&^0xffff | v&0xffff
	default:
		if r >= highByte {
			p = &m.r[(r-highByte)&31]
			*p = *p&^0xff00 | v&0xff<<8
			return
		}
		*p = *p&^0xff | v&0xff
	}
}

// rmOperand reads the r/m operand.
func (m *Machine) rmOperand(in *inst) uint64 {
	if in.mem {
		return m.load(m.ea(in), in.w)
	}
	return m.reg(in.rm, in.w)
}

// setRM writes the r/m operand.
func (m *Machine) setRM(in *inst, v uint64) {
	if in.mem {
		m.store(m.ea(in), in.w, v)
		return
	}
	m.setReg(in.rm, in.w, v)
}
