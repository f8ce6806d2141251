package interp

import "math/bits"

// The string compares of SSE4.2.
var vecStrings = []vecOp{
	{"66 0f3a 60", "lv", "b imm l0 un", compareStrings, nil}, // explicit lengths, mask
	{"66 0f3a 61", "lv", "b imm l0 un", compareStrings, nil}, // explicit lengths, index
	{"66 0f3a 62", "lv", "b imm l0 un", compareStrings, nil}, // up to a zero, mask
	{"66 0f3a 63", "lv", "b imm l0 un", compareStrings, nil}, // up to a zero, index
}

// compareStrings is pcmpestrm, pcmpestri, pcmpistrm and pcmpistri by op.
func compareStrings(m *Machine, in *inst) {
	b := m.vecSource(in)
	a := &m.vec.Z[in.reg&15]
	size := uint8(1 + in.imm&1)
	n := 16 / int(size)
	var la, lb int
	if in.op&2 == 0 {
		la, lb = explicitLength(m.reg(RAX, in.w), in.w, n), explicitLength(m.reg(RDX, in.w), in.w, n)
	} else {
		la, lb = implicitLength(a, size, n), implicitLength(b, size, n)
	}
	res := aggregate(a, b, la, lb, n, size, in.imm)
	switch in.imm >> 4 & 3 {
	case 1:
		res ^= lowBits(n)
	case 3:
		res ^= lowBits(lb)
	}
	f := uint64(0)
	if res != 0 {
		f |= FlagCF
	}
	if lb < n {
		f |= FlagZF
	}
	if la < n {
		f |= FlagSF
	}
	m.setFlags(f | res&1<<11)

	last := in.imm&0x40 != 0
	if in.op&1 != 0 {
		at := n
		if res != 0 {
			at = bits.TrailingZeros64(res)
			if last {
				at = bits.Len64(res) - 1
			}
		}
		m.r[RCX] = uint64(at)
		return
	}
	m.tmp = Vec{res}
	if last { // a mask of elements instead of bits
		for i := range n {
			m.tmp.setElem(i, size, -(res >> i & 1))
		}
	}
	plain := m.as(in)
	plain.dst = 0
	m.vecPut(plain)
}

func explicitLength(v uint64, w uint8, n int) int {
	s := signExtend(v, w)
	if s < 0 {
		s = -s
	}
	if s < 0 || s > int64(n) {
		return n
	}
	return int(s)
}

func implicitLength(v *Vec, size uint8, n int) int {
	for i := range n {
		if v.elem(i, size) == 0 {
			return i
		}
	}
	return n
}

// aggregate compares by bits 2 and 3 of the immediate: any of a set, ranges,
// element by element, or the start of a substring.
func aggregate(a, b *Vec, la, lb, n int, size uint8, imm uint64) (res uint64) {
	elem := func(v *Vec, i int) int64 {
		x := v.elem(i, size)
		if imm&2 != 0 {
			return signExtend(x, size)
		}
		return int64(x)
	}
	for j := range n {
		var t bool
		switch imm >> 2 & 3 {
		case 0:
			for i := 0; i < la && j < lb; i++ {
				t = t || elem(a, i) == elem(b, j)
			}
		case 1:
			for i := 0; i+1 < la && j < lb; i += 2 {
				t = t || elem(a, i) <= elem(b, j) && elem(b, j) <= elem(a, i+1)
			}
		case 2:
			t = j >= la && j >= lb || j < la && j < lb && elem(a, j) == elem(b, j)
		default:
			t = true
			for i := 0; i < la && i+j < n; i++ {
				t = t && i+j < lb && elem(a, i) == elem(b, i+j)
			}
		}
		if t {
			res |= 1 << j
		}
	}
	return res
}
