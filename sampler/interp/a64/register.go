package a64

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// dataRegister decodes "data processing -- register" (Arm ARM, C4.1.95).
func (in *inst) dataRegister(w word32) handler {
	in.rd, in.rn, in.rm = target(w.rd()), source(w.rn()), source(w.rm())
	in.kind, in.shift = uint8(w.bits(23, 22)), uint8(w.bits(15, 10))
	switch w.bits(28, 24) {
	case 0b01010:
		if in.shift >= 32 && !in.wide {
			return nil
		}
		in.op = uint8(w.bits(30, 29))
		if w.is(21) {
			return logicNot
		}
		if in.op == 1 && in.rn == regZero && in.shift == 0 && in.kind == 0 {
			return moveRegister
		}
		return logicShifted
	case 0b01011:
		in.op = uint8(w.bits(30, 29))
		if w.is(21) {
			in.kind, in.shift = uint8(w.bits(15, 13)), uint8(w.bits(12, 10))
			if w.bits(23, 22) != 0 || in.shift > 4 {
				return nil
			}
			in.rn = w.rn()
			if in.op&1 == 0 {
				in.rd = w.rd()
			}
			return addExtended
		}
		if in.kind == 3 || in.shift >= 32 && !in.wide {
			return nil
		}
		return addShifted
	case 0b11010:
		return in.dataMixed(w)
	case 0b11011:
		in.ra = source(w.ra())
		in.op = uint8(w.bits(23, 21)<<1 | w.bit(15))
		if w.bits(30, 29) != 0 {
			return nil
		}
		switch in.op {
		case 0, 1:
			return multiplyAdd
		case 2, 3, 10, 11:
			if in.wide {
				return multiplyAddLong
			}
		case 4, 12:
			if in.wide {
				return multiplyHigh
			}
		}
	}
	return nil
}

// dataMixed decodes what is left of it.
func (in *inst) dataMixed(w word32) handler {
	opcode := w.bits(15, 10)
	flags := w.is(29)
	in.op = uint8(w.bit(30))
	switch w.bits(23, 21) {
	case 0:
		switch {
		case opcode == 0 && flags:
			return addCarryFlags
		case opcode == 0:
			return addCarry
		case w.bits(31, 29) == 5 && opcode&31 == 1 && !w.is(4):
			in.shift, in.imm = uint8(w.bits(20, 15)), uint64(w.bits(3, 0))
			return rotateFlags
		case w.bits(31, 29) == 1 && w.bits(20, 15) == 0 && opcode&15 == 2 && w.bits(4, 0) == 13:
			in.shift = 24 - uint8(8*w.bit(14))
			return setFlags
		}
	case 2:
		in.imm, in.kind = uint64(w.bits(3, 0)), uint8(w.bits(15, 12))
		if !flags || w.is(10) || w.is(4) {
			return nil
		}
		if w.is(11) {
			in.rm, in.shift = regZero, w.rm()
		} else {
			in.shift = 0
		}
		return conditionalCompare
	case 4:
		in.kind = uint8(w.bits(15, 12))
		in.op = in.op<<1 | uint8(w.bit(10))
		if flags || w.is(11) {
			return nil
		}
		return conditionalSelect
	case 6:
		if flags {
			return nil
		}
		if in.op == 1 {
			return in.oneSource(w, opcode)
		}
		switch {
		case opcode == 2:
			return divideUnsigned
		case opcode == 3:
			return divideSigned
		case opcode>>2 == 2:
			in.kind = uint8(opcode & 3)
			return shiftVariable
		case opcode>>3 == 2:
			in.size = uint8(opcode & 3)
			if (in.size == 3) != in.wide {
				return nil
			}
			in.op = uint8(opcode >> 2 & 1)
			return crc
		}
	}
	return nil
}

func (in *inst) oneSource(w word32, opcode uint32) handler {
	switch {
	case w.rm() == 0:
		in.op = uint8(opcode)
		switch {
		case opcode == 0:
			return reverseBits
		case opcode <= 2 || opcode == 3 && in.wide:
			return reverseBytes
		case opcode == 4:
			return countZeros
		case opcode == 5:
			return countSign
		}
	case w.rm() == 1 && in.wide:
		// Of pacia to autdzb and xpaci, xpacd: those ending in z have no modifier,
		// which must be written as register 31.
		if opcode >= 8 && w.rn() != 31 || opcode > 17 {
			return nil
		}
		if opcode < 16 && opcode>>2&1 == 0 {
			return nop // signing: see the package's documentation
		}
		return strip
	}
	return nil
}

// strip takes the signature off a pointer.
func strip(m *Machine, in *inst) {
	p := &m.r[in.rd&63]
	*p = stripped(*p)
}

// stripped is a pointer without its signature, of the 48-bit addresses that Linux
// gives to programs that do not ask for larger ones. The top byte is the program's
// own, but in the kernel's half.
func stripped(v uint64) uint64 {
	if v>>55&1 == 1 {
		return v | 0xff7f<<48
	}
	return v &^ (0x7f << 48)
}

// shifted is the last operand: lsl, lsr, asr or ror.
func (m *Machine) shifted(in *inst) uint64 {
	v := m.r[in.rm&63]
	if in.shift == 0 {
		return v
	}
	return shift(v, in.kind, in.shift, in.wide)
}

func shift(v uint64, kind, n uint8, wide bool) uint64 {
	if wide {
		n &= 63
		switch kind {
		case 0:
			return v << n
		case 1:
			return v >> n
		case 2:
			return uint64(int64(v) >> n)
		}
		return bits.RotateLeft64(v, -int(n))
	}
	x := uint32(v)
	n &= 31
	switch kind {
	case 0:
		x <<= n
	case 1:
		x >>= n
	case 2:
		x = uint32(int32(x) >> n)
	default:
		x = bits.RotateLeft32(x, -int(n))
	}
	return uint64(x)
}

// extended is uxtb to uxtx and sxtb to sxtx.
func extended(v uint64, kind uint8) uint64 {
	drop := (64 - 8<<(kind&3)) & 63
	if kind < 4 {
		return v << drop >> drop
	}
	return uint64(int64(v<<drop) >> drop)
}

func moveRegister(m *Machine, in *inst) { m.r[in.rd&63] = m.r[in.rm&63] & in.mask }

func logicShifted(m *Machine, in *inst) {
	m.r[in.rd&63] = m.logic(in, m.r[in.rn&63], m.shifted(in))
}

func logicNot(m *Machine, in *inst) {
	m.r[in.rd&63] = m.logic(in, m.r[in.rn&63], ^m.shifted(in))
}

func addShifted(m *Machine, in *inst)  { m.add(in, m.shifted(in)) }
func addExtended(m *Machine, in *inst) { m.add(in, extended(m.r[in.rm&63], in.kind)<<(in.shift&7)) }

// add is add, adds, sub or subs by op.
func (m *Machine) add(in *inst, b uint64) {
	a := m.r[in.rn&63]
	switch in.op {
	case 0:
		m.r[in.rd&63] = (a + b) & in.mask
	case 1:
		m.r[in.rd&63] = m.addFlags(a, b, 0, in.wide)
	case 2:
		m.r[in.rd&63] = (a - b) & in.mask
	default:
		m.r[in.rd&63] = m.addFlags(a, ^b, 1, in.wide)
	}
}

// carried is the last operand of adc and, inverted, sbc.
func (m *Machine) carried(in *inst) (b, carry uint64) {
	b = m.r[in.rm&63]
	if in.op == 1 {
		b = ^b
	}
	return b, uint64(m.nzcv >> 1 & 1)
}

func addCarry(m *Machine, in *inst) {
	b, carry := m.carried(in)
	m.r[in.rd&63] = (m.r[in.rn&63] + b + carry) & in.mask
}

func addCarryFlags(m *Machine, in *inst) {
	b, carry := m.carried(in)
	m.r[in.rd&63] = m.addFlags(m.r[in.rn&63], b, carry, in.wide)
}

// rotateFlags is rmif, setFlags setf8 and setf16.
func rotateFlags(m *Machine, in *inst) {
	v := uint8(bits.RotateLeft64(m.r[in.rn&63], -int(in.shift)))
	mask := uint8(in.imm)
	m.nzcv = m.nzcv&^mask | v&mask
}

func setFlags(m *Machine, in *inst) {
	v := uint32(m.r[in.rn&63]) << (in.shift & 31)
	m.nzcv = m.nzcv&bitC | nz(uint64(v), false)&(bitN|bitZ) | uint8(v>>31^uint32(m.r[in.rn&63])>>(32-in.shift&31)&1)
}

func conditionalCompare(m *Machine, in *inst) {
	if !m.holds(in.kind) {
		m.nzcv = uint8(in.imm)
		return
	}
	b := m.r[in.rm&63] + uint64(in.shift) // one of them is zero
	if in.op == 1 {
		m.addFlags(m.r[in.rn&63], ^b, 1, in.wide)
	} else {
		m.addFlags(m.r[in.rn&63], b, 0, in.wide)
	}
}

// conditionalSelect is csel, csinc, csinv or csneg by op.
func conditionalSelect(m *Machine, in *inst) {
	v := m.r[in.rn&63]
	if !m.holds(in.kind) {
		v = m.r[in.rm&63]
		switch in.op {
		case 1:
			v++
		case 2:
			v = ^v
		case 3:
			v = -v
		}
	}
	m.r[in.rd&63] = v & in.mask
}

func divideUnsigned(m *Machine, in *inst) {
	a, b := m.r[in.rn&63]&in.mask, m.r[in.rm&63]&in.mask
	if b == 0 {
		m.r[in.rd&63] = 0
		return
	}
	m.r[in.rd&63] = a / b
}

func divideSigned(m *Machine, in *inst) {
	a, b := int64(m.r[in.rn&63]), int64(m.r[in.rm&63])
	if !in.wide {
		a, b = int64(int32(a)), int64(int32(b))
	}
	v := int64(0)
	switch b {
	case 0:
	case -1:
		v = -a // the smallest number stays, and Go's division would do the same
	default:
		v = a / b
	}
	m.r[in.rd&63] = uint64(v) & in.mask
}

func shiftVariable(m *Machine, in *inst) {
	m.r[in.rd&63] = shift(m.r[in.rn&63], in.kind, uint8(m.r[in.rm&63]), in.wide)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crc is crc32b to crc32x and, by op, crc32cb to crc32cx: without the inversion
// that Go's package makes before and after.
func crc(m *Machine, in *inst) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], m.r[in.rm&63])
	table := crc32.IEEETable
	if in.op == 1 {
		table = castagnoli
	}
	m.r[in.rd&63] = uint64(^crc32.Update(^uint32(m.r[in.rn&63]), table, b[:1<<(in.size&3)]))
}

func reverseBits(m *Machine, in *inst) {
	v := bits.Reverse64(m.r[in.rn&63])
	if !in.wide {
		v >>= 32
	}
	m.r[in.rd&63] = v
}

// reverseBytes is by op: of every 2, 4 or 8 bytes.
func reverseBytes(m *Machine, in *inst) {
	v := m.r[in.rn&63]
	switch in.op {
	case 1:
		const even = 0x00ff00ff00ff00ff
		v = v>>8&even | v&even<<8
	case 2:
		v = bits.ReverseBytes64(v)
		v = v>>32 | v<<32
	default:
		v = bits.ReverseBytes64(v)
	}
	m.r[in.rd&63] = v & in.mask
}

func countZeros(m *Machine, in *inst) {
	n := bits.LeadingZeros64(m.r[in.rn&63] & in.mask)
	if !in.wide {
		n -= 32
	}
	m.r[in.rd&63] = uint64(n)
}

func countSign(m *Machine, in *inst) {
	v := m.r[in.rn&63]
	if !in.wide {
		v = uint64(int64(int32(v)))
	}
	n := bits.LeadingZeros64(v^uint64(int64(v)>>63)) - 1
	if !in.wide {
		n -= 32
	}
	m.r[in.rd&63] = uint64(n)
}

// multiplyAdd is madd and msub.
func multiplyAdd(m *Machine, in *inst) {
	v := m.r[in.rn&63] * m.r[in.rm&63]
	if in.op == 1 {
		v = -v
	}
	m.r[in.rd&63] = (m.r[in.ra&63] + v) & in.mask
}

// multiplyAddLong is smaddl, smsubl, umaddl and umsubl.
func multiplyAddLong(m *Machine, in *inst) {
	a, b := m.r[in.rn&63], m.r[in.rm&63]
	var v uint64
	if in.op&8 == 0 {
		v = uint64(int64(int32(a)) * int64(int32(b)))
	} else {
		v = uint64(uint32(a)) * uint64(uint32(b))
	}
	if in.op&1 == 1 {
		v = -v
	}
	m.r[in.rd&63] = m.r[in.ra&63] + v
}

// multiplyHigh is smulh and umulh.
func multiplyHigh(m *Machine, in *inst) {
	a, b := m.r[in.rn&63], m.r[in.rm&63]
	hi, _ := bits.Mul64(a, b)
	if in.op == 4 {
		hi -= uint64(int64(a)>>63)&b + uint64(int64(b)>>63)&a
	}
	m.r[in.rd&63] = hi
}
