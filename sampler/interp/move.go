package interp

func nop(*Machine, *inst) {}

// flushLine changes nothing, but faults as a load would.
func flushLine(m *Machine, in *inst) { m.at(m.ea(in)) }

func movRMReg(m *Machine, in *inst) {
	v := m.reg(in.reg, in.w)
	if in.mem {
		m.store(m.ea(in), in.w, v)
		return
	}
	m.setReg(in.rm, in.w, v)
}

func movRegRM(m *Machine, in *inst) {
	if in.mem {
		m.setReg(in.reg, in.w, m.load(m.ea(in), in.w))
		return
	}
	m.setReg(in.reg, in.w, m.reg(in.rm, in.w))
}

func movRMImm(m *Machine, in *inst) { m.setRM(in, in.imm) }

func movzx(m *Machine, in *inst) { m.setReg(in.reg, in.op, m.rmOperand(in)) }

func movsx(m *Machine, in *inst) {
	m.setReg(in.reg, in.op, uint64(signExtend(m.rmOperand(in), in.w)))
}

func lea(m *Machine, in *inst) { m.setReg(in.reg, in.w, m.ea(in)) }

// cmov loads its operand in either case.
func cmov(m *Machine, in *inst) {
	v := m.rmOperand(in)
	if !m.cond(in.op) {
		v = m.reg(in.reg, in.w)
	}
	m.setReg(in.reg, in.w, v)
}

func setcc(m *Machine, in *inst) {
	var v uint64
	if m.cond(in.op) {
		v = 1
	}
	m.setRM(in, v)
}

func xlat(m *Machine, in *inst) {
	a := m.r[RBX] + m.r[RAX]&0xff
	if in.addr32 {
		a = uint64(uint32(a))
	}
	m.setReg(RAX, 1, m.load(a+m.segBase[in.seg&3], 1))
}

func bswap(m *Machine, in *inst) {
	m.setReg(in.rm, in.w, swapBytes(m.reg(in.rm, in.w), in.w))
}

func movbeLoad(m *Machine, in *inst) {
	m.setReg(in.reg, in.w, swapBytes(m.load(m.ea(in), in.w), in.w))
}

func movbeStore(m *Machine, in *inst) {
	m.store(m.ea(in), in.w, swapBytes(m.reg(in.reg, in.w), in.w))
}

// fsgsbase is rdfsbase, rdgsbase, wrfsbase, wrgsbase by op.
func fsgsbase(m *Machine, in *inst) {
	base := &m.segBase[segFS+in.op&1]
	if in.op < 2 {
		m.setReg(in.rm, in.w, *base)
		return
	}
	v := m.reg(in.rm, in.w)
	if v != uint64(int64(v<<16)>>16) {
		fault() // not canonical
	}
	*base = v
}

// Flags.

func cmc(m *Machine, _ *inst) { m.flags ^= FlagCF }
func clc(m *Machine, _ *inst) { m.flags &^= FlagCF }
func stc(m *Machine, _ *inst) { m.flags |= FlagCF }
func cld(m *Machine, _ *inst) { m.flags &^= FlagDF }
func std(m *Machine, _ *inst) { m.flags |= FlagDF }

const ahFlags = FlagCF | FlagPF | FlagAF | FlagZF | FlagSF

func sahf(m *Machine, _ *inst) {
	m.flags = m.flags&^ahFlags | m.r[RAX]>>8&ahFlags
}

func lahf(m *Machine, _ *inst) {
	m.r[RAX] = m.r[RAX]&^0xff00 | (m.flags&ahFlags|2)<<8
}

// Stack.

func (m *Machine) push(v uint64, w uint8) {
	a := m.r[RSP] - uint64(w)
	m.store(a, w, v)
	m.r[RSP] = a
}

func push(m *Machine, in *inst) { m.push(m.rmOperand(in), in.w) }

func pushImm(m *Machine, in *inst) { m.push(in.imm, in.w) }

func popReg(m *Machine, in *inst) {
	v := m.load(m.r[RSP], in.w)
	m.r[RSP] += uint64(in.w)
	m.setReg(in.rm, in.w, v)
}

func popRM(m *Machine, in *inst) {
	v := m.load(m.r[RSP], in.w)
	if !in.mem {
		m.r[RSP] += uint64(in.w)
		m.setReg(in.rm, in.w, v)
		return
	}
	// An address formed with rsp uses its value after the pop.
	m.r[RSP] += uint64(in.w)
	a := m.ea(in)
	m.r[RSP] -= uint64(in.w)
	m.store(a, in.w, v)
	m.r[RSP] += uint64(in.w)
}

// pushf pushes all flags but RF and VM, which the CPU clears in the copy.
func pushf(m *Machine, in *inst) { m.push(m.flags&^(1<<16|1<<17), in.w) }

// popf changes the flags that user code may; setting TF, which would make the
// thread trap, ends the burst.
func popf(m *Machine, in *inst) {
	const settable = arithFlags | FlagDF | 1<<14 | 1<<18 | 1<<21
	v := m.load(m.r[RSP], in.w)
	if v&(1<<8) != 0 {
		panic(Halt{Cause: Unsupported}) // single-steps itself
	}
	mask := uint64(settable)
	if in.w == 2 {
		mask &= 0xffff
	}
	m.flags = m.flags&^mask | v&mask
	m.r[RSP] += uint64(in.w)
}

func leave(m *Machine, in *inst) {
	v := m.load(m.r[RBP], in.w)
	m.r[RSP] = m.r[RBP] + uint64(in.w)
	m.setReg(RBP, in.w, v)
}

func enter(m *Machine, in *inst) {
	m.at(m.r[RSP] - 8 - in.imm) // which the CPU checks
	m.push(m.r[RBP], 8)
	m.r[RBP] = m.r[RSP]
	m.r[RSP] -= in.imm
}
