package interp

import (
	"math"
	"unsafe"
)

var vecConverts = []vecOp{
	{"f3 0f 2a", "lve", "x sc v fl g nk", fromInt[float32], nil}, {"f2 0f 2a", "lve", "x sc v fl g nk", fromInt[float64], nil},
	{"f3 0f 7b", "e", "x sc v fl g nk", fromUint[float32], nil}, {"f2 0f 7b", "e", "x sc v fl g nk", fromUint[float64], nil},
	{"f3 0f 2c", "lve", "d sc fl nk gr", toInt[float32](true), nil}, {"f2 0f 2c", "lve", "q sc fl nk gr", toInt[float64](true), nil},
	{"f3 0f 2d", "lve", "d sc fl nk gr", toInt[float32](false), nil}, {"f2 0f 2d", "lve", "q sc fl nk gr", toInt[float64](false), nil},
	{"f3 0f 78", "e", "d sc fl nk gr", toUint[float32](true), nil}, {"f2 0f 78", "e", "q sc fl nk gr", toUint[float64](true), nil},
	{"f3 0f 79", "e", "d sc fl nk gr", toUint[float32](false), nil}, {"f2 0f 79", "e", "q sc fl nk gr", toUint[float64](false), nil},

	{"np 0f 5a", "lve0", "q msz=4 /2 fl", vecRM, lanesOf(func(x float32) float64 { return widen(x) })},
	{"66 0f 5a", "lve1", "d msz=8 half fl", vecRM, lanesOf(func(x float64) float32 { return shorten(x) })},
	{"f3 0f 5a", "lve0", "q msz=4 sc v fl", scalarConvert, lanesOf(func(x float32) float64 { return widen(x) })},
	{"f2 0f 5a", "lve1", "d msz=8 sc v fl", scalarConvert, lanesOf(func(x float64) float32 { return shorten(x) })},

	{"np 0f 5b", "lve0", "d fl", vecRM, lanesOf(func(x int32) float32 { return float32(x) })},
	{"np 0f 5b", "e1", "d msz=8 half fl", vecRM, lanesOf(func(x int64) float32 { return float32(x) })},
	{"66 0f 5b", "lve0", "d fl", vecRM, lanesOf(func(x float32) int32 { return toI32(math.RoundToEven(float64(x))) })},
	{"f3 0f 5b", "lve0", "d fl", vecRM, lanesOf(func(x float32) int32 { return toI32(math.Trunc(float64(x))) })},
	{"f3 0f e6", "lve0", "q msz=4 /2 fl", vecRM, lanesOf(func(x int32) float64 { return float64(x) })},
	{"f3 0f e6", "e1", "q fl", vecRM, lanesOf(func(x int64) float64 { return float64(x) })},
	{"f2 0f e6", "lve1", "d msz=8 half fl", vecRM, lanesOf(func(x float64) int32 { return toI32(math.RoundToEven(x)) })},
	{"66 0f e6", "lve1", "d msz=8 half fl", vecRM, lanesOf(func(x float64) int32 { return toI32(math.Trunc(x)) })},

	{"np 0f 78", "e0", "d fl", vecRM, lanesOf(func(x float32) uint32 { return toU32(math.Trunc(float64(x))) })},
	{"np 0f 78", "e1", "d msz=8 half fl", vecRM, lanesOf(func(x float64) uint32 { return toU32(math.Trunc(x)) })},
	{"np 0f 79", "e0", "d fl", vecRM, lanesOf(func(x float32) uint32 { return toU32(math.RoundToEven(float64(x))) })},
	{"np 0f 79", "e1", "d msz=8 half fl", vecRM, lanesOf(func(x float64) uint32 { return toU32(math.RoundToEven(x)) })},
	{"66 0f 78", "e0", "q msz=4 /2 fl", vecRM, lanesOf(func(x float32) uint64 { return toU64(math.Trunc(float64(x))) })},
	{"66 0f 78", "e1", "q fl", vecRM, lanesOf(func(x float64) uint64 { return toU64(math.Trunc(x)) })},
	{"66 0f 79", "e0", "q msz=4 /2 fl", vecRM, lanesOf(func(x float32) uint64 { return toU64(math.RoundToEven(float64(x))) })},
	{"66 0f 79", "e1", "q fl", vecRM, lanesOf(func(x float64) uint64 { return toU64(math.RoundToEven(x)) })},
	{"66 0f 7a", "e0", "q msz=4 /2 fl", vecRM, lanesOf(func(x float32) int64 { return toI64(math.Trunc(float64(x))) })},
	{"66 0f 7a", "e1", "q fl", vecRM, lanesOf(func(x float64) int64 { return toI64(math.Trunc(x)) })},
	{"66 0f 7b", "e0", "q msz=4 /2 fl", vecRM, lanesOf(func(x float32) int64 { return toI64(math.RoundToEven(float64(x))) })},
	{"66 0f 7b", "e1", "q fl", vecRM, lanesOf(func(x float64) int64 { return toI64(math.RoundToEven(x)) })},
	{"f2 0f 7a", "e0", "d fl", vecRM, lanesOf(func(x uint32) float32 { return float32(x) })},
	{"f2 0f 7a", "e1", "d msz=8 half fl", vecRM, lanesOf(func(x uint64) float32 { return float32(x) })},
	{"f3 0f 7a", "e0", "q msz=4 /2 fl", vecRM, lanesOf(func(x uint32) float64 { return float64(x) })},
	{"f3 0f 7a", "e1", "q fl", vecRM, lanesOf(func(x uint64) float64 { return float64(x) })},

	{"66 0f38 13", "v0e0", "d msz=2 /2 nb fl", vecRM, lanesOf(halfToSingle)},
	{"66 0f3a 1d", "v0e0", "d msz=2 /2 imm st nar fl", vecMR, halfFromSingle},
}

type lane interface {
	uint16 | int32 | uint32 | int64 | uint64 | float32 | float64
}

// lanesOf converts lane by lane; a shorter result leaves the rest zero.
func lanesOf[S, D lane](f func(S) D) kernel {
	return func(d, a, _ *Vec, in *inst) {
		var s S
		var t D
		x := unsafe.Slice((*S)(unsafe.Pointer(a)), 64/unsafe.Sizeof(s))
		if !in.scalar {
			*d = Vec{}
		}
		z := unsafe.Slice((*D)(unsafe.Pointer(d)), 64/unsafe.Sizeof(t))
		for i := range in.lanes() {
			z[i] = f(x[i])
		}
	}
}

// scalarConvert takes the rest of the result from vvvv.
func scalarConvert(m *Machine, in *inst) {
	b := m.vecSource(in)
	m.tmp = m.vec.Z[in.v&31]
	m.track(in, &m.tmp, b, b)
	in.kern(&m.tmp, b, b, in)
	m.vecPut(in)
}

func widen(x float32) float64 {
	if x != x {
		u := math.Float32bits(x)
		return math.Float64frombits(uint64(u>>31)<<63 | 0x7ff8<<48 | uint64(u&0x3fffff)<<29)
	}
	return float64(x)
}

func shorten(x float64) float32 {
	if x != x {
		u := math.Float64bits(x)
		return math.Float32frombits(uint32(u>>63)<<31 | 0x7fc00000 | uint32(u>>29)&0x3fffff)
	}
	return float32(x)
}

// What does not fit gives the "integer indefinite": the sign bit alone, or all
// ones where the result has no sign. NaN fits nowhere.

func toI32(x float64) int32 {
	if x >= -1<<31 && x < 1<<31 {
		return int32(x)
	}
	return math.MinInt32
}

func toI64(x float64) int64 {
	if x >= -1<<63 && x < 1<<63 {
		return int64(x)
	}
	return math.MinInt64
}

func toU32(x float64) uint32 {
	if x >= 0 && x < 1<<32 {
		return uint32(x)
	}
	return math.MaxUint32
}

func toU64(x float64) uint64 {
	if x >= 0 && x < 1<<64 {
		return uint64(x)
	}
	return math.MaxUint64
}

// putScalar stores x as the low element of the result, the rest from vvvv.
func putScalar[T number](m *Machine, in *inst, x T) {
	m.tmp = m.vec.Z[in.v&31]
	floats[T](&m.tmp)[0] = x
	m.vecPut(in)
}

func fromInt[T number](m *Machine, in *inst) {
	v := m.rmOperand(in)
	m.src[0] = v
	m.track(in, &m.tmp, &m.src, &m.src)
	putScalar(m, in, T(signExtend(v, in.w)))
}

func fromUint[T number](m *Machine, in *inst) { putScalar(m, in, T(m.rmOperand(in))) }

func rounding[T number](x T, truncate bool) float64 {
	if truncate {
		return math.Trunc(float64(x))
	}
	return math.RoundToEven(float64(x))
}

func toInt[T number](truncate bool) func(*Machine, *inst) {
	return func(m *Machine, in *inst) {
		b := m.vecSource(in)
		m.track(in, &m.tmp, b, b)
		x := rounding(floats[T](b)[0], truncate)
		if in.w == 8 {
			m.r[in.reg&15] = uint64(toI64(x))
		} else {
			m.r[in.reg&15] = uint64(uint32(toI32(x)))
		}
	}
}

func toUint[T number](truncate bool) func(*Machine, *inst) {
	return func(m *Machine, in *inst) {
		x := rounding(floats[T](m.vecSource(in))[0], truncate)
		if in.w == 8 {
			m.r[in.reg&15] = toU64(x)
		} else {
			m.r[in.reg&15] = uint64(toU32(x))
		}
	}
}

func halfToSingle(h uint16) float32 {
	sign := uint32(h>>15) << 31
	e, f := uint32(h>>10&31), uint32(h&0x3ff)
	switch e {
	case 0:
		x := float32(f) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(x) | sign)
	case 31:
		if f != 0 {
			f |= 0x200
		}
		return math.Float32frombits(sign | 0x7f800000 | f<<13)
	}
	return math.Float32frombits(sign | (e+112)<<23 | f<<13)
}

// singleToHalf rounds by the low bits of vcvtps2ph's immediate.
func singleToHalf(x float32, imm uint64) uint16 {
	u := math.Float32bits(x)
	sign := uint16(u >> 16 & 0x8000)
	if x != x {
		return sign | 0x7e00 | uint16(u>>13&0x1ff)
	}
	a := math.Abs(float64(x))
	if imm&4 == 0 && sign != 0 { // towards -inf and +inf swap
		imm = [4]uint64{0, 2, 1, 3}[imm&3]
	}
	if math.IsInf(a, 0) {
		return sign | 0x7c00
	}
	// The result is n units of the last place at a's exponent.
	_, e := math.Frexp(a)
	unit := max(e-11, -24)
	n := roundMode(math.Ldexp(a, -unit), imm)
	v := math.Ldexp(n, unit)
	if v > 65504 {
		if imm&4 == 0 && (imm&3 == 1 || imm&3 == 3) {
			return sign | 0x7bff
		}
		return sign | 0x7c00
	}
	if v < 1.0/(1<<14) {
		return sign | uint16(math.Ldexp(v, 24))
	}
	m, e := math.Frexp(v)
	return sign | uint16(e+14)<<10 | uint16(math.Ldexp(m, 11))&0x3ff
}

func halfFromSingle(d, a, _ *Vec, in *inst) {
	var x Vec
	for i := range in.lanes() {
		x.w()[i] = singleToHalf(a.f32()[i], in.imm)
	}
	*d = x
}
