package interp

import "math/bits"

// parity[b] is FlagPF if b has an even number of ones.
var parity = func() (t [256]uint8) {
	for i := range t {
		if bits.OnesCount(uint(i))%2 == 0 {
			t[i] = FlagPF
		}
	}
	return
}()

// zsp is ZF, SF and PF of a result of w bytes, upper bits clear.
func zsp(r uint64, w uint8) uint64 {
	f := uint64(parity[byte(r)]) | r>>((8*uint(w)-8)&63)&FlagSF
	if r == 0 {
		f |= FlagZF
	}
	return f
}

func (m *Machine) setFlags(f uint64) { m.flags = m.flags&^arithFlags | f }

// carryFlags turns the vector of carries out of each bit into CF, AF and OF.
func carryFlags(c uint64, w uint8) uint64 {
	top := 8*uint(w) - 1
	return c>>(top&63)&1 | c<<1&FlagAF | (c>>(top&63)^c>>((top-1)&63))&1<<11
}

// add returns a + b + carry and sets the flags.
func (m *Machine) add(a, b, carry uint64, w uint8) uint64 {
	r := (a + b + carry) & sizeMask(w)
	m.setFlags(zsp(r, w) | carryFlags(a&b|(a|b)&^r, w))
	return r
}

// sub returns a - b - borrow and sets the flags.
func (m *Machine) sub(a, b, borrow uint64, w uint8) uint64 {
	r := (a - b - borrow) & sizeMask(w)
	m.setFlags(zsp(r, w) | carryFlags(^a&b|(^a|b)&r, w))
	return r
}

// logic sets the flags of and, or, xor and test. AF is undefined; CPUs clear it.
func (m *Machine) logic(r uint64, w uint8) uint64 {
	m.setFlags(zsp(r, w))
	return r
}

// cond evaluates condition code cc, the low four bits of jcc's opcode.
func (m *Machine) cond(cc uint8) bool {
	f := m.flags
	var t bool
	switch cc >> 1 & 7 {
	case 0:
		t = f&FlagOF != 0
	case 1:
		t = f&FlagCF != 0
	case 2:
		t = f&FlagZF != 0
	case 3:
		t = f&(FlagCF|FlagZF) != 0
	case 4:
		t = f&FlagSF != 0
	case 5:
		t = f&FlagPF != 0
	case 6:
		t = (f>>7^f>>11)&1 != 0
	default:
		t = (f>>7^f>>11)&1 != 0 || f&FlagZF != 0
	}
	return t != (cc&1 != 0)
}
