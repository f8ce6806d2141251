package interp

import (
	"hash/crc32"
	"math/bits"
)

// inst.op of shifts and rotates, as encoded
const (
	opRol = iota
	opRor
	opRcl
	opRcr
	opShl
	opShr
	opSal
	opSar
)

func shiftImm(m *Machine, in *inst) { m.shiftRM(in, uint8(in.imm)) }

func shiftCL(m *Machine, in *inst) { m.shiftRM(in, uint8(m.r[RCX])) }

func (m *Machine) shiftRM(in *inst, count uint8) {
	if in.w == 8 {
		count &= 63
	} else {
		count &= 31
	}
	if !in.mem {
		m.setReg(in.rm, in.w, m.shift(in.op, in.w, m.reg(in.rm, in.w), uint(count)))
		return
	}
	a := m.ea(in)
	m.store(a, in.w, m.shift(in.op, in.w, m.load(a, in.w), uint(count)))
}

// shift does one shift or rotate. OF is defined for a count of one only, AF
// never by the shifts; a count of zero changes no flag.
func (m *Machine) shift(op, w uint8, v uint64, n uint) uint64 {
	if n == 0 {
		return v
	}
	size := 8 * uint(w)
	top := size - 1
	var r, cf, of uint64
	switch op {
	case opShl, opSal:
		r = v << n & sizeMask(w)
		if n <= size {
			cf = v >> (size - n) & 1
		}
		m.setFlags(zsp(r, w) | cf | (r>>top^cf)<<11)
		return r
	case opShr:
		r = v >> n
		cf = v >> (n - 1) & 1
		m.setFlags(zsp(r, w) | cf | v>>top<<11)
		return r
	case opSar:
		s := signExtend(v, w)
		r = uint64(s>>n) & sizeMask(w)
		m.setFlags(zsp(r, w) | uint64(s>>(n-1))&1)
		return r
	case opRol:
		k := n % size
		r = (v<<k | v>>(size-k)) & sizeMask(w)
		cf = r & 1
		of = r>>top ^ cf
	case opRor:
		k := n % size
		r = (v>>k | v<<(size-k)) & sizeMask(w)
		cf = r >> top
		of = cf ^ r>>(top-1)&1
	case opRcl:
		r, cf = v, m.flags&FlagCF
		for n %= size + 1; n > 0; n-- {
			r, cf = (r<<1|cf)&sizeMask(w), r>>top
		}
		of = r>>top ^ cf
	default:
		r, cf = v, m.flags&FlagCF
		for n %= size + 1; n > 0; n-- {
			r, cf = r>>1|cf<<top, r&1
		}
		of = (r>>top ^ r>>(top-1)) & 1
	}
	m.flags = m.flags&^(FlagCF|FlagOF) | cf | of<<11
	return r
}

func shiftDoubleImm(m *Machine, in *inst) { m.shiftDouble(in, uint(in.imm)) }

func shiftDoubleCL(m *Machine, in *inst) { m.shiftDouble(in, uint(m.r[RCX]&0xff)) }

// shiftDouble is shld (op 0) and shrd (op 1). For 16-bit operands a count
// above 16 gives an undefined result.
func (m *Machine) shiftDouble(in *inst, n uint) {
	if in.w == 8 {
		n &= 63
	} else {
		n &= 31
	}
	fill := m.reg(in.reg, in.w)
	m.modify(in, func(v uint64) uint64 {
		if n == 0 {
			return v
		}
		size := 8 * uint(in.w)
		if n > size {
			panic(Halt{Cause: Unsupported})
		}
		var r, cf uint64
		if in.op == 0 {
			r = (v<<n | fill>>(size-n)) & sizeMask(in.w)
			cf = v >> (size - n) & 1
		} else {
			r = (v>>n | fill<<(size-n)) & sizeMask(in.w)
			cf = v >> (n - 1) & 1
		}
		m.setFlags(zsp(r, in.w) | cf | (r^v)>>(size-1)<<11)
		return r
	})
}

// bitOp does bt, bts, btr, btc (op 0-3) on bit n of v.
func (m *Machine) bitOp(op uint8, v uint64, n uint) uint64 {
	m.flags = m.flags&^FlagCF | v>>n&1
	switch op {
	case 1:
		v |= 1 << n
	case 2:
		v &^= 1 << n
	case 3:
		v ^= 1 << n
	}
	return v
}

func (m *Machine) bitRM(in *inst, a uint64, n uint) {
	if !in.mem {
		v := m.bitOp(in.op, m.reg(in.rm, in.w), n)
		if in.op != 0 {
			m.setReg(in.rm, in.w, v)
		}
		return
	}
	v := m.bitOp(in.op, m.load(a, in.w), n)
	if in.op != 0 {
		m.store(a, in.w, v)
	}
}

func bitImm(m *Machine, in *inst) {
	m.bitRM(in, m.ea(in), uint(in.imm)&(8*uint(in.w)-1))
}

// bitReg takes a bit number that may lie outside the operand in memory.
func bitReg(m *Machine, in *inst) {
	n := signExtend(m.reg(in.reg, in.w), in.w)
	size := int64(in.w) * 8
	a := m.ea(in)
	if in.mem {
		a += uint64((n &^ (size - 1)) / 8)
	}
	m.bitRM(in, a, uint(n&(size-1)))
}

func zeroFlag(set bool) uint64 {
	if set {
		return FlagZF
	}
	return 0
}

func popcnt(m *Machine, in *inst) {
	v := m.rmOperand(in)
	m.setReg(in.reg, in.w, uint64(bits.OnesCount64(v)))
	m.setFlags(zeroFlag(v == 0))
}

func tzcnt(m *Machine, in *inst) {
	v := m.rmOperand(in)
	n := uint64(min(bits.TrailingZeros64(v), int(in.w)*8))
	m.setReg(in.reg, in.w, n)
	m.countFlags(v, n)
}

func lzcnt(m *Machine, in *inst) {
	v := m.rmOperand(in)
	n := uint64(bits.LeadingZeros64(v)) - (64 - 8*uint64(in.w))
	m.setReg(in.reg, in.w, n)
	m.countFlags(v, n)
}

// countFlags sets CF and ZF; the others are undefined.
func (m *Machine) countFlags(v, n uint64) {
	m.flags &^= FlagCF | FlagZF
	if v == 0 {
		m.flags |= FlagCF
	}
	m.flags |= zeroFlag(n == 0)
}

// bsf and bsr leave the destination alone if the operand is zero, as every
// x86-64 CPU does. All flags but ZF are undefined.
func bsf(m *Machine, in *inst) {
	v := m.rmOperand(in)
	m.flags = m.flags&^FlagZF | zeroFlag(v == 0)
	if v != 0 {
		m.setReg(in.reg, in.w, uint64(bits.TrailingZeros64(v)))
	}
}

func bsr(m *Machine, in *inst) {
	v := m.rmOperand(in)
	m.flags = m.flags&^FlagZF | zeroFlag(v == 0)
	if v != 0 {
		m.setReg(in.reg, in.w, uint64(bits.Len64(v)-1))
	}
}

func swapBytes(v uint64, w uint8) uint64 {
	return bits.ReverseBytes64(v) >> (64 - 8*uint(w))
}

// BMI1 and BMI2.

func andn(m *Machine, in *inst) {
	v := m.rmOperand(in)
	m.setReg(in.reg, in.w, m.logic(^m.reg(in.v, in.w)&v, in.w))
}

// blsGroup is blsr, blsmsk, blsi by op.
func blsGroup(m *Machine, in *inst) {
	v := m.rmOperand(in)
	var r uint64
	cf := uint64(0)
	if v == 0 {
		cf = 1
	}
	switch in.op {
	case 1:
		r = v & (v - 1)
	case 2:
		r = v ^ (v - 1)
	case 3:
		r, cf = v&-v, cf^1
	default:
		fault()
	}
	r &= sizeMask(in.w)
	m.setReg(in.v, in.w, r)
	m.setFlags(zsp(r, in.w) | cf)
}

func bzhi(m *Machine, in *inst) {
	v := m.rmOperand(in)
	n := m.r[in.v&15] & 0xff
	cf := uint64(1)
	if n < uint64(in.w)*8 {
		v &= 1<<n - 1
		cf = 0
	}
	m.setReg(in.reg, in.w, v)
	m.setFlags(zsp(v, in.w) | cf)
}

func bextr(m *Machine, in *inst) {
	v := m.rmOperand(in)
	c := m.r[in.v&15]
	start, n := c&0xff, c>>8&0xff
	v >>= start
	if n < 64 {
		v &= 1<<n - 1
	}
	m.setReg(in.reg, in.w, v)
	m.setFlags(zsp(v, in.w))
}

func pext(m *Machine, in *inst) {
	mask := m.rmOperand(in)
	v := m.reg(in.v, in.w)
	var r uint64
	for bit := uint64(1); mask != 0; bit <<= 1 {
		if v&(mask&-mask) != 0 {
			r |= bit
		}
		mask &= mask - 1
	}
	m.setReg(in.reg, in.w, r)
}

func pdep(m *Machine, in *inst) {
	mask := m.rmOperand(in)
	v := m.reg(in.v, in.w)
	var r uint64
	for ; mask != 0; v >>= 1 {
		if v&1 != 0 {
			r |= mask & -mask
		}
		mask &= mask - 1
	}
	m.setReg(in.reg, in.w, r)
}

func mulx(m *Machine, in *inst) {
	v := m.rmOperand(in)
	hi, lo := bits.Mul64(m.reg(RDX, in.w), v)
	if in.w == 4 {
		hi = lo >> 32
	}
	m.setReg(in.v, in.w, lo)
	m.setReg(in.reg, in.w, hi)
}

func rorx(m *Machine, in *inst) {
	v := m.rmOperand(in)
	n := uint(in.imm) & (8*uint(in.w) - 1)
	m.setReg(in.reg, in.w, v>>n|v<<(8*uint(in.w)-n))
}

func (m *Machine) countV(in *inst) uint {
	return uint(m.r[in.v&15]) & (8*uint(in.w) - 1)
}

func shlx(m *Machine, in *inst) { m.setReg(in.reg, in.w, m.rmOperand(in)<<m.countV(in)) }
func shrx(m *Machine, in *inst) { m.setReg(in.reg, in.w, m.rmOperand(in)>>m.countV(in)) }
func sarx(m *Machine, in *inst) {
	m.setReg(in.reg, in.w, uint64(signExtend(m.rmOperand(in), in.w)>>m.countV(in)))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crc32c accumulates without the inversions of the usual checksum.
func crc32c(m *Machine, in *inst) {
	v := m.rmOperand(in)
	c := uint32(m.r[in.reg&15])
	for i := uint8(0); i < in.w; i++ {
		c = castagnoli[byte(c)^byte(v)] ^ c>>8
		v >>= 8
	}
	m.setReg(in.reg, in.op, uint64(c))
}
