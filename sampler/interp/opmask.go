package interp

// opmask decodes the instructions on k registers, which are VEX-encoded: W and
// the prefix give the width. False means that op is none.
func (d *decoder) opmask(op byte) bool {
	in := d.in
	var w uint8 // bits that the instruction works on
	switch {
	case d.pp == 0 && !d.wbit:
		w = 16
	case d.pp == 1 && !d.wbit:
		w = 8
	case d.pp == 0:
		w = 64
	case d.pp == 1:
		w = 32
	}
	var fn func(*Machine, *inst)
	threeOperands := false
	switch {
	case d.opmap == 1 && op >= 0x41 && op <= 0x4b && op != 0x43 && op != 0x48 && op != 0x49:
		if d.pp > 1 {
			return false
		}
		threeOperands = op != 0x44
		fn = kLogic
		in.op = op & 15
		if op == 0x4b { // kunpck: the width is that of a half
			w = map[uint8]uint8{8: 8, 16: 16, 64: 32}[w]
		}
	case d.opmap == 1 && (op == 0x98 || op == 0x99) && d.pp < 2:
		fn = kTest
		in.op = op & 1
	case d.opmap == 1 && (op == 0x90 || op == 0x91) && d.pp < 2:
		fn = kLoad
		if op == 0x91 {
			fn = kStore
		}
	case d.opmap == 1 && (op == 0x92 || op == 0x93):
		switch {
		case d.pp == 3 && !d.wbit:
			w = 32
		case d.pp == 3:
			w = 64
		case d.wbit || d.pp == 2:
			return false
		}
		fn = kFromGPR
		if op == 0x93 {
			fn = kToGPR
		}
	case d.opmap == 3 && op >= 0x30 && op <= 0x33 && d.pp == 1:
		w = 8 << (op & 1 << 1)
		if d.wbit {
			w *= 2
		}
		fn = kShift
		in.op = op >> 1 & 1
	default:
		return false
	}
	in.flags |= usesVector
	if threeOperands != (d.ll == 1) || d.vvvv != 0 && !threeOperands || w == 0 {
		fn = undefined
	}
	isMem := d.peek() < 0xc0
	if isMem && op != 0x90 && op != 0x91 || !isMem && op == 0x91 || d.opmap == 3 && isMem {
		fn = undefined
	}
	d.modRM(1)
	in.v = d.vvvv
	in.size = w
	in.w = w / 8
	if d.opmap == 3 {
		in.imm = uint64(d.byte())
	}
	if fn != nil && threeOperands && in.v > 7 || in.reg > 7 && op != 0x93 {
		fn = undefined
	}
	in.fn = fn
	return true
}

func (m *Machine) setK(in *inst, v uint64) { m.vec.K[in.reg&7] = v & lowBits(int(in.size)) }

func kLogic(m *Machine, in *inst) {
	a, b := m.vec.K[in.v&7], m.vec.K[in.rm&7]
	var r uint64
	switch in.op {
	case 1:
		r = a & b
	case 2:
		r = ^a & b
	case 4:
		r = ^b
	case 5:
		r = a | b
	case 6:
		r = ^(a ^ b)
	case 7:
		r = a ^ b
	case 10:
		r = a + b
	case 11:
		half := lowBits(int(in.size))
		m.vec.K[in.reg&7] = a&half<<in.size | b&half
		return
	}
	m.setK(in, r)
}

// kTest is kortest (op 0) and ktest (op 1).
func kTest(m *Machine, in *inst) {
	a, b := m.vec.K[in.reg&7], m.vec.K[in.rm&7]
	all := lowBits(int(in.size))
	x, y := a&b, ^a&b
	if in.op == 0 {
		x, y = a|b, ^(a | b)
	}
	f := zeroFlag(x&all == 0)
	if y&all == 0 {
		f |= FlagCF
	}
	m.setFlags(f)
}

func kLoad(m *Machine, in *inst) {
	if in.mem {
		m.setK(in, m.load(m.ea(in), in.w))
		return
	}
	m.setK(in, m.vec.K[in.rm&7])
}

func kStore(m *Machine, in *inst) { m.store(m.ea(in), in.w, m.vec.K[in.reg&7]) }

func kFromGPR(m *Machine, in *inst) { m.setK(in, m.r[in.rm&15]) }

func kToGPR(m *Machine, in *inst) { m.r[in.reg&15] = m.vec.K[in.rm&7] & lowBits(int(in.size)) }

// kShift is kshiftr (op 0) and kshiftl (op 1).
func kShift(m *Machine, in *inst) {
	v := m.vec.K[in.rm&7] & lowBits(int(in.size))
	if in.op == 0 {
		v >>= in.imm
	} else {
		v <<= in.imm
	}
	m.setK(in, v)
}
