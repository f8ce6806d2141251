package a64

// branchSystem decodes "branches, exception generating and system instructions"
// (Arm ARM, C4.1.93).
func (in *inst) branchSystem(pc uint64, w word32) handler {
	in.rd = source(w.rd()) // what cbz and the like look at
	in.rn = source(w.rn())
	switch {
	case w.bits(30, 26) == 0b00101:
		in.imm = pc + uint64(w.signed(25, 0)*4)
		if w.is(31) {
			return call
		}
		return jump
	case w.bits(30, 25) == 0b011010:
		in.imm = pc + uint64(w.signed(23, 5)*4)
		if w.is(24) {
			return jumpNonzero
		}
		return jumpZero
	case w.bits(30, 25) == 0b011011:
		in.imm = pc + uint64(w.signed(18, 5)*4)
		in.mask = 1 << (w.bit(31)<<5 | w.bits(23, 19))
		if w.is(24) {
			return jumpNonzero
		}
		return jumpZero
	case w.bits(31, 24) == 0b01010100:
		if w.is(4) { // bc.cond
			return nil
		}
		in.imm, in.kind = pc+uint64(w.signed(23, 5)*4), uint8(w.bits(3, 0))
		return jumpIf
	case w.bits(31, 24) == 0b11010100:
		switch {
		case w.bits(23, 21) == 0 && w.bits(4, 0) == 1:
			return enterKernel
		case w.bits(23, 21) == 1 && w.bits(4, 0) == 0:
			return fault // brk
		}
	case w.bits(31, 22) == 0b1101010100:
		return in.system(w)
	case w.bits(31, 25) == 0b1101011:
		return in.branchRegister(w)
	}
	return nil
}

// branchRegister decodes br, blr, ret and their forms that check a signature.
func (in *inst) branchRegister(w word32) handler {
	signed := w.is(11)
	if w.bits(20, 16) != 31 || w.bits(15, 12) != 0 || !signed && (w.is(10) || w.rd() != 0) {
		return nil
	}
	in.op = uint8(w.bits(15, 10))
	modified := w.is(24) // braa, blraa: the modifier is a register, else it is zero
	if signed && !modified && w.rd() != 31 || !signed && modified {
		return nil
	}
	switch w.bits(23, 21) {
	case 0:
		return jumpRegister
	case 1:
		return callRegister
	case 2:
		if signed {
			if w.rn() != 31 || modified {
				return nil
			}
			in.rn = regLink
		}
		return jumpRegister
	}
	return nil
}

func jump(m *Machine, in *inst) { m.next = in.imm }

func call(m *Machine, in *inst) {
	m.r[regLink] = m.next
	m.next = in.imm
}

func jumpIf(m *Machine, in *inst) {
	if m.holds(in.kind) {
		m.next = in.imm
	}
}

func jumpZero(m *Machine, in *inst) {
	if m.r[in.rd&63]&in.mask == 0 {
		m.next = in.imm
	}
}

func jumpNonzero(m *Machine, in *inst) {
	if m.r[in.rd&63]&in.mask != 0 {
		m.next = in.imm
	}
}

func jumpRegister(m *Machine, in *inst) {
	to := m.r[in.rn&63]
	if in.op != 0 {
		to = stripped(to)
	}
	if to&3 != 0 {
		fault(m, in)
	}
	m.next = to
}

func callRegister(m *Machine, in *inst) {
	link := m.next
	jumpRegister(m, in)
	m.r[regLink] = link
}
