package interp

import "math/bits"

// inst.op of the alu handlers, as encoded
const (
	aluAdd = iota
	aluOr
	aluAdc
	aluSbb
	aluAnd
	aluSub
	aluXor
	aluCmp
)

func (m *Machine) alu(op, w uint8, a, b uint64) uint64 {
	switch op & 7 {
	case aluAdd:
		return m.add(a, b, 0, w)
	case aluOr:
		return m.logic(a|b, w)
	case aluAdc:
		return m.add(a, b, m.flags&FlagCF, w)
	case aluSbb:
		return m.sub(a, b, m.flags&FlagCF, w)
	case aluAnd:
		return m.logic(a&b, w)
	case aluXor:
		return m.logic(a^b, w)
	}
	return m.sub(a, b, 0, w)
}

// aluTo does rm = rm op b.
func (m *Machine) aluTo(in *inst, b uint64) {
	if !in.mem {
		r := m.alu(in.op, in.w, m.reg(in.rm, in.w), b)
		if in.op != aluCmp {
			m.setReg(in.rm, in.w, r)
		}
		return
	}
	a := m.ea(in)
	r := m.alu(in.op, in.w, m.load(a, in.w), b)
	if in.op != aluCmp {
		m.store(a, in.w, r)
	}
}

func aluRMReg(m *Machine, in *inst) { m.aluTo(in, m.reg(in.reg, in.w)) }

func aluRMImm(m *Machine, in *inst) { m.aluTo(in, in.imm&sizeMask(in.w)) }

func aluRegRM(m *Machine, in *inst) {
	b := m.rmOperand(in)
	r := m.alu(in.op, in.w, m.reg(in.reg, in.w), b)
	if in.op != aluCmp {
		m.setReg(in.reg, in.w, r)
	}
}

func testRMReg(m *Machine, in *inst) {
	m.logic(m.rmOperand(in)&m.reg(in.reg, in.w), in.w)
}

func testRMImm(m *Machine, in *inst) {
	m.logic(m.rmOperand(in)&in.imm&sizeMask(in.w), in.w)
}

// modify replaces rm by f of it.
func (m *Machine) modify(in *inst, f func(v uint64) uint64) {
	if !in.mem {
		m.setReg(in.rm, in.w, f(m.reg(in.rm, in.w)))
		return
	}
	a := m.ea(in)
	m.store(a, in.w, f(m.load(a, in.w)))
}

func inc(m *Machine, in *inst) {
	m.modify(in, func(v uint64) uint64 {
		cf := m.flags & FlagCF
		v = m.add(v, 1, 0, in.w)
		m.flags = m.flags&^FlagCF | cf
		return v
	})
}

func dec(m *Machine, in *inst) {
	m.modify(in, func(v uint64) uint64 {
		cf := m.flags & FlagCF
		v = m.sub(v, 1, 0, in.w)
		m.flags = m.flags&^FlagCF | cf
		return v
	})
}

func not(m *Machine, in *inst) {
	m.modify(in, func(v uint64) uint64 { return ^v })
}

func neg(m *Machine, in *inst) {
	m.modify(in, func(v uint64) uint64 { return m.sub(0, v, 0, in.w) })
}

func xchg(m *Machine, in *inst) {
	r := m.reg(in.reg, in.w)
	if in.mem {
		a := m.ea(in)
		v := m.load(a, in.w)
		m.store(a, in.w, r)
		m.setReg(in.reg, in.w, v)
		return
	}
	v := m.reg(in.rm, in.w)
	m.setReg(in.rm, in.w, r)
	m.setReg(in.reg, in.w, v)
}

func xadd(m *Machine, in *inst) {
	r := m.reg(in.reg, in.w)
	if in.mem {
		a := m.ea(in)
		v := m.load(a, in.w)
		m.store(a, in.w, m.add(v, r, 0, in.w))
		m.setReg(in.reg, in.w, v)
		return
	}
	v := m.reg(in.rm, in.w)
	s := m.add(v, r, 0, in.w)
	m.setReg(in.reg, in.w, v)
	m.setReg(in.rm, in.w, s)
}

// cmpxchg writes memory in either case, as the CPU does under lock.
func cmpxchg(m *Machine, in *inst) {
	var a, v uint64
	if in.mem {
		a = m.ea(in)
		v = m.load(a, in.w)
	} else {
		v = m.reg(in.rm, in.w)
	}
	acc := m.reg(RAX, in.w)
	equal := acc == v
	next := v
	if equal {
		next = m.reg(in.reg, in.w)
	}
	m.sub(acc, v, 0, in.w)
	if in.mem {
		m.store(a, in.w, next)
	} else if equal {
		m.setReg(in.rm, in.w, next)
	}
	if !equal {
		m.setReg(RAX, in.w, v)
	}
}

func cmpxchg8b(m *Machine, in *inst) {
	a := m.ea(in)
	v := m.load(a, 8)
	acc := m.r[RDX]<<32 | uint64(uint32(m.r[RAX]))
	if v == acc {
		m.store(a, 8, m.r[RCX]<<32|uint64(uint32(m.r[RBX])))
		m.flags |= FlagZF
		return
	}
	m.store(a, 8, v)
	m.flags &^= FlagZF
	m.r[RAX], m.r[RDX] = uint64(uint32(v)), v>>32
}

func cmpxchg16b(m *Machine, in *inst) {
	a := m.ea(in)
	if a%16 != 0 {
		fault()
	}
	m.log(a, 16, false)
	lo, hi := m.Peek(a, 8), m.Peek(a+8, 8)
	m.log(a, 16, true)
	if lo == m.r[RAX] && hi == m.r[RDX] {
		m.Poke(a, 8, m.r[RBX])
		m.Poke(a+8, 8, m.r[RCX])
		m.flags |= FlagZF
		return
	}
	m.Poke(a, 8, lo)
	m.Poke(a+8, 8, hi)
	m.flags &^= FlagZF
	m.r[RAX], m.r[RDX] = lo, hi
}

func mul(m *Machine, in *inst) {
	v := m.rmOperand(in)
	a := m.reg(RAX, in.w)
	var hi, lo uint64
	if in.w == 8 {
		hi, lo = bits.Mul64(a, v)
	} else {
		p := a * v
		lo, hi = p&sizeMask(in.w), p>>(8*uint(in.w))
	}
	m.product(in.w, hi, lo, hi != 0)
}

// product stores a double-width result in ah:al or rdx:rax. SF, ZF, AF and PF
// are undefined.
func (m *Machine) product(w uint8, hi, lo uint64, overflow bool) {
	if w == 1 {
		m.setReg(RAX, 2, hi<<8|lo)
	} else {
		m.setReg(RAX, w, lo)
		m.setReg(RDX, w, hi)
	}
	m.carryOverflow(overflow)
}

func (m *Machine) carryOverflow(set bool) {
	m.flags &^= FlagCF | FlagOF
	if set {
		m.flags |= FlagCF | FlagOF
	}
}

func signExtend(v uint64, w uint8) int64 {
	s := 64 - 8*uint(w)
	return int64(v<<(s&63)) >> (s & 63)
}

// mulSigned is the full product of two signed 64-bit numbers.
func mulSigned(a, b int64) (hi int64, lo uint64) {
	h, lo := bits.Mul64(uint64(a), uint64(b))
	hi = int64(h)
	if a < 0 {
		hi -= b
	}
	if b < 0 {
		hi -= a
	}
	return hi, lo
}

func imul(m *Machine, in *inst) {
	v := signExtend(m.rmOperand(in), in.w)
	a := signExtend(m.reg(RAX, in.w), in.w)
	hi, lo := mulSigned(a, v)
	if in.w < 8 {
		p := lo
		lo = p & sizeMask(in.w)
		m.product(in.w, p>>(8*uint(in.w))&sizeMask(in.w), lo, int64(p) != signExtend(lo, in.w))
		return
	}
	m.product(in.w, uint64(hi), lo, hi != int64(lo)>>63)
}

// mulTruncated is the product of two-operand imul.
func (m *Machine) mulTruncated(in *inst, a, b int64) {
	hi, lo := mulSigned(a, b)
	r := signExtend(lo, in.w)
	m.setReg(in.reg, in.w, uint64(r))
	m.carryOverflow(hi != int64(lo)>>63 || r != int64(lo))
}

func imulReg(m *Machine, in *inst) {
	v := signExtend(m.rmOperand(in), in.w)
	m.mulTruncated(in, signExtend(m.reg(in.reg, in.w), in.w), v)
}

func imulImm(m *Machine, in *inst) {
	m.mulTruncated(in, signExtend(m.rmOperand(in), in.w), int64(in.imm))
}

func div(m *Machine, in *inst) {
	v := m.rmOperand(in)
	hi, lo := m.dividend(in.w)
	if hi >= v {
		fault() // also division by zero
	}
	var q, r uint64
	if in.w == 8 {
		q, r = bits.Div64(hi, lo, v)
	} else {
		n := hi<<(8*uint(in.w)) | lo
		q, r = n/v, n%v
	}
	m.quotient(in.w, q, r)
}

func (m *Machine) dividend(w uint8) (hi, lo uint64) {
	if w == 1 {
		return m.r[RAX] >> 8 & 0xff, m.r[RAX] & 0xff
	}
	return m.reg(RDX, w), m.reg(RAX, w)
}

// quotient stores the results of a division; all flags are undefined.
func (m *Machine) quotient(w uint8, q, r uint64) {
	if w == 1 {
		m.setReg(RAX, 2, q&0xff|r&0xff<<8)
		return
	}
	m.setReg(RAX, w, q)
	m.setReg(RDX, w, r)
}

func idiv(m *Machine, in *inst) {
	v := signExtend(m.rmOperand(in), in.w)
	hi, lo := m.dividend(in.w)
	if in.w < 8 {
		n := signExtend(hi<<(8*uint(in.w))|lo, 2*in.w)
		if v == 0 || v == -1 && n == -1<<63 {
			fault()
		}
		q := n / v
		if q != signExtend(uint64(q), in.w) {
			fault()
		}
		m.quotient(in.w, uint64(q), uint64(n%v))
		return
	}
	nneg, vneg := int64(hi) < 0, v < 0
	d := uint64(v)
	if nneg {
		lo = -lo
		hi = ^hi
		if lo == 0 {
			hi++
		}
	}
	if vneg {
		d = -d
	}
	if hi >= d {
		fault()
	}
	q, r := bits.Div64(hi, lo, d)
	if nneg != vneg {
		if q > 1<<63 {
			fault()
		}
		q = -q
	} else if q >= 1<<63 {
		fault()
	}
	if nneg {
		r = -r
	}
	m.quotient(8, q, r)
}

func cbw(m *Machine, in *inst) {
	m.setReg(RAX, in.w, uint64(signExtend(m.r[RAX], in.w/2)))
}

func cwd(m *Machine, in *inst) {
	m.setReg(RDX, in.w, uint64(signExtend(m.r[RAX], in.w)>>63))
}

// addCarry is adcx (op 0, through CF) and adox (op 1, through OF).
func addCarry(m *Machine, in *inst) {
	v := m.rmOperand(in)
	flag := uint(0)
	if in.op == 1 {
		flag = 11
	}
	a := m.reg(in.reg, in.w)
	s, c1 := bits.Add64(a, v, m.flags>>flag&1)
	if in.w == 4 {
		c1 = s >> 32
	}
	m.setReg(in.reg, in.w, s)
	m.flags = m.flags&^(1<<flag) | c1<<flag
}
