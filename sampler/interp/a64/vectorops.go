package a64

// Sets of sizes that an operation has, by bit.
const (
	sizesAll  = 0b1111
	sizesTo32 = 0b0111
	sizeByte  = 0b0001
	size64    = 0b1000
	size16or  = 0b0110 // 16 and 32 bits
)

// operation is a row of a table by opcode and U.
type operation struct {
	lane           laneOp
	vector, scalar uint8 // sizes
}

// fits says whether the operation has the size, and sets size and count.
func (in *inst) fits(e *operation, size uint32, scalar bool) bool {
	in.lane, in.size = e.lane, uint8(size)
	if scalar {
		in.count = 1
		return e.scalar>>size&1 == 1
	}
	in.count = lanes(in.size, in.q)
	return e.vector>>size&1 == 1 && (size < 3 || in.q)
}

// threeSameOps is by opcode<<1 | U.
var threeSameOps = [64]operation{
	0x00: {laneShadd, sizesTo32, 0}, 0x01: {laneUhadd, sizesTo32, 0},
	0x02: {laneSqadd, sizesAll, sizesAll}, 0x03: {laneUqadd, sizesAll, sizesAll},
	0x04: {laneSrhadd, sizesTo32, 0}, 0x05: {laneUrhadd, sizesTo32, 0},
	0x08: {laneShsub, sizesTo32, 0}, 0x09: {laneUhsub, sizesTo32, 0},
	0x0a: {laneSqsub, sizesAll, sizesAll}, 0x0b: {laneUqsub, sizesAll, sizesAll},
	0x0c: {laneCmgt, sizesAll, size64}, 0x0d: {laneCmhi, sizesAll, size64},
	0x0e: {laneCmge, sizesAll, size64}, 0x0f: {laneCmhs, sizesAll, size64},
	0x10: {laneSshl, sizesAll, size64}, 0x11: {laneUshl, sizesAll, size64},
	0x12: {laneSqshl, sizesAll, sizesAll}, 0x13: {laneUqshl, sizesAll, sizesAll},
	0x14: {laneSrshl, sizesAll, size64}, 0x15: {laneUrshl, sizesAll, size64},
	0x16: {laneSqrshl, sizesAll, sizesAll}, 0x17: {laneUqrshl, sizesAll, sizesAll},
	0x18: {laneSmax, sizesTo32, 0}, 0x19: {laneUmax, sizesTo32, 0},
	0x1a: {laneSmin, sizesTo32, 0}, 0x1b: {laneUmin, sizesTo32, 0},
	0x1c: {laneSabd, sizesTo32, 0}, 0x1d: {laneUabd, sizesTo32, 0},
	0x1e: {laneSaba, sizesTo32, 0}, 0x1f: {laneUaba, sizesTo32, 0},
	0x20: {laneAdd, sizesAll, size64}, 0x21: {laneSub, sizesAll, size64},
	0x22: {laneCmtst, sizesAll, size64}, 0x23: {laneCmeq, sizesAll, size64},
	0x24: {laneMla, sizesTo32, 0}, 0x25: {laneMls, sizesTo32, 0},
	0x26: {laneMul, sizesTo32, 0}, 0x27: {lanePmul, sizeByte, 0},
	0x28: {laneSmax, sizesTo32, 0}, 0x29: {laneUmax, sizesTo32, 0}, // pairwise
	0x2a: {laneSmin, sizesTo32, 0}, 0x2b: {laneUmin, sizesTo32, 0}, // pairwise
	0x2c: {laneSqdmulh, size16or, size16or}, 0x2d: {laneSqrdmulh, size16or, size16or},
	0x2e: {laneAdd, sizesAll, 0}, // pairwise
}

func (in *inst) threeSame(w word32, scalar bool) handler {
	size, u, opcode := w.bits(23, 22), w.bit(29), w.bits(15, 11)
	switch {
	case opcode >= 24:
		return in.threeSameFloat(w, scalar)
	case opcode == 3:
		in.op = uint8(u<<2 | size)
		if scalar {
			return nil
		}
		return logicVector
	}
	e := &threeSameOps[opcode<<1|u]
	if e.lane == nil || !in.fits(e, size, scalar) {
		return nil
	}
	if opcode == 0x14 || opcode == 0x15 || opcode == 0x17 {
		return pairwise
	}
	if fn := packed(w, size); fn != nil && !scalar {
		return fn
	}
	return eachPair
}

// twoMiscOps is by opcode<<1 | U: those lane by lane.
var twoMiscOps = [64]operation{
	0x06: {laneSuqadd, sizesAll, sizesAll}, 0x07: {laneUsqadd, sizesAll, sizesAll},
	0x08: {laneCls, sizesTo32, 0}, 0x09: {laneClz, sizesTo32, 0},
	0x0e: {laneSqabs, sizesAll, sizesAll}, 0x0f: {laneSqneg, sizesAll, sizesAll},
	0x10: {laneCmgt, sizesAll, size64}, 0x11: {laneCmge, sizesAll, size64},
	0x12: {laneCmeq, sizesAll, size64}, 0x13: {laneCmle0, sizesAll, size64},
	0x14: {laneCmlt0, sizesAll, size64},
	0x16: {laneAbs, sizesAll, size64}, 0x17: {laneNeg, sizesAll, size64},
}

// narrowOps is by opcode<<1 | U.
var narrowOps = map[uint32]laneOp{
	0x24: laneXtn, 0x25: narrowing(true, false, false), 0x28: narrowing(true, true, false), 0x29: narrowing(false, false, false),
}

func (in *inst) twoMisc(w word32, scalar bool) handler {
	size, u, opcode := w.bits(23, 22), w.bit(29), w.bits(16, 12)
	key := opcode<<1 | u
	in.imm = 0
	if e := &twoMiscOps[key]; e.lane != nil {
		if !in.fits(e, size, scalar) {
			return nil
		}
		return eachOne
	}
	switch key {
	case 0x24, 0x25, 0x28, 0x29: // xtn, sqxtun, sqxtn, uqxtn
		if size == 3 || scalar && key == 0x24 {
			return nil
		}
		in.lane, in.size = narrowOps[key], uint8(size)
		in.count = 8 >> size
		if scalar {
			in.count, in.q = 1, false
		}
		return narrow
	}
	if scalar {
		return in.twoMiscFloat(w, scalar)
	}
	switch key {
	case 0x00, 0x01, 0x02: // rev64, rev32, rev16
		container := 3 - key
		if size >= container {
			return nil
		}
		in.lane, in.size, in.imm = laneReverse, uint8(container), 1<<size
		in.count = lanes(in.size, in.q)
		return eachOne
	case 0x04, 0x05, 0x0c, 0x0d: // saddlp, uaddlp, sadalp, uadalp
		if size == 3 {
			return nil
		}
		in.lane = laneAddPair
		in.size, in.count, in.mode = uint8(size), lanes(uint8(size)+1, in.q), uint8(1-u)
		if key < 8 {
			in.lane = laneAdd
		}
		return pairLong
	case 0x0a, 0x0b: // cnt, not, rbit
		in.size, in.count = 0, lanes(0, in.q)
		switch {
		case key == 0x0a && size == 0:
			in.lane = laneCnt
		case key == 0x0b && size == 0:
			in.lane = laneNot
		case key == 0x0b && size == 1:
			in.lane = laneRbit
		default:
			return nil
		}
		return eachOne
	case 0x27: // shll
		if size == 3 {
			return nil
		}
		in.lane, in.size, in.count, in.imm = laneShl, uint8(size), 8>>size, 8<<size
		return widenOne
	}
	return in.twoMiscFloat(w, scalar)
}

func (in *inst) acrossLanes(w word32) handler {
	size, u, opcode := w.bits(23, 22), w.bit(29), w.bits(16, 12)
	in.size, in.count, in.mode = uint8(size), lanes(uint8(size), in.q), uint8(1-u)
	switch opcode<<1 | u {
	case 0x18 | 1, 0x1e | 1: // of floating point
		return in.acrossFloat(w)
	case 0x06, 0x07:
		in.lane = laneAdd
	case 0x14:
		in.lane = laneSmax
	case 0x15:
		in.lane = laneUmax
	case 0x34:
		in.lane = laneSmin
	case 0x35:
		in.lane = laneUmin
	case 0x36:
		in.lane = laneAdd
	default:
		return nil
	}
	if size == 3 || size == 2 && !in.q {
		return nil
	}
	if opcode == 3 {
		return acrossLong
	}
	return across
}

// pairScalarOp decodes addp and the floating point ones of two lanes.
func (in *inst) pairScalarOp(w word32) handler {
	if w.bits(16, 12) == 0b11011 && !w.is(29) {
		if w.bits(23, 22) != 3 {
			return nil
		}
		in.lane, in.size = laneAdd, 3
		return pairScalar
	}
	return in.pairFloat(w)
}

// threeDifferentOps is by opcode.
var threeDifferentOps = [16]laneOp{
	0: laneAdd, 1: laneAdd, 2: laneSub, 3: laneSub, 5: laneSaba, 7: laneSabd, 8: laneMla, 9: laneSqdmlal, 10: laneMls,
	11: laneSqdmlsl, 12: laneMul, 13: laneSqdmull, 14: lanePmul,
}

func (in *inst) threeDifferent(w word32, scalar bool) handler {
	size, u, opcode := w.bits(23, 22), w.bit(29), w.bits(15, 12)
	in.size, in.count, in.mode = uint8(size), uint8(8>>size), uint8(1-u)
	doubling := opcode == 9 || opcode == 11 || opcode == 13
	if scalar {
		if !doubling {
			return nil
		}
		in.count, in.q = 1, false
	}
	if opcode == 14 && size == 3 && u == 0 && !scalar {
		return multiplyPolynomial
	}
	if size == 3 || doubling && (size == 0 || u == 1) || opcode == 14 && (size != 0 || u == 1) {
		return nil
	}
	if opcode == 14 {
		in.mode = 0
	}
	switch opcode {
	case 4, 6: // addhn, subhn
		in.op = 1
		in.lane = [4]laneOp{laneAddhn, laneRaddhn, laneSubhn, laneRsubhn}[opcode&2|u]
		return narrow
	case 1, 3:
		in.kind = 1
	}
	in.lane = threeDifferentOps[opcode]
	if in.lane == nil {
		return nil
	}
	return widen
}

// indexedOps is by U<<4 | opcode.
var indexedOps = [32]struct {
	lane  laneOp
	widen bool
}{
	0x08: {laneMul, false}, 0x0c: {laneSqdmulh, false}, 0x0d: {laneSqrdmulh, false}, 0x10: {laneMla, false}, 0x14: {laneMls, false},
	0x02: {laneMla, true}, 0x12: {laneMla, true}, 0x06: {laneMls, true}, 0x16: {laneMls, true}, 0x0a: {laneMul, true}, 0x1a: {laneMul, true},
	0x03: {laneSqdmlal, true}, 0x07: {laneSqdmlsl, true}, 0x0b: {laneSqdmull, true},
}

// indexed decodes the operations with one lane of the last register.
func (in *inst) indexed(w word32, scalar bool) handler {
	size, u, opcode := w.bits(23, 22), w.bit(29), w.bits(15, 12)
	in.size, in.op, in.mode = uint8(size), 1, uint8(1-u)
	h, l, bitM := uint8(w.bit(11)), uint8(w.bit(21)), uint8(w.bit(20))
	switch {
	case u == 0 && (opcode == 1 || opcode == 5 || opcode == 9):
		return in.indexedFloat(w, scalar)
	case opcode == 14 && size == 2 && !scalar:
		in.shift, in.count = h<<1|l, lanes(2, in.q)
		return dotProduct
	}
	e := &indexedOps[u<<4|opcode]
	switch {
	case e.lane == nil || size == 0 || size == 3:
		return nil
	case size == 1:
		in.rm &= 15
		in.shift = h<<2 | l<<1 | bitM
	default:
		in.shift = h<<1 | l
	}
	in.lane = e.lane
	if scalar {
		doubling := opcode == 3 || opcode == 7 || opcode == 11 || opcode == 12 || opcode == 13
		if !doubling || u == 1 {
			return nil
		}
		in.count, in.q = 1, false
	}
	if e.widen {
		if !scalar {
			in.count = 8 >> size
		}
		return widen
	}
	if !scalar {
		in.count = lanes(in.size, in.q)
	}
	return byElement
}

// shiftOps is by opcode<<1 | U: those lane by lane.
var shiftOps = [64]operation{
	0x00: {laneSshr, sizesAll, size64}, 0x01: {laneUshr, sizesAll, size64},
	0x04: {laneSsra, sizesAll, size64}, 0x05: {laneUsra, sizesAll, size64},
	0x08: {laneSrshr, sizesAll, size64}, 0x09: {laneUrshr, sizesAll, size64},
	0x0c: {laneSrsra, sizesAll, size64}, 0x0d: {laneUrsra, sizesAll, size64},
	0x11: {laneSri, sizesAll, size64},
	0x14: {laneShl, sizesAll, size64}, 0x15: {laneSli, sizesAll, size64},
	0x19: {laneSqshlu, sizesAll, sizesAll},
	0x1c: {laneSqshl, sizesAll, sizesAll}, 0x1d: {laneUqshl, sizesAll, sizesAll},
}

// shiftNarrowOps is by opcode<<1 | U from 0x20 on.
var shiftNarrowOps = [8]laneOp{
	laneShrn, narrowing(true, false, false), laneRshrn, narrowing(true, false, true),
	narrowing(true, true, false), narrowing(false, false, false), narrowing(true, true, true), narrowing(false, false, true),
}

func (in *inst) shiftImmediate(w word32, scalar bool) handler {
	immh, immhb, key := w.bits(22, 19), w.bits(22, 16), w.bits(15, 11)<<1|w.bit(29)
	size := uint32(0)
	for s := range uint32(4) {
		if immh>>s != 0 {
			size = s
		}
	}
	right, left := 16<<size-immhb, immhb-8<<size
	if e := &shiftOps[key]; e.lane != nil {
		in.imm = uint64(right)
		switch key {
		case 0x14, 0x15, 0x19, 0x1c, 0x1d:
			in.imm = uint64(left)
		}
		if !in.fits(e, size, scalar) {
			return nil
		}
		return eachOne
	}
	switch {
	case key >= 0x20 && key < 0x28:
		if size == 3 || scalar && (key == 0x20 || key == 0x22) {
			return nil
		}
		in.lane, in.size, in.imm = shiftNarrowOps[key-0x20], uint8(size), uint64(right)
		in.count = 8 >> size
		if scalar {
			in.count, in.q = 1, false
		}
		if key == 0x20 {
			return shiftNarrow
		}
		return narrow
	case key == 0x28 || key == 0x29: // sshll, ushll
		if size == 3 || scalar {
			return nil
		}
		in.lane, in.size, in.imm, in.mode = laneShl, uint8(size), uint64(left), uint8(0x29-key)
		in.count = 8 >> size
		return widenOne
	case key == 0x38 || key == 0x39 || key == 0x3e || key == 0x3f:
		return in.shiftFloat(w, size, right, scalar)
	}
	return nil
}
