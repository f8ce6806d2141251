package a64

// sizeOf is the size of ftype: single or double precision.
func sizeOf(ftype uint32) (size uint8, ok bool) { return 2 + uint8(ftype&1), ftype < 2 }

// float decodes scalar floating point.
func (in *inst) float(w word32) handler {
	var ok bool
	ftype := w.bits(23, 22)
	in.size, ok = sizeOf(ftype)
	if !w.is(21) {
		if !ok {
			return nil
		}
		in.shift = 64 - uint8(w.bits(15, 10))
		if !in.wide && in.shift > 32 {
			return nil
		}
		in.flags |= usesFloat
		switch w.bits(20, 16) {
		case 0b00010, 0b00011:
			in.op = uint8(w.bit(16))
			in.rn = source(in.rn)
			return intToFloat
		case 0b11000, 0b11001:
			in.op, in.mode = uint8(w.bit(16)), roundZero
			in.rd = target(in.rd)
			return floatToInt
		}
		return nil
	}
	if w.bits(15, 10) == 0 {
		return in.floatInt(w, ftype, ok)
	}
	if in.wide || !ok {
		return nil
	}
	in.op = uint8(w.bits(15, 12))
	switch {
	case w.bits(11, 10) == 1:
		in.kind, in.imm = uint8(w.bits(15, 12)), uint64(w.bits(3, 0))
		in.flags |= usesFloat
		return conditionalFloat
	case w.bits(11, 10) == 2:
		if in.op > 8 {
			return nil
		}
		in.flags |= usesFloat
		return floatTwo
	case w.bits(11, 10) == 3:
		in.kind = uint8(w.bits(15, 12))
		return selectFloat
	case w.is(12):
		if w.bits(9, 5) != 0 {
			return nil
		}
		in.imm = expandFloat(uint64(w.bits(20, 13)), in.size)
		return setFloat
	case w.is(13):
		if w.bits(15, 14) != 0 || w.bits(2, 0) != 0 {
			return nil
		}
		in.op = uint8(w.bit(3)) // with zero
		if in.op == 1 && in.rm != 0 {
			return nil // no such encoding is written
		}
		in.flags |= usesFloat
		return compareFloat
	case w.is(14):
		return in.floatOne(w)
	}
	return nil
}

func (in *inst) floatOne(w word32) handler {
	in.op = uint8(w.bits(20, 15))
	if in.op > 2 {
		in.flags |= usesFloat
	}
	switch in.op {
	case 0, 1, 2, 3:
		return floatOne
	case 4, 5:
		in.kind = in.op - 2
		if in.kind == in.size {
			return nil
		}
		return convertFloat
	case 8, 9, 10, 11, 12, 14, 15:
		in.mode = in.op - 8
		if in.op > 12 {
			in.mode = roundNearest // as FPCR has it
		}
		return roundFloat
	}
	return nil
}

// floatInt decodes conversions to and from integers, and moves.
func (in *inst) floatInt(w word32, ftype uint32, ok bool) handler {
	rmode, opcode := uint8(w.bits(20, 19)), w.bits(18, 16)
	in.mode, in.op, in.shift = rmode, uint8(w.bit(16)), 0
	toInt := opcode != 2 && opcode != 3 && opcode != 7
	if toInt {
		in.rd = target(in.rd)
	} else {
		in.rn = source(in.rn)
	}
	switch {
	case opcode >= 6:
		if ftype == 2 && rmode == 1 && in.wide {
			if opcode == 6 {
				return moveFromHigh
			}
			return moveToHigh
		}
		if !ok || rmode != 0 || (in.size == 3) != in.wide {
			return nil
		}
		if opcode == 6 {
			return moveFromFloat
		}
		return moveToFloat
	case !ok:
		return nil
	case opcode < 2:
	case rmode != 0:
		return nil
	case opcode < 4:
		in.flags |= usesFloat
		return intToFloat
	default:
		in.mode = roundAway
	}
	in.flags |= usesFloat
	return floatToInt
}

func (m *Machine) fp(n uint8, size uint8) uint64 { return m.vec.V[n&31][0] & sizeMask(size) }

func (m *Machine) setFP(n uint8, v uint64) { m.vec.V[n&31] = Vec{v} }

func (in *inst) width() uint {
	if in.wide {
		return 64
	}
	return 32
}

func intToFloat(m *Machine, in *inst) {
	v := m.r[in.rn&63]
	if !in.wide {
		v = uint64(uint32(v))
		if in.op == 0 {
			v = uint64(int64(int32(v)))
		}
	}
	m.setFP(in.rd, intToFP(in.size, v, in.op == 0, uint(in.shift)))
}

func floatToInt(m *Machine, in *inst) {
	m.r[in.rd&63] = fpToInt(in.size, m.fp(in.rn, in.size), in.mode, in.op == 0, in.width(), uint(in.shift))
}

func moveFromFloat(m *Machine, in *inst) { m.r[in.rd&63] = m.fp(in.rn, in.size) }
func moveToFloat(m *Machine, in *inst)   { m.setFP(in.rd, m.r[in.rn&63]&sizeMask(in.size)) }
func moveFromHigh(m *Machine, in *inst)  { m.r[in.rd&63] = m.vec.V[in.rn&31][1] }
func moveToHigh(m *Machine, in *inst)    { m.vec.V[in.rd&31][1] = m.r[in.rn&63] }

func conditionalFloat(m *Machine, in *inst) {
	if m.holds(in.kind) {
		m.nzcv = fpCompare(in.size, m.fp(in.rn, in.size), m.fp(in.rm, in.size))
	} else {
		m.nzcv = uint8(in.imm)
	}
}

func compareFloat(m *Machine, in *inst) {
	b := uint64(0)
	if in.op == 0 {
		b = m.fp(in.rm, in.size)
	}
	m.nzcv = fpCompare(in.size, m.fp(in.rn, in.size), b)
}

// floatTwo is by op.
func floatTwo(m *Machine, in *inst) {
	s := in.size
	a, b := m.fp(in.rn, s), m.fp(in.rm, s)
	var r uint64
	switch in.op {
	case 0:
		r = fpMul(s, a, b)
	case 1:
		r = fpDiv(s, a, b)
	case 2:
		r = fpAdd(s, a, b)
	case 3:
		r = fpSub(s, a, b)
	case 4:
		r = fpMax(s, a, b)
	case 5:
		r = fpMin(s, a, b)
	case 6:
		r = fpMaxnm(s, a, b)
	case 7:
		r = fpMinnm(s, a, b)
	default:
		r = fpMul(s, a, b) ^ signBit(s)
	}
	m.setFP(in.rd, r)
}

// floatOne is fmov, fabs, fneg and fsqrt by op.
func floatOne(m *Machine, in *inst) {
	a := m.fp(in.rn, in.size)
	switch in.op {
	case 1:
		a &^= signBit(in.size)
	case 2:
		a ^= signBit(in.size)
	case 3:
		a = fpSqrt(in.size, a)
	}
	m.setFP(in.rd, a)
}

func convertFloat(m *Machine, in *inst) {
	m.setFP(in.rd, fpConvert(in.size, in.kind, m.fp(in.rn, in.size)))
}

func roundFloat(m *Machine, in *inst) {
	m.setFP(in.rd, fpRound(in.size, m.fp(in.rn, in.size), in.mode))
}

func selectFloat(m *Machine, in *inst) {
	n := in.rm
	if m.holds(in.kind) {
		n = in.rn
	}
	m.setFP(in.rd, m.fp(n, in.size))
}

func setFloat(m *Machine, in *inst) { m.setFP(in.rd, in.imm) }

// floatMultiplyAdd decodes fmadd, fmsub, fnmadd and fnmsub.
func (in *inst) floatMultiplyAdd(w word32) handler {
	var ok bool
	if in.size, ok = sizeOf(w.bits(23, 22)); !ok {
		return nil
	}
	in.op = uint8(w.bit(21)<<1 | w.bit(15))
	in.flags |= usesFloat
	return multiplyAddFloat
}

func multiplyAddFloat(m *Machine, in *inst) {
	s := in.size
	c, a, b := m.fp(in.ra, s), m.fp(in.rn, s), m.fp(in.rm, s)
	if in.op>>1 != in.op&1 {
		a ^= signBit(s)
	}
	if in.op>>1 == 1 {
		c ^= signBit(s)
	}
	m.setFP(in.rd, fpFused(s, c, a, b))
}
