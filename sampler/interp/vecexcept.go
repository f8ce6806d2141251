package interp

import (
	"math"
	"unsafe"
)

// The sticky exception flags of MXCSR. The mathematics library clears and reads
// them around its functions, so they must be exact there.
const (
	exInvalid = 1 << iota
	exDenormal
	exZeroDivide
	exOverflow
	exUnderflow
	exInexact

	// exUnknown: what was raised is not worked out. Reading the flags then
	// ends the burst.
	exUnknown = 1 << 31
)

// raiser says which exceptions an operation raises in lane i.
type raiser func(in *inst, d, a, b *Vec, i int) uint32

// track adds what the instruction is about to raise to MXCSR.
func (m *Machine) track(in *inst, d, a, b *Vec) {
	if in.raise == nil || in.sae || m.exLost {
		return
	}
	var ex uint32
	act := m.active(in)
	for i := 0; act != 0; i++ {
		if act&1 != 0 {
			ex |= in.raise(in, d, a, b, i)
		}
		act >>= 1
	}
	if ex&exUnknown != 0 {
		m.exLost = true
	}
	m.vec.MXCSR |= ex & 0x3f
}

func signalling[T number](x T) bool {
	if unsafe.Sizeof(x) == 4 {
		return x != x && *(*uint32)(unsafe.Pointer(&x))>>22&1 == 0
	}
	return x != x && *(*uint64)(unsafe.Pointer(&x))>>51&1 == 0
}

func denormal[T number](x T) bool {
	if unsafe.Sizeof(x) == 4 {
		u := *(*uint32)(unsafe.Pointer(&x)) << 1
		return u != 0 && u < 1<<24
	}
	u := *(*uint64)(unsafe.Pointer(&x)) << 1
	return u != 0 && u < 1<<53
}

// inputs is what operands raise by themselves. With done the result is a NaN
// operand's and nothing else is raised.
func inputs[T number](xs ...T) (ex uint32, done bool) {
	for _, x := range xs {
		if x != x {
			done = true
			if signalling(x) {
				ex |= exInvalid
			}
		} else if denormal(x) {
			ex |= exDenormal
		}
	}
	if done {
		ex &= exInvalid
	}
	return ex, done
}

func infinite[T number](x T) bool { return math.IsInf(float64(x), 0) }

// twoSum is the rounding error of s = a + b (Knuth).
func twoSum(a, b, s float64) float64 {
	t := s - a
	return (a - (s - t)) + (b - t)
}

// tiny64 is where residuals in double precision may themselves underflow.
const tiny64 = 0x1p-900

// outcome judges a rounded finite result: inexact tells whether it differs from
// the exact one. Underflow is detected after rounding.
func outcome[T number](r T, inexact bool) uint32 {
	switch {
	case !inexact:
		return 0
	case infinite(r):
		return exOverflow | exInexact
	case unsafe.Sizeof(r) == 4:
		switch a := math.Abs(float64(r)); {
		case a < 0x1p-126:
			return exUnderflow | exInexact
		case a == 0x1p-126: // depends on the exact value
			return exUnknown
		}
	case math.Abs(float64(r)) < tiny64:
		return exUnknown
	}
	return exInexact
}

// inexactAdd to inexactDiv tell whether r is not the exact sum, difference,
// product or quotient. In double precision that of two floats is exact, or its
// error is; of two doubles the fused residual is, away from tiny64.

func inexactAdd[T number](x, y, r T) bool {
	a, b := float64(x), float64(y)
	s := a + b
	return twoSum(a, b, s) != 0 || float64(r) != s
}

func inexactSub[T number](x, y, r T) bool { return inexactAdd(x, -y, r) }

func inexactMul[T number](x, y, r T) bool {
	a, b := float64(x), float64(y)
	if unsafe.Sizeof(x) == 4 {
		return float64(r) != a*b
	}
	return math.FMA(a, b, -float64(r)) != 0
}

func inexactDiv[T number](x, y, r T) bool {
	a, b := float64(x), float64(y)
	if unsafe.Sizeof(x) == 4 {
		return float64(r)*b != a
	}
	return math.FMA(float64(r), b, -a) != 0
}

// raiseBinary: f is the operation and inexact tells whether its finite result r
// of x and y is rounded.
func raiseBinary[T number](f func(a, b T) T, inexact func(x, y, r T) bool, multiplies, divides bool) raiser {
	return func(in *inst, _, a, b *Vec, i int) uint32 {
		x, y := floats[T](a)[i], floats[T](b)[i]
		ex, done := inputs(x, y)
		if done {
			return ex
		}
		r := f(x, y)
		switch {
		case r != r:
			return exInvalid
		case infinite(x) || infinite(y):
			return ex
		case divides && y == 0:
			return exZeroDivide
		case infinite(r):
			return ex | exOverflow | exInexact
		}
		if unsafe.Sizeof(x) == 8 && (multiplies || divides) && x != 0 && y != 0 &&
			(math.Abs(float64(r)) < tiny64 || math.Abs(float64(x)) < tiny64) {
			return exUnknown
		}
		return ex | outcome(r, inexact(x, y, r))
	}
}

// raiseOrder is for min, max and comis, and with quiet for ucomis, which a
// quiet NaN does not disturb.
func raiseOrder[T number](quiet bool) raiser {
	return func(in *inst, _, a, b *Vec, i int) uint32 {
		ex, done := inputs(floats[T](a)[i], floats[T](b)[i])
		if done && !quiet {
			return exInvalid
		}
		return ex
	}
}

// raiseCompare: half of the predicates are disturbed by a quiet NaN.
func raiseCompare[T number](in *inst, d, a, b *Vec, i int) uint32 {
	p := predicate(in)
	signals := (p&3 == 1 || p&3 == 2) != (p&16 != 0)
	return raiseOrder[T](!signals)(in, d, a, b, i)
}

// raiseRound is for round and vrndscale; one bit of the immediate hides that
// the result is inexact.
func raiseRound[T number](in *inst, _, a, b *Vec, i int) uint32 {
	x := floats[T](b)[i]
	if x != x {
		ex, _ := inputs(x)
		return ex
	}
	var r Vec
	one, form := *in, *in.vecForm
	one.vecForm, form.scalar = &form, true
	floats[T](&r)[0] = x
	in.kern(&r, &r, &r, &one)
	return inexactIf(floats[T](&r)[0] != x && in.imm&8 == 0)
}

func raiseSqrt[T number](_ *inst, _, _, b *Vec, i int) uint32 {
	x := floats[T](b)[i]
	ex, done := inputs(x)
	switch {
	case done:
		return ex
	case x < 0:
		return exInvalid
	case x == 0 || infinite(x):
		return 0
	}
	s := math.Sqrt(float64(x))
	if unsafe.Sizeof(x) == 4 {
		r := float64(float32(s))
		return ex | outcome(T(r), r*r != float64(x))
	}
	if float64(x) < tiny64 {
		return exUnknown
	}
	return ex | outcome(T(s), math.FMA(s, s, -float64(x)) != 0)
}

// raiseFused: the operands of ±(x*y) ± z by order, as in fusedKernel.
func raiseFused[T number](order int, negProduct, negSum bool, alternate int) raiser {
	return func(in *inst, d, a, b *Vec, i int) uint32 {
		p, q, s := floats[T](d)[i], floats[T](a)[i], floats[T](b)[i]
		var x, y, z T
		switch order {
		case 132:
			x, y, z = p, s, q
		case 213:
			x, y, z = q, p, s
		default:
			x, y, z = q, s, p
		}
		neg := negSum
		if alternate != 0 {
			neg = i&1 == alternate-1
		}
		ex, done := inputs(x, y, z)
		if done {
			if x == 0 && infinite(y) || infinite(x) && y == 0 {
				return exUnknown
			}
			return ex
		}
		if negProduct {
			x = -x
		}
		if neg {
			z = -z
		}
		r := fused(x, y, z, false, false)
		switch {
		case r != r:
			return exInvalid
		case infinite(x) || infinite(y) || infinite(z):
			return ex
		case infinite(r):
			return ex | exOverflow | exInexact
		}
		return ex | outcomeFused(float64(x), float64(y), float64(z), r)
	}
}

// outcomeFused compares r with the exact x*y + z, the sum of three parts.
func outcomeFused[T number](x, y, z float64, r T) uint32 {
	p := x * y
	var e float64
	if unsafe.Sizeof(r) == 8 {
		if x != 0 && y != 0 && (math.Abs(p) < tiny64 || math.Abs(p) > 1e300) || math.Abs(float64(r)) < tiny64 && r != 0 {
			return exUnknown
		}
		e = math.FMA(x, y, -p)
	}
	s := p + z
	t := twoSum(p, z, s)
	d := s - float64(r)
	// The difference is exact where both are of a size (Sterbenz).
	if q := s / float64(r); s != 0 && !(q >= 0.5 && q <= 2) {
		return exUnknown
	}
	u := d + t
	return outcome(r, twoSum(d, t, u) != 0 || u+e != 0)
}

// Conversions.

func raiseWiden(_ *inst, _, a, _ *Vec, i int) uint32 {
	ex, _ := inputs(a.f32()[i])
	return ex
}

func raiseShorten(_ *inst, _, a, _ *Vec, i int) uint32 {
	x := floats[float64](a)[i]
	ex, done := inputs(x)
	if done || math.IsInf(x, 0) {
		return ex
	}
	r := float32(x)
	return ex | outcome(r, float64(r) != x)
}

// raiseToInt: what does not lie in [low, high) after rounding is invalid.
func raiseToInt[T number](low, high float64, truncate bool) raiser {
	return func(in *inst, _, a, _ *Vec, i int) uint32 {
		x := float64(floats[T](a)[i])
		r := rounding(x, truncate)
		switch {
		case !(r >= low && r < high):
			return exInvalid
		case r != x:
			return exInexact
		}
		return 0
	}
}

func raiseFromI32[T number](_ *inst, _, a, _ *Vec, i int) uint32 {
	v := int32(a.d()[i])
	return inexactIf(int64(T(v)) != int64(v))
}

func raiseFromI64[T number](_ *inst, _, a, _ *Vec, i int) uint32 {
	v := int64(a[i])
	r := T(v)
	return inexactIf(float64(r) == 1<<63 || int64(r) != v)
}

func inexactIf(set bool) uint32 {
	if set {
		return exInexact
	}
	return 0
}

func raiseNothing(_ *inst, _, _, _ *Vec, _ int) uint32 { return 0 }

func stmxcsr(m *Machine, in *inst) {
	if m.exLost {
		panic(Halt{Cause: Unsupported})
	}
	m.setRM(in, uint64(m.vec.MXCSR))
}

// vecRaisers is what the rows of the opcode tables raise, by code, element size
// and element size of the memory operand. What is not here is not known.
var vecRaisers = func() map[string]raiser {
	t := map[string]raiser{
		"np 0f 51 4 4": raiseSqrt[float32], "f3 0f 51 4 4": raiseSqrt[float32],
		"66 0f 51 8 8": raiseSqrt[float64], "f2 0f 51 8 8": raiseSqrt[float64],
		"np 0f 2e 4 4": raiseOrder[float32](true), "66 0f 2e 8 8": raiseOrder[float64](true),
		"np 0f 2f 4 4": raiseOrder[float32](false), "66 0f 2f 8 8": raiseOrder[float64](false),
		"np 0f c2 4 4": raiseCompare[float32], "f3 0f c2 4 4": raiseCompare[float32],
		"66 0f c2 8 8": raiseCompare[float64], "f2 0f c2 8 8": raiseCompare[float64],
		"66 0f3a 08 4 4": raiseRound[float32], "66 0f3a 0a 4 4": raiseRound[float32],
		"66 0f3a 09 8 8": raiseRound[float64], "66 0f3a 0b 8 8": raiseRound[float64],

		"np 0f 5a 8 4": raiseWiden, "f3 0f 5a 8 4": raiseWiden, "66 0f 5a 4 8": raiseShorten, "f2 0f 5a 4 8": raiseShorten,
		"np 0f 5b 4 4": raiseFromI32[float32], "np 0f 5b 4 8": raiseFromI64[float32],
		"f3 0f e6 8 4": raiseNothing, "f3 0f e6 8 8": raiseFromI64[float64],
		"66 0f 5b 4 4": raiseToInt[float32](-1<<31, 1<<31, false), "f3 0f 5b 4 4": raiseToInt[float32](-1<<31, 1<<31, true),
		"f2 0f e6 4 8": raiseToInt[float64](-1<<31, 1<<31, false), "66 0f e6 4 8": raiseToInt[float64](-1<<31, 1<<31, true),
		"f3 0f 2a 4 4": raiseFromGPR[float32], "f2 0f 2a 4 4": raiseFromGPR[float64],
		"f3 0f 2c 4 4": raiseToGPR[float32](true), "f3 0f 2d 4 4": raiseToGPR[float32](false),
		"f2 0f 2c 8 8": raiseToGPR[float64](true), "f2 0f 2d 8 8": raiseToGPR[float64](false),
	}
	arith := func(op string, f4, f8 raiser) {
		t["np 0f "+op+" 4 4"], t["f3 0f "+op+" 4 4"] = f4, f4
		t["66 0f "+op+" 8 8"], t["f2 0f "+op+" 8 8"] = f8, f8
	}
	arith("58", raiseBinary(fadd[float32], inexactAdd[float32], false, false), raiseBinary(fadd[float64], inexactAdd[float64], false, false))
	arith("5c", raiseBinary(fsub[float32], inexactSub[float32], false, false), raiseBinary(fsub[float64], inexactSub[float64], false, false))
	arith("59", raiseBinary(fmul[float32], inexactMul[float32], true, false), raiseBinary(fmul[float64], inexactMul[float64], true, false))
	arith("5e", raiseBinary(fdiv[float32], inexactDiv[float32], false, true), raiseBinary(fdiv[float64], inexactDiv[float64], false, true))
	arith("5d", raiseOrder[float32](false), raiseOrder[float64](false))
	arith("5f", raiseOrder[float32](false), raiseOrder[float64](false))
	eachFused(func(code string, order int, negProduct, negSum bool, alternate int, _ string) {
		t[code+" 4 4"] = raiseFused[float32](order, negProduct, negSum, alternate)
		t[code+" 8 8"] = raiseFused[float64](order, negProduct, negSum, alternate)
	})
	return t
}()

// The operand is a general register of in.w bytes, put into a.
func raiseFromGPR[T number](in *inst, d, a, b *Vec, i int) uint32 {
	if in.w == 8 {
		return raiseFromI64[T](in, d, a, b, i)
	}
	return raiseFromI32[T](in, d, a, b, i)
}

func raiseToGPR[T number](truncate bool) raiser {
	r4, r8 := raiseToInt[T](-1<<31, 1<<31, truncate), raiseToInt[T](-1<<63, 1<<63, truncate)
	return func(in *inst, d, a, b *Vec, i int) uint32 {
		if in.w == 8 {
			return r8(in, d, a, b, i)
		}
		return r4(in, d, a, b, i)
	}
}
