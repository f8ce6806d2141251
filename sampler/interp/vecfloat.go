package interp

import (
	"math"
	"unsafe"
)

// number is a lane of floating point. All arithmetic rounds to nearest with
// exceptions masked, which usesFloat checks.
type number interface{ float32 | float64 }

// floats are the lanes of v.
func floats[T number](v *Vec) []T {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(v)), 64/unsafe.Sizeof(x))
}

// quiet is what the CPU makes of a NaN operand: its payload and the quiet bit.
func quiet[T number](x T) T {
	if unsafe.Sizeof(x) == 4 {
		*(*uint32)(unsafe.Pointer(&x)) |= 1 << 22
	} else {
		*(*uint64)(unsafe.Pointer(&x)) |= 1 << 51
	}
	return x
}

// invalid is the NaN that an operation without a NaN operand gives.
func invalid[T number]() (x T) {
	if unsafe.Sizeof(x) == 4 {
		*(*uint32)(unsafe.Pointer(&x)) = 0xffc00000
	} else {
		*(*uint64)(unsafe.Pointer(&x)) = 0xfff8000000000000
	}
	return x
}

// settle makes r, the result of an operation on a and b, what the CPU gives
// where it is a NaN: the first operand that is one, or the default.
func settle[T number](r, a, b T) T {
	switch {
	case r == r:
		return r
	case a != a:
		return quiet(a)
	case b != b:
		return quiet(b)
	}
	return invalid[T]()
}

func fadd[T number](a, b T) T { return settle(a+b, a, b) }
func fsub[T number](a, b T) T { return settle(a-b, a, b) }
func fmul[T number](a, b T) T { return settle(a*b, a, b) }
func fdiv[T number](a, b T) T { return settle(a/b, a, b) }

// fmin and fmax give the second operand where neither is smaller.
func fmin[T number](a, b T) T {
	if a < b {
		return a
	}
	return b
}

func fmax[T number](a, b T) T {
	if a > b {
		return a
	}
	return b
}

func fsqrt[T number](_, b T) T { return settle(T(math.Sqrt(float64(b))), b, b) }

// lanewise applies f to the lanes; a scalar operation takes the rest from a.
func lanewise[T number](f func(a, b T) T) kernel {
	return func(d, a, b *Vec, in *inst) {
		if in.scalar {
			*d = *a
		}
		var t T
		x, y, z := floats[T](a), floats[T](b), floats[T](d)
		lanes := int(in.n) / int(unsafe.Sizeof(t))
		if in.scalar {
			lanes = 1
		}
		for i := range lanes {
			z[i] = f(x[i], y[i])
		}
	}
}

var vecFloats = concat(
	arithmetic("58", fadd[float32], fadd[float64]),
	arithmetic("59", fmul[float32], fmul[float64]),
	arithmetic("5c", fsub[float32], fsub[float64]),
	arithmetic("5d", fmin[float32], fmin[float64]),
	arithmetic("5e", fdiv[float32], fdiv[float64]),
	arithmetic("5f", fmax[float32], fmax[float64]),
	[]vecOp{
		{"np 0f 51", "lve0", "d fl", vecRM, lanewise(fsqrt[float32])}, {"66 0f 51", "lve1", "q fl", vecRM, lanewise(fsqrt[float64])},
		{"f3 0f 51", "lve0", "d sc v fl", vecRVM, lanewise(fsqrt[float32])}, {"f2 0f 51", "lve1", "q sc v fl", vecRVM, lanewise(fsqrt[float64])},

		{"np 0f c2", "lv", "d v imm fl", vecRVM, compareFloats[float32]}, {"66 0f c2", "lv", "q v imm fl", vecRVM, compareFloats[float64]},
		{"f3 0f c2", "lv", "d sc v imm fl", vecRVM, compareFloats[float32]}, {"f2 0f c2", "lv", "q sc v imm fl", vecRVM, compareFloats[float64]},
		{"np 0f c2", "e0", "d v imm fl k", vecToMask, compareFloatMask[float32]}, {"66 0f c2", "e1", "q v imm fl k", vecToMask, compareFloatMask[float64]},
		{"f3 0f c2", "e0", "d sc v imm fl k", vecToMask, compareFloatMask[float32]}, {"f2 0f c2", "e1", "q sc v imm fl k", vecToMask, compareFloatMask[float64]},
		{"np 0f 2e", "lve0", "d sc fl ef nk", vecFlags, orderFlags[float32]}, {"66 0f 2e", "lve1", "q sc fl ef nk", vecFlags, orderFlags[float64]},
		{"np 0f 2f", "lve0", "d sc fl ef nk", vecFlags, orderFlags[float32]}, {"66 0f 2f", "lve1", "q sc fl ef nk", vecFlags, orderFlags[float64]},

		{"f2 0f 7c", "lv", "d v fl", vecRVM, horizontal(fadd[float32])}, {"66 0f 7c", "lv", "q v fl", vecRVM, horizontal(fadd[float64])},
		{"f2 0f 7d", "lv", "d v fl", vecRVM, horizontal(fsub[float32])}, {"66 0f 7d", "lv", "q v fl", vecRVM, horizontal(fsub[float64])},
		{"f2 0f d0", "lv", "d v fl", vecRVM, addsub[float32]}, {"66 0f d0", "lv", "q v fl", vecRVM, addsub[float64]},
		{"66 0f3a 40", "lv", "d v imm fl", vecRVM, dotProduct[float32]}, {"66 0f3a 41", "lv", "q v imm l0 fl", vecRVM, dotProduct[float64]},

		{"66 0f3a 08", "lv", "d imm fl", vecRM, rounded[float32]}, {"66 0f3a 09", "lv", "q imm fl", vecRM, rounded[float64]},
		{"66 0f3a 0a", "lv", "d sc v imm fl", vecRVM, rounded[float32]}, {"66 0f3a 0b", "lv", "q sc v imm fl", vecRVM, rounded[float64]},
		{"66 0f3a 08", "e0", "d imm fl", vecRM, roundScale[float32]}, {"66 0f3a 09", "e1", "q imm fl", vecRM, roundScale[float64]},
		{"66 0f3a 0a", "e0", "d sc v imm fl", vecRVM, roundScale[float32]}, {"66 0f3a 0b", "e1", "q sc v imm fl", vecRVM, roundScale[float64]},
	},
	fusedRows(),
)

func concat(tables ...[]vecOp) (all []vecOp) {
	for _, t := range tables {
		all = append(all, t...)
	}
	return all
}

// arithmetic is the four forms of one operation.
func arithmetic(op string, f4 func(a, b float32) float32, f8 func(a, b float64) float64) []vecOp {
	return []vecOp{
		{"np 0f " + op, "lve0", "d v fl", vecRVM, lanewise(f4)}, {"66 0f " + op, "lve1", "q v fl", vecRVM, lanewise(f8)},
		{"f3 0f " + op, "lve0", "d sc v fl", vecRVM, lanewise(f4)}, {"f2 0f " + op, "lve1", "q sc v fl", vecRVM, lanewise(f8)},
	}
}

// compareHolds evaluates a predicate of cmpps and its like. Signalling or not
// makes no difference with exceptions masked.
func compareHolds[T number](pred uint64, a, b T) bool {
	unordered := a != a || b != b
	var t bool
	switch pred & 7 {
	case 0: // eq; 8: or unordered
		t = a == b || pred&8 != 0 && unordered
	case 1: // lt; 9: nge
		t = a < b || pred&8 != 0 && unordered
	case 2:
		t = a <= b || pred&8 != 0 && unordered
	case 3: // unordered; 11: false
		t = unordered && pred&8 == 0
	case 4: // neq; 12: and ordered
		t = a != b && (pred&8 == 0 || !unordered)
	case 5: // nlt; 13: ge
		t = a >= b || pred&8 == 0 && unordered
	case 6:
		t = a > b || pred&8 == 0 && unordered
	default: // ordered; 15: true
		t = !unordered || pred&8 != 0
	}
	return t
}

func predicate(in *inst) uint64 {
	if in.legacy {
		return in.imm & 7
	}
	return in.imm & 31
}

func compareFloats[T number](d, a, b *Vec, in *inst) {
	if in.scalar {
		*d = *a
	}
	x, y := floats[T](a), floats[T](b)
	for i := range in.lanes() {
		var r uint64
		if compareHolds(predicate(in), x[i], y[i]) {
			r = ^uint64(0)
		}
		d.setElem(i, in.esz, r)
	}
}

func compareFloatMask[T number](d, a, b *Vec, in *inst) {
	x, y := floats[T](a), floats[T](b)
	for i := range in.lanes() {
		if compareHolds(predicate(in), x[i], y[i]) {
			d[0] |= 1 << i
		}
	}
}

// orderFlags is ucomis and comis.
func orderFlags[T number](d, a, b *Vec, _ *inst) {
	x, y := floats[T](a)[0], floats[T](b)[0]
	switch {
	case x != x || y != y:
		d[0] = FlagZF | FlagPF | FlagCF
	case x < y:
		d[0] = FlagCF
	case x == y:
		d[0] = FlagZF
	}
}

func horizontal[T number](f func(a, b T) T) kernel {
	return func(d, a, b *Vec, in *inst) {
		x, y, z := floats[T](a), floats[T](b), floats[T](d)
		per := 16 / int(in.esz)
		for l := 0; l < in.lanes(); l += per {
			for i := range per / 2 {
				z[l+i] = f(x[l+2*i], x[l+2*i+1])
				z[l+per/2+i] = f(y[l+2*i], y[l+2*i+1])
			}
		}
	}
}

func addsub[T number](d, a, b *Vec, in *inst) {
	x, y, z := floats[T](a), floats[T](b), floats[T](d)
	for i := range in.lanes() {
		if i&1 == 0 {
			z[i] = fsub(x[i], y[i])
		} else {
			z[i] = fadd(x[i], y[i])
		}
	}
}

func dotProduct[T number](d, a, b *Vec, in *inst) {
	x, y, z := floats[T](a), floats[T](b), floats[T](d)
	per := 16 / int(in.esz)
	for l := 0; l < in.lanes(); l += per {
		var p [4]T
		for i := range per {
			if in.imm>>(4+i)&1 != 0 {
				p[i] = fmul(x[l+i], y[l+i])
			}
		}
		for i := range per {
			z[l+i] = 0
			if in.imm>>i&1 != 0 {
				z[l+i] = dotSum(p, i, per)
			}
		}
	}
}

// dotSum adds the products for element i. Which of several NaNs it is depends on the order, in which makers differ: AMD's has one
// sum for all elements.
func dotSum[T number](p [4]T, i, per int) T {
	if per == 2 {
		if amd {
			i = 0
		}
		return fadd(p[i], p[i^1])
	}
	if amd {
		i = 1
	}
	return fadd(fadd(p[i^1], p[i]), fadd(p[i^3], p[i^2]))
}

// roundMode rounds to an integer by the low bits of round's immediate.
func roundMode(x float64, imm uint64) float64 {
	if imm&4 != 0 {
		imm = 0 // MXCSR's mode, to nearest
	}
	switch imm & 3 {
	case 1:
		return math.Floor(x)
	case 2:
		return math.Ceil(x)
	case 3:
		return math.Trunc(x)
	}
	return math.RoundToEven(x)
}

func rounded[T number](d, a, b *Vec, in *inst) { roundLanes[T](d, a, b, in, 0) }

// roundScale is vrndscale, whose immediate also has the number of binary
// places to keep.
func roundScale[T number](d, a, b *Vec, in *inst) {
	roundLanes[T](d, a, b, in, int(in.imm>>4&15))
}

func roundLanes[T number](d, a, b *Vec, in *inst, fraction int) {
	if in.scalar {
		*d = *a
	}
	y, z := floats[T](b), floats[T](d)
	for i := range in.lanes() {
		x := y[i]
		s := math.Ldexp(float64(x), fraction)
		switch {
		case x != x:
			z[i] = quiet(x)
		case math.IsInf(s, 0):
			z[i] = x // too large to have a fraction
		default:
			z[i] = T(math.Ldexp(roundMode(s, in.imm), -fraction))
		}
	}
}

// Fused multiply-add.

// fma32 is x*y + z rounded once. The product is exact in double precision; the
// sum is rounded to odd there, which makes rounding it again harmless (Boldo
// and Melquiond, Emulation of a FMA, 2008).
func fma32(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	c := float64(z)
	s := p + c
	if math.IsInf(s, 0) || s != s {
		return float32(s)
	}
	t := s - p
	e := (p - (s - t)) + (c - t)
	if u := math.Float64bits(s); e != 0 && u&1 == 0 {
		if (e > 0) == (s > 0) {
			u++
		} else {
			u--
		}
		s = math.Float64frombits(u)
	}
	return float32(s)
}

// fused computes ±(x*y) ± z.
func fused[T number](x, y, z T, negProduct, negSum bool) T {
	switch {
	case x != x:
		return quiet(x)
	case y != y:
		return quiet(y)
	case z != z:
		return quiet(z)
	}
	if negProduct {
		x = -x
	}
	if negSum {
		z = -z
	}
	var r T
	if unsafe.Sizeof(x) == 4 {
		r = T(fma32(float32(x), float32(y), float32(z)))
	} else {
		r = T(math.FMA(float64(x), float64(y), float64(z)))
	}
	if r != r {
		return invalid[T]()
	}
	return r
}

// fusedKernel: order is 132, 213 or 231 and says which operands are
// multiplied; alternate negates the sum in even (1) or odd (2) lanes.
func fusedKernel[T number](order int, negProduct, negSum bool, alternate int) kernel {
	return func(d, a, b *Vec, in *inst) {
		x, y, z := floats[T](d), floats[T](a), floats[T](b)
		lanes := in.lanes()
		if in.scalar {
			lanes = 1
		}
		for i := range lanes {
			neg := negSum
			if alternate != 0 {
				neg = i&1 == alternate-1
			}
			switch order {
			case 132:
				x[i] = fused(x[i], z[i], y[i], negProduct, neg)
			case 213:
				x[i] = fused(y[i], x[i], z[i], negProduct, neg)
			default:
				x[i] = fused(y[i], z[i], x[i], negProduct, neg)
			}
		}
	}
}

// eachFused calls f for every opcode of the family.
func eachFused(f func(code string, order int, negProduct, negSum bool, alternate int, form string)) {
	const hex = "0123456789abcdef"
	for _, o := range [...]struct {
		high  string
		order int
	}{{"9", 132}, {"a", 213}, {"b", 231}} {
		for low := 6; low < 16; low++ {
			negProduct, negSum := low >= 12, low&2 != 0
			alternate := 0
			if low < 8 {
				alternate, negProduct = low-5, false
			}
			form := " v fl"
			if low >= 8 && low&1 != 0 {
				form = " sc v fl"
			}
			f("66 0f38 "+o.high+hex[low:low+1], o.order, negProduct, negSum, alternate, form)
		}
	}
}

func fusedRows() (rows []vecOp) {
	eachFused(func(code string, order int, negProduct, negSum bool, alternate int, form string) {
		rows = append(rows,
			vecOp{code, "v0e0", "d" + form, vecRVM, fusedKernel[float32](order, negProduct, negSum, alternate)},
			vecOp{code, "v1e1", "q" + form, vecRVM, fusedKernel[float64](order, negProduct, negSum, alternate)})
	})
	return rows
}
