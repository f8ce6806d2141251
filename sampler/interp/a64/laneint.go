package a64

import "math/bits"

// What lanes of integers compute; see laneOp. Results may have bits beyond the lane.

func lane1(holds bool) uint64 {
	if holds {
		return ^uint64(0)
	}
	return 0
}

func laneAdd(_ *Machine, _ uint8, _, a, b uint64) uint64 { return a + b }
func laneSub(_ *Machine, _ uint8, _, a, b uint64) uint64 { return a - b }
func laneMul(_ *Machine, _ uint8, _, a, b uint64) uint64 { return a * b }
func laneMla(_ *Machine, _ uint8, d, a, b uint64) uint64 { return d + a*b }
func laneMls(_ *Machine, _ uint8, d, a, b uint64) uint64 { return d - a*b }

func laneAddPair(_ *Machine, _ uint8, d, a, b uint64) uint64 { return d + a + b }

func laneCmeq(_ *Machine, _ uint8, _, a, b uint64) uint64  { return lane1(a == b) }
func laneCmtst(_ *Machine, _ uint8, _, a, b uint64) uint64 { return lane1(a&b != 0) }
func laneCmhi(_ *Machine, _ uint8, _, a, b uint64) uint64  { return lane1(a > b) }
func laneCmhs(_ *Machine, _ uint8, _, a, b uint64) uint64  { return lane1(a >= b) }
func laneCmgt(_ *Machine, s uint8, _, a, b uint64) uint64 {
	return lane1(signed(a, s) > signed(b, s))
}
func laneCmge(_ *Machine, s uint8, _, a, b uint64) uint64 {
	return lane1(signed(a, s) >= signed(b, s))
}
func laneCmle0(_ *Machine, s uint8, _, a, _ uint64) uint64 { return lane1(signed(a, s) <= 0) }
func laneCmlt0(_ *Machine, s uint8, _, a, _ uint64) uint64 { return lane1(signed(a, s) < 0) }

func laneUmax(_ *Machine, _ uint8, _, a, b uint64) uint64 { return max(a, b) }
func laneUmin(_ *Machine, _ uint8, _, a, b uint64) uint64 { return min(a, b) }
func laneSmax(_ *Machine, s uint8, _, a, b uint64) uint64 {
	return uint64(max(signed(a, s), signed(b, s)))
}
func laneSmin(_ *Machine, s uint8, _, a, b uint64) uint64 {
	return uint64(min(signed(a, s), signed(b, s)))
}

func laneUabd(_ *Machine, _ uint8, _, a, b uint64) uint64 { return max(a, b) - min(a, b) }
func laneSabd(_ *Machine, s uint8, _, a, b uint64) uint64 {
	x, y := signed(a, s), signed(b, s)
	return uint64(max(x, y)) - uint64(min(x, y))
}
func laneUaba(m *Machine, s uint8, d, a, b uint64) uint64 { return d + laneUabd(m, s, 0, a, b) }
func laneSaba(m *Machine, s uint8, d, a, b uint64) uint64 { return d + laneSabd(m, s, 0, a, b) }

// Halving: of lanes of up to 32 bits.
func laneUhadd(_ *Machine, _ uint8, _, a, b uint64) uint64  { return (a + b) >> 1 }
func laneUrhadd(_ *Machine, _ uint8, _, a, b uint64) uint64 { return (a + b + 1) >> 1 }
func laneUhsub(_ *Machine, _ uint8, _, a, b uint64) uint64  { return uint64(int64(a-b) >> 1) }
func laneShadd(_ *Machine, s uint8, _, a, b uint64) uint64 {
	return uint64((signed(a, s) + signed(b, s)) >> 1)
}
func laneSrhadd(_ *Machine, s uint8, _, a, b uint64) uint64 {
	return uint64((signed(a, s) + signed(b, s) + 1) >> 1)
}
func laneShsub(_ *Machine, s uint8, _, a, b uint64) uint64 {
	return uint64((signed(a, s) - signed(b, s)) >> 1)
}

// stickyQC is FPSR.QC: something was saturated.
const stickyQC = 1 << 27

func (m *Machine) saturated(v uint64) uint64 {
	m.vec.FPSR |= stickyQC
	return v
}

// bounds of a signed lane.
func bounds(s uint8) (low, high int64) {
	high = int64(sizeMask(s) >> 1)
	return -high - 1, high
}

func (m *Machine) saturateSigned(v int64, s uint8) uint64 {
	low, high := bounds(s)
	switch {
	case v < low:
		return m.saturated(uint64(low))
	case v > high:
		return m.saturated(uint64(high))
	}
	return uint64(v)
}

func (m *Machine) saturateUnsigned(v int64, s uint8) uint64 {
	switch {
	case v < 0:
		return m.saturated(0)
	case uint64(v) > sizeMask(s):
		return m.saturated(sizeMask(s))
	}
	return uint64(v)
}

func laneUqadd(m *Machine, s uint8, _, a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 || sum > sizeMask(s) {
		return m.saturated(sizeMask(s))
	}
	return sum
}

func laneUqsub(m *Machine, _ uint8, _, a, b uint64) uint64 {
	if a < b {
		return m.saturated(0)
	}
	return a - b
}

func laneSqadd(m *Machine, s uint8, _, a, b uint64) uint64 {
	x, y := signed(a, s), signed(b, s)
	if sum := x + y; s < 3 || (x^sum)&(y^sum) >= 0 {
		return m.saturateSigned(sum, s)
	}
	low, high := bounds(s)
	if x < 0 {
		return m.saturated(uint64(low))
	}
	return m.saturated(uint64(high))
}

func laneSqsub(m *Machine, s uint8, _, a, b uint64) uint64 {
	x, y := signed(a, s), signed(b, s)
	if d := x - y; s < 3 || (x^y)&(x^d) >= 0 {
		return m.saturateSigned(d, s)
	}
	low, high := bounds(s)
	if x < 0 {
		return m.saturated(uint64(low))
	}
	return m.saturated(uint64(high))
}

// laneSqdmulh is sqdmulh, laneSqrdmulh rounds.
func laneSqdmulh(m *Machine, s uint8, _, a, b uint64) uint64 {
	return m.saturateSigned(signed(a, s)*signed(b, s)>>(8<<s-1), s)
}

func laneSqrdmulh(m *Machine, s uint8, _, a, b uint64) uint64 {
	n := 8<<s - 1
	return m.saturateSigned((signed(a, s)*signed(b, s)+1<<(n-1))>>n, s)
}

// shiftLane is v shifted left by n or, if that is negative, right, with rounding
// if that is asked for. v is a signed number or not. exact says that no bits were lost on
// the left, as saturation asks.
func shiftLane(v uint64, s uint8, n int, isSigned, round bool) (r uint64, exact bool) {
	width := 8 << s
	if n >= 0 {
		if n >= width {
			return 0, v == 0
		}
		r = v << n
		if isSigned {
			return r, signed(r, s)>>n == signed(v, s)
		}
		return r & sizeMask(s), r&sizeMask(s)>>n == v
	}
	n = -n
	if isSigned {
		x := signed(v, s)
		if n >= width {
			// Only the sign is left, which rounding takes to 0.
			if round {
				return 0, true
			}
			return uint64(x >> 63), true
		}
		r := x >> n
		if round {
			r += x >> (n - 1) & 1
		}
		return uint64(r), true
	}
	if n > width {
		return 0, true
	}
	r = v >> (n - 1) >> 1
	if round {
		r += v >> (n - 1) & 1
	}
	return r, true
}

// The shifts by a register: its lowest byte is how far.
func laneUshl(_ *Machine, s uint8, _, a, b uint64) uint64 {
	r, _ := shiftLane(a, s, int(int8(b)), false, false)
	return r
}
func laneSshl(_ *Machine, s uint8, _, a, b uint64) uint64 {
	r, _ := shiftLane(a, s, int(int8(b)), true, false)
	return r
}
func laneUrshl(_ *Machine, s uint8, _, a, b uint64) uint64 {
	r, _ := shiftLane(a, s, int(int8(b)), false, true)
	return r
}
func laneSrshl(_ *Machine, s uint8, _, a, b uint64) uint64 {
	r, _ := shiftLane(a, s, int(int8(b)), true, true)
	return r
}
func laneUqshl(m *Machine, s uint8, _, a, b uint64) uint64 {
	return m.saturatingShift(a, s, int(int8(b)), false, false)
}
func laneSqshl(m *Machine, s uint8, _, a, b uint64) uint64 {
	return m.saturatingShift(a, s, int(int8(b)), true, false)
}
func laneUqrshl(m *Machine, s uint8, _, a, b uint64) uint64 {
	return m.saturatingShift(a, s, int(int8(b)), false, true)
}
func laneSqrshl(m *Machine, s uint8, _, a, b uint64) uint64 {
	return m.saturatingShift(a, s, int(int8(b)), true, true)
}

func (m *Machine) saturatingShift(v uint64, s uint8, n int, isSigned, round bool) uint64 {
	r, exact := shiftLane(v, s, n, isSigned, round)
	if exact {
		return r
	}
	if !isSigned {
		return m.saturated(sizeMask(s))
	}
	low, high := bounds(s)
	if signed(v, s) < 0 {
		return m.saturated(uint64(low))
	}
	return m.saturated(uint64(high))
}

// laneSqshlu is the unsigned result of shifting a signed number left.
func laneSqshlu(m *Machine, s uint8, _, a, b uint64) uint64 {
	if signed(a, s) < 0 {
		return m.saturated(0)
	}
	return m.saturatingShift(a, s, int(b), false, false)
}

// The shifts by an immediate to the right, b of them.
func laneUshr(_ *Machine, s uint8, _, a, b uint64) uint64 {
	r, _ := shiftLane(a, s, -int(b), false, false)
	return r
}
func laneSshr(_ *Machine, s uint8, _, a, b uint64) uint64 {
	r, _ := shiftLane(a, s, -int(b), true, false)
	return r
}
func laneUrshr(_ *Machine, s uint8, _, a, b uint64) uint64 {
	r, _ := shiftLane(a, s, -int(b), false, true)
	return r
}
func laneSrshr(_ *Machine, s uint8, _, a, b uint64) uint64 {
	r, _ := shiftLane(a, s, -int(b), true, true)
	return r
}
func laneUsra(m *Machine, s uint8, d, a, b uint64) uint64  { return d + laneUshr(m, s, 0, a, b) }
func laneSsra(m *Machine, s uint8, d, a, b uint64) uint64  { return d + laneSshr(m, s, 0, a, b) }
func laneUrsra(m *Machine, s uint8, d, a, b uint64) uint64 { return d + laneUrshr(m, s, 0, a, b) }
func laneSrsra(m *Machine, s uint8, d, a, b uint64) uint64 { return d + laneSrshr(m, s, 0, a, b) }

func laneSri(_ *Machine, s uint8, d, a, b uint64) uint64 {
	if b == 64 {
		return d
	}
	mask := sizeMask(s) >> b
	return d&^mask | a>>b
}

func laneSli(_ *Machine, _ uint8, d, a, b uint64) uint64 { return d&(1<<b-1) | a<<b }
func laneShl(_ *Machine, _ uint8, _, a, b uint64) uint64 { return a << b }

// The narrowing ones: a has twice the size.
func laneXtn(_ *Machine, _ uint8, _, a, _ uint64) uint64  { return a }
func laneShrn(_ *Machine, _ uint8, _, a, b uint64) uint64 { return a >> b }
func laneRshrn(_ *Machine, s uint8, _, a, b uint64) uint64 {
	r, _ := shiftLane(a, s+1, -int(b), false, true)
	return r
}

// narrowing makes a saturating shift to the right; the operand and the result are
// signed or not.
func narrowing(fromSigned, toSigned, round bool) laneOp {
	return func(m *Machine, s uint8, _, a, b uint64) uint64 {
		r := a
		if b > 0 {
			r, _ = shiftLane(a, s+1, -int(b), fromSigned, round)
		} else if fromSigned {
			r = uint64(signed(a, s+1))
		}
		switch {
		case toSigned:
			return m.saturateSigned(int64(r), s)
		case fromSigned:
			return m.saturateUnsigned(int64(r), s)
		case r > sizeMask(s):
			return m.saturated(sizeMask(s))
		}
		return r
	}
}

// addhn and its kin: the upper half of a sum or difference, rounded or not.
func laneAddhn(_ *Machine, s uint8, _, a, b uint64) uint64 { return (a + b) >> (8 << s) }
func laneSubhn(_ *Machine, s uint8, _, a, b uint64) uint64 { return (a - b) >> (8 << s) }
func laneRaddhn(_ *Machine, s uint8, _, a, b uint64) uint64 {
	return (a + b + 1<<(8<<s-1)) >> (8 << s)
}
func laneRsubhn(_ *Machine, s uint8, _, a, b uint64) uint64 {
	return (a - b + 1<<(8<<s-1)) >> (8 << s)
}

// laneSqdmull is of widened lanes, s being their size.
func laneSqdmull(m *Machine, s uint8, _, a, b uint64) uint64 {
	p := int64(a) * int64(b)
	if _, high := bounds(s); p > high/2 {
		return m.saturated(uint64(high))
	}
	return uint64(2 * p)
}
func laneSqdmlal(m *Machine, s uint8, d, a, b uint64) uint64 {
	return laneSqadd(m, s, 0, d, laneSqdmull(m, s, 0, a, b)&sizeMask(s))
}
func laneSqdmlsl(m *Machine, s uint8, d, a, b uint64) uint64 {
	return laneSqsub(m, s, 0, d, laneSqdmull(m, s, 0, a, b)&sizeMask(s))
}

func lanePmul(_ *Machine, _ uint8, _, a, b uint64) (p uint64) {
	for i := range 64 {
		p ^= a << i & -(b >> i & 1)
	}
	return p
}

// Those of one operand.
func laneAbs(_ *Machine, s uint8, _, a, _ uint64) uint64 {
	x := signed(a, s)
	return uint64(max(x, -x))
}
func laneNeg(_ *Machine, _ uint8, _, a, _ uint64) uint64 { return -a }
func laneNot(_ *Machine, _ uint8, _, a, _ uint64) uint64 { return ^a }
func laneCnt(_ *Machine, _ uint8, _, a, _ uint64) uint64 { return uint64(bits.OnesCount64(a)) }
func laneRbit(_ *Machine, _ uint8, _, a, _ uint64) uint64 {
	return uint64(bits.Reverse8(uint8(a)))
}
func laneClz(_ *Machine, s uint8, _, a, _ uint64) uint64 {
	return uint64(bits.LeadingZeros64(a) - (64 - 8<<s))
}
func laneCls(_ *Machine, s uint8, _, a, _ uint64) uint64 {
	x := signed(a, s)
	return uint64(bits.LeadingZeros64(uint64(x^x>>63)) - (64 - 8<<s) - 1)
}
func laneSqabs(m *Machine, s uint8, _, a, _ uint64) uint64 {
	if low, high := bounds(s); signed(a, s) == low {
		return m.saturated(uint64(high))
	}
	return laneAbs(m, s, 0, a, 0)
}
func laneSqneg(m *Machine, s uint8, _, a, _ uint64) uint64 {
	if low, high := bounds(s); signed(a, s) == low {
		return m.saturated(uint64(high))
	}
	return -a
}

// laneSuqadd adds an unsigned number to a signed one, laneUsqadd the other way.
func laneSuqadd(m *Machine, s uint8, d, a, _ uint64) uint64 {
	x := signed(d, s)
	if _, high := bounds(s); a > uint64(high-x) {
		return m.saturated(uint64(high))
	}
	return uint64(x) + a
}
func laneUsqadd(m *Machine, s uint8, d, a, _ uint64) uint64 {
	x := signed(a, s)
	if x >= 0 {
		return laneUqadd(m, s, 0, d, uint64(x))
	}
	return laneUqsub(m, s, 0, d, uint64(-x))
}

// reverse puts the parts of b bytes in the lane in reverse order.
func laneReverse(_ *Machine, s uint8, _, a, b uint64) (r uint64) {
	n := 8 * b
	for at := uint64(0); at < 8<<s; at += n {
		r = r<<n | a>>at&(1<<n-1)
	}
	return r
}
