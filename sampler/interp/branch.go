package interp

func enterKernel(*Machine, *inst) { panic(Halt{Cause: Syscall}) }

func jcc(m *Machine, in *inst) {
	if m.cond(in.op) {
		m.rip = in.imm
	}
}

func jmp(m *Machine, in *inst) { m.rip = in.imm }

func jmpRM(m *Machine, in *inst) { m.rip = m.rmOperand(in) }

func call(m *Machine, in *inst) {
	m.push(in.next, 8)
	m.rip = in.imm
}

func callRM(m *Machine, in *inst) {
	to := m.rmOperand(in)
	m.push(in.next, 8)
	m.rip = to
}

func ret(m *Machine, in *inst) {
	m.rip = m.load(m.r[RSP], 8)
	m.r[RSP] += 8 + in.imm
}

// loop is loopne, loope, loop and jrcxz by op.
func loop(m *Machine, in *inst) {
	w := uint8(8)
	if in.addr32 {
		w = 4
	}
	c := m.reg(RCX, w)
	if in.op == 3 {
		if c == 0 {
			m.rip = in.imm
		}
		return
	}
	c--
	m.setReg(RCX, w, c)
	take := c&sizeMask(w) != 0
	switch in.op {
	case 0:
		take = take && m.flags&FlagZF == 0
	case 1:
		take = take && m.flags&FlagZF != 0
	}
	if take {
		m.rip = in.imm
	}
}
