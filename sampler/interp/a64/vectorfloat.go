package a64

// What lanes of floating point compute; see laneOp.

func laneFadd(_ *Machine, s uint8, _, a, b uint64) uint64   { return fpAdd(s, a, b) }
func laneFsub(_ *Machine, s uint8, _, a, b uint64) uint64   { return fpSub(s, a, b) }
func laneFmul(_ *Machine, s uint8, _, a, b uint64) uint64   { return fpMul(s, a, b) }
func laneFmulx(_ *Machine, s uint8, _, a, b uint64) uint64  { return fpMulx(s, a, b) }
func laneFdiv(_ *Machine, s uint8, _, a, b uint64) uint64   { return fpDiv(s, a, b) }
func laneFmax(_ *Machine, s uint8, _, a, b uint64) uint64   { return fpMax(s, a, b) }
func laneFmin(_ *Machine, s uint8, _, a, b uint64) uint64   { return fpMin(s, a, b) }
func laneFmaxnm(_ *Machine, s uint8, _, a, b uint64) uint64 { return fpMaxnm(s, a, b) }
func laneFminnm(_ *Machine, s uint8, _, a, b uint64) uint64 { return fpMinnm(s, a, b) }
func laneFmla(_ *Machine, s uint8, d, a, b uint64) uint64   { return fpFused(s, d, a, b) }
func laneFmls(_ *Machine, s uint8, d, a, b uint64) uint64   { return fpFused(s, d, a^signBit(s), b) }
func laneFabd(_ *Machine, s uint8, _, a, b uint64) uint64   { return fpSub(s, a, b) &^ signBit(s) }
func laneFabs(_ *Machine, s uint8, _, a, _ uint64) uint64   { return a &^ signBit(s) }
func laneFneg(_ *Machine, s uint8, _, a, _ uint64) uint64   { return a ^ signBit(s) }
func laneFsqrt(_ *Machine, s uint8, _, a, _ uint64) uint64  { return fpSqrt(s, a) }

func laneFcmeq(_ *Machine, s uint8, _, a, b uint64) uint64 { return lane1(value(s, a) == value(s, b)) }
func laneFcmge(_ *Machine, s uint8, _, a, b uint64) uint64 { return lane1(value(s, a) >= value(s, b)) }
func laneFcmgt(_ *Machine, s uint8, _, a, b uint64) uint64 { return lane1(value(s, a) > value(s, b)) }
func laneFcmle0(_ *Machine, s uint8, _, a, _ uint64) uint64 {
	return lane1(value(s, a) <= 0)
}
func laneFcmlt0(_ *Machine, s uint8, _, a, _ uint64) uint64 { return lane1(value(s, a) < 0) }
func laneFacge(m *Machine, s uint8, _, a, b uint64) uint64 {
	return laneFcmge(m, s, 0, a&^signBit(s), b&^signBit(s))
}
func laneFacgt(m *Machine, s uint8, _, a, b uint64) uint64 {
	return laneFcmgt(m, s, 0, a&^signBit(s), b&^signBit(s))
}

// threeSameFloats is by opcode-24, U and the upper bit of size.
var threeSameFloats = [8][4]struct {
	lane           laneOp
	scalar, paired bool
}{
	{{laneFmaxnm, false, false}, {laneFminnm, false, false}, {laneFmaxnm, false, true}, {laneFminnm, false, true}},
	{{laneFmla, false, false}, {laneFmls, false, false}, {}, {}},
	{{laneFadd, false, false}, {laneFsub, false, false}, {laneFadd, false, true}, {laneFabd, true, false}},
	{{laneFmulx, true, false}, {}, {laneFmul, false, false}, {}},
	{{laneFcmeq, true, false}, {}, {laneFcmge, true, false}, {laneFcmgt, true, false}},
	{{}, {}, {laneFacge, true, false}, {laneFacgt, true, false}},
	{{laneFmax, false, false}, {laneFmin, false, false}, {laneFmax, false, true}, {laneFmin, false, true}},
	{{}, {}, {laneFdiv, false, false}, {}}, // frecps and frsqrts are not supported
}

// floats sets size and count of lanes of floating point.
func (in *inst) floats(w word32, scalar bool) bool {
	in.size = 2 + uint8(w.bit(22))
	in.flags |= usesFloat
	in.count = lanes(in.size, in.q)
	if scalar {
		in.count = 1
	}
	return scalar || in.size == 2 || in.q
}

func (in *inst) threeSameFloat(w word32, scalar bool) handler {
	e := &threeSameFloats[w.bits(13, 11)][w.bit(29)<<1|w.bit(23)]
	if !in.floats(w, scalar) || e.lane == nil || scalar && !e.scalar {
		return nil
	}
	in.lane = e.lane
	if e.paired {
		return pairwise
	}
	return eachPair
}

// rounding modes of fcvtn, fcvtm, fcvta, fcvtp and fcvtz by opcode, upper bit of size.
func (in *inst) twoMiscFloat(w word32, scalar bool) handler {
	opcode, u, high := w.bits(16, 12), w.is(29), w.is(23)
	switch {
	case opcode == 0b10110 && !high && !u && !scalar && w.is(22): // fcvtn
		in.flags |= usesFloat
		in.size, in.count = 2, 2
		in.lane = laneFcvtn
		return narrow
	case opcode == 0b10111 && !high && !u && !scalar && w.is(22): // fcvtl
		in.flags |= usesFloat
		in.size, in.count = 2, 2
		in.lane = laneFcvtl
		return widenOne
	}
	if !in.floats(w, scalar) {
		return nil
	}
	in.imm = 0
	comparison := false
	key := opcode
	if high {
		key |= 32
	}
	switch key {
	case 32 | 0b01100:
		in.lane, comparison = laneFcmgt, true
		if u {
			in.lane = laneFcmge
		}
	case 32 | 0b01101:
		in.lane, comparison = laneFcmeq, true
		if u {
			in.lane = laneFcmle0
		}
	case 32 | 0b01110:
		in.lane, comparison = laneFcmlt0, true
		if u {
			return nil
		}
	case 32 | 0b01111:
		in.flags &^= usesFloat
		in.lane = laneFabs
		if u {
			in.lane = laneFneg
		}
	case 32 | 0b11111:
		in.lane = laneFsqrt
		if !u {
			return nil
		}
	case 0b11010, 0b11011, 0b11100, 32 | 0b11010, 32 | 0b11011:
		comparison = true
		mode := map[uint32]uint8{0b11010: roundNearest, 0b11011: roundDown, 0b11100: roundAway,
			32 | 0b11010: roundUp, 32 | 0b11011: roundZero}[key]
		in.lane = toIntLane(mode, !u)
	case 0b11101:
		comparison = true
		in.lane = fromIntLane(!u)
	case 0b11000, 0b11001, 32 | 0b11000, 32 | 0b11001:
		mode := map[uint32][2]uint8{0b11000: {roundNearest, roundAway}, 0b11001: {roundDown, roundNearest},
			32 | 0b11000: {roundUp, 255}, 32 | 0b11001: {roundZero, roundNearest}}[key][w.bit(29)]
		if mode == 255 {
			return nil
		}
		in.lane = func(_ *Machine, s uint8, _, a, _ uint64) uint64 { return fpRound(s, a, mode) }
	default:
		return nil
	}
	if scalar && !comparison {
		return nil
	}
	return eachOne
}

func laneFcvtn(_ *Machine, _ uint8, _, a, _ uint64) uint64 { return fpConvert(3, 2, a) }
func laneFcvtl(_ *Machine, _ uint8, _, a, _ uint64) uint64 { return fpConvert(2, 3, a) }

// toIntLane converts to an integer with b bits of fraction.
func toIntLane(mode uint8, isSigned bool) laneOp {
	return func(_ *Machine, s uint8, _, a, b uint64) uint64 {
		return fpToInt(s, a, mode, isSigned, 8<<s, uint(b))
	}
}

func fromIntLane(isSigned bool) laneOp {
	return func(_ *Machine, s uint8, _, a, b uint64) uint64 {
		if isSigned {
			a = uint64(signed(a, s))
		}
		return intToFP(s, a, isSigned, uint(b))
	}
}

// shiftFloat decodes conversions to and from fixed point.
func (in *inst) shiftFloat(w word32, size, fraction uint32, scalar bool) handler {
	if size < 2 || !scalar && size == 3 && !in.q {
		return nil
	}
	in.flags |= usesFloat
	in.size, in.imm, in.count = uint8(size), uint64(fraction), lanes(uint8(size), in.q)
	if scalar {
		in.count = 1
	}
	in.lane = fromIntLane(!w.is(29))
	if w.is(12) {
		in.lane = toIntLane(roundZero, !w.is(29))
	}
	return eachOne
}

// indexedFloat decodes fmla, fmls and fmul with one lane.
func (in *inst) indexedFloat(w word32, scalar bool) handler {
	if !w.is(23) || !in.floats(w, scalar) {
		return nil
	}
	in.shift = uint8(w.bit(11))
	switch {
	case in.size == 2:
		in.shift = in.shift<<1 | uint8(w.bit(21))
	case w.is(21):
		return nil
	}
	switch w.bits(15, 12) {
	case 1:
		in.lane = laneFmla
	case 5:
		in.lane = laneFmls
	default:
		in.lane = laneFmul
	}
	return byElement
}

// pairFloat decodes faddp, fmaxp and the like of two lanes.
func (in *inst) pairFloat(w word32) handler {
	if !w.is(29) || !in.floats(w, true) {
		return nil
	}
	high := w.is(23)
	switch opcode := w.bits(16, 12); {
	case opcode == 0b01100 && !high:
		in.lane = laneFmaxnm
	case opcode == 0b01100:
		in.lane = laneFminnm
	case opcode == 0b01101 && !high:
		in.lane = laneFadd
	case opcode == 0b01111 && !high:
		in.lane = laneFmax
	case opcode == 0b01111:
		in.lane = laneFmin
	default:
		return nil
	}
	return pairScalar
}

// acrossFloat decodes fmaxv, fminv, fmaxnmv and fminnmv: of four lanes, by pairs.
func (in *inst) acrossFloat(w word32) handler {
	if w.is(22) || !in.q {
		return nil
	}
	in.flags |= usesFloat
	in.size, in.count = 2, 4
	in.lane = [4]laneOp{laneFmaxnm, laneFminnm, laneFmax, laneFmin}[w.bit(13)<<1|w.bit(23)]
	return acrossPairs
}

func acrossPairs(m *Machine, in *inst) {
	a := &m.vec.V[in.rn&31]
	low := in.lane(m, 2, 0, a.get(0, 2), a.get(1, 2))
	high := in.lane(m, 2, 0, a.get(2, 2), a.get(3, 2))
	m.vec.V[in.rd&31] = Vec{in.lane(m, 2, 0, low, high)}
}
