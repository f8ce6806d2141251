package a64

import "math/bits"

// dataImmediate decodes "data processing -- immediate" (Arm ARM, C4.1.92).
func (in *inst) dataImmediate(pc uint64, w word32) handler {
	in.rd, in.rn = target(w.rd()), source(w.rn())
	switch w.bits(25, 23) {
	case 0, 1: // adr, adrp
		offset := w.signed(23, 5)<<2 | int64(w.bits(30, 29))
		in.imm = pc + uint64(offset)
		if w.is(31) {
			in.imm = pc&^0xfff + uint64(offset<<12)
		}
		return move
	case 2:
		in.imm, in.rn = uint64(w.bits(21, 10))<<(12*w.bit(22)), w.rn()
		subtract := w.is(30)
		if w.is(29) {
			if subtract {
				in.imm = ^in.imm & in.mask
				return subsImmediate
			}
			return addsImmediate
		}
		in.rd = w.rd()
		if subtract {
			in.imm = -in.imm
		}
		return addImmediate
	case 4:
		var ok bool
		in.imm, ok = bitmask(w.bit(22), w.bits(21, 16), w.bits(15, 10))
		if !ok || w.is(22) && !in.wide {
			return nil
		}
		in.imm &= in.mask
		in.op = uint8(w.bits(30, 29))
		if in.op != 3 {
			in.rd = w.rd()
		}
		return logicImmediate
	case 5:
		shift := 16 * w.bits(22, 21)
		if shift >= 32 && !in.wide {
			return nil
		}
		in.imm, in.shift = uint64(w.bits(20, 5))<<shift, uint8(shift)
		switch w.bits(30, 29) {
		case 0:
			in.imm = ^in.imm & in.mask
			return move
		case 2:
			return move
		case 3:
			return moveKeep
		}
	case 6:
		return in.bitfield(w)
	case 7:
		in.rm, in.shift = source(w.rm()), uint8(w.bits(15, 10))
		if w.bits(30, 29) != 0 || w.is(21) || w.is(22) != in.wide || !in.wide && in.shift >= 32 {
			return nil
		}
		return extract
	}
	return nil
}

func move(m *Machine, in *inst) { m.r[in.rd&63] = in.imm }

func moveKeep(m *Machine, in *inst) {
	p := &m.r[in.rd&63]
	*p = (*p&^(0xffff<<(in.shift&63)) | in.imm) & in.mask
}

func addImmediate(m *Machine, in *inst) { m.r[in.rd&63] = (m.r[in.rn&63] + in.imm) & in.mask }

func addsImmediate(m *Machine, in *inst) {
	m.r[in.rd&63] = m.addFlags(m.r[in.rn&63], in.imm, 0, in.wide)
}

func subsImmediate(m *Machine, in *inst) {
	m.r[in.rd&63] = m.addFlags(m.r[in.rn&63], in.imm, 1, in.wide)
}

func logicImmediate(m *Machine, in *inst) {
	m.r[in.rd&63] = m.logic(in, m.r[in.rn&63], in.imm)
}

// logic is and, orr, eor or ands by op.
func (m *Machine) logic(in *inst, a, b uint64) uint64 {
	switch in.op {
	case 0:
		return a & b & in.mask
	case 1:
		return (a | b) & in.mask
	case 2:
		return (a ^ b) & in.mask
	}
	v := a & b & in.mask
	m.nzcv = nz(v, in.wide)
	return v
}

// bitfield is sbfm, bfm and ubfm: a field is shifted up to the top of the
// register, and down to where it goes.
func (in *inst) bitfield(w word32) handler {
	immr, imms := uint8(w.bits(21, 16)), uint8(w.bits(15, 10))
	width := uint8(32)
	if in.wide {
		width = 64
	}
	if w.is(22) != in.wide || immr >= width || imms >= width {
		return nil
	}
	low, length := uint8(0), imms-immr+1
	if imms < immr {
		low, length = width-immr, imms+1
	}
	in.shift = 63 - imms
	in.kind = 64 - length - low
	switch w.bits(30, 29) {
	case 0:
		return signedField
	case 1:
		in.imm = (1<<length - 1) << low
		return insertField
	case 2:
		return unsignedField
	}
	return nil
}

func signedField(m *Machine, in *inst) {
	m.r[in.rd&63] = uint64(int64(m.r[in.rn&63]<<(in.shift&63))>>(in.kind&63)) & in.mask
}

func unsignedField(m *Machine, in *inst) {
	m.r[in.rd&63] = m.r[in.rn&63] << (in.shift & 63) >> (in.kind & 63)
}

func insertField(m *Machine, in *inst) {
	p := &m.r[in.rd&63]
	field := m.r[in.rn&63] << (in.shift & 63) >> (in.kind & 63)
	*p = (*p&^in.imm | field&in.imm) & in.mask
}

func extract(m *Machine, in *inst) {
	hi, lo := m.r[in.rn&63], m.r[in.rm&63]
	if in.wide {
		if in.shift == 0 {
			m.r[in.rd&63] = lo
			return
		}
		m.r[in.rd&63] = lo>>(in.shift&63) | hi<<(64-in.shift&63)
		return
	}
	m.r[in.rd&63] = (hi<<32 | lo&(1<<32-1)) >> (in.shift & 63) & in.mask
}

// The bits of Machine.nzcv.
const (
	bitV = 1 << iota
	bitC
	bitZ
	bitN
)

// nz is N and Z of a result; C and V are clear.
func nz(v uint64, wide bool) uint8 {
	if v == 0 {
		return bitZ
	}
	if wide {
		return uint8(v >> 63 << 3)
	}
	return uint8(v >> 31 & 1 << 3)
}

// addFlags is a + b + carry, and sets the flags.
func (m *Machine) addFlags(a, b, carry uint64, wide bool) uint64 {
	if wide {
		sum, out := bits.Add64(a, b, carry)
		m.nzcv = nz(sum, true) | uint8(out)<<1 | uint8((a^sum)&(b^sum)>>63)
		return sum
	}
	a, b = a&(1<<32-1), b&(1<<32-1)
	sum := a + b + carry
	out := uint8(sum >> 32)
	sum &= 1<<32 - 1
	m.nzcv = nz(sum, false) | out<<1 | uint8((a^sum)&(b^sum)>>31&1)
	return sum
}

// condTable has for each condition the values of nzcv under which it holds.
var condTable = func() (t [16]uint16) {
	for f := range 16 {
		n, z, c, v := f>>3&1 == 1, f>>2&1 == 1, f>>1&1 == 1, f&1 == 1
		for i, holds := range [8]bool{z, c, n, v, c && !z, n == v, n == v && !z, true} {
			if holds || i == 7 {
				t[2*i] |= 1 << f
			}
			if !holds || i == 7 { // al and nv both always hold
				t[2*i+1] |= 1 << f
			}
		}
	}
	return
}()

func (m *Machine) holds(cond uint8) bool { return condTable[cond&15]>>(m.nzcv&15)&1 == 1 }
