package a64

import "math"

// Floating point of size 2, single, and 3, double, by its bits: rounding to
// nearest, and with NaNs as the CPU has them with FPCR zero.

func isNaN(s uint8, x uint64) bool {
	if s == 3 {
		return x<<1 > 0x7ff<<53
	}
	return uint32(x)<<1 > 0xff<<24
}

// quiet is a NaN that does not signal.
func quiet(s uint8, x uint64) uint64 {
	if s == 3 {
		return x | 1<<51
	}
	return x | 1<<22
}

func isSignaling(s uint8, x uint64) bool { return isNaN(s, x) && quiet(s, x) != x }

func defaultNaN(s uint8) uint64 {
	if s == 3 {
		return 0x7ff8 << 48
	}
	return 0x7fc0 << 16
}

func signBit(s uint8) uint64 {
	if s == 3 {
		return 1 << 63
	}
	return 1 << 31
}

func infinity(s uint8) uint64 {
	if s == 3 {
		return 0x7ff << 52
	}
	return 0x7f8 << 20
}

// chooseNaN is the NaN that an operation results in whose operands are xs: the first
// that signals, else the first, else the default.
func chooseNaN(s uint8, xs ...uint64) uint64 {
	for _, x := range xs {
		if isSignaling(s, x) {
			return quiet(s, x)
		}
	}
	for _, x := range xs {
		if isNaN(s, x) {
			return x
		}
	}
	return defaultNaN(s)
}

func f32(x uint64) float32 { return math.Float32frombits(uint32(x)) }
func f64(x uint64) float64 { return math.Float64frombits(x) }
func b32(f float32) uint64 { return uint64(math.Float32bits(f)) }
func b64(f float64) uint64 { return math.Float64bits(f) }

// value is x as a double, which a single fits into.
func value(s uint8, x uint64) float64 {
	if s == 3 {
		return f64(x)
	}
	return float64(f32(x))
}

// encode is a double that fits, or is to be rounded once.
func encode(s uint8, f float64) uint64 {
	if s == 3 {
		return b64(f)
	}
	return b32(float32(f))
}

func fpAdd(s uint8, a, b uint64) uint64 {
	var r uint64
	if s == 3 {
		r = b64(f64(a) + f64(b))
	} else {
		r = b32(f32(a) + f32(b))
	}
	if isNaN(s, r) {
		return chooseNaN(s, a, b)
	}
	return r
}

func fpSub(s uint8, a, b uint64) uint64 {
	var r uint64
	if s == 3 {
		r = b64(f64(a) - f64(b))
	} else {
		r = b32(f32(a) - f32(b))
	}
	if isNaN(s, r) {
		return chooseNaN(s, a, b)
	}
	return r
}

func fpMul(s uint8, a, b uint64) uint64 {
	var r uint64
	if s == 3 {
		r = b64(f64(a) * f64(b))
	} else {
		r = b32(f32(a) * f32(b))
	}
	if isNaN(s, r) {
		return chooseNaN(s, a, b)
	}
	return r
}

func fpDiv(s uint8, a, b uint64) uint64 {
	var r uint64
	if s == 3 {
		r = b64(f64(a) / f64(b))
	} else {
		r = b32(f32(a) / f32(b))
	}
	if isNaN(s, r) {
		return chooseNaN(s, a, b)
	}
	return r
}

// fpMulx is fmulx: 0 times infinity is 2.
func fpMulx(s uint8, a, b uint64) uint64 {
	sign := signBit(s)
	if x, y := a&^sign, b&^sign; x == 0 && y == infinity(s) || x == infinity(s) && y == 0 {
		return encode(s, 2) | (a^b)&sign
	}
	return fpMul(s, a, b)
}

func fpSqrt(s uint8, a uint64) uint64 {
	r := encode(s, math.Sqrt(value(s, a)))
	if isNaN(s, r) {
		return chooseNaN(s, a)
	}
	return r
}

// fpFused is c + a*b, rounded once.
func fpFused(s uint8, c, a, b uint64) uint64 {
	var r uint64
	if s == 3 {
		r = b64(math.FMA(f64(a), f64(b), f64(c)))
	} else {
		r = b32(fused32(f32(a), f32(b), f32(c)))
	}
	if !isNaN(s, r) {
		return r
	}
	sign := signBit(s)
	x, y := a&^sign, b&^sign
	if isNaN(s, c) && !isSignaling(s, c) && !isSignaling(s, a) && !isSignaling(s, b) &&
		(x == 0 && y == infinity(s) || x == infinity(s) && y == 0) {
		return defaultNaN(s)
	}
	return chooseNaN(s, c, a, b)
}

// fused32 rounds to odd in double precision first, so that rounding to single is
// as from the exact sum.
func fused32(a, b, c float32) float32 {
	p := float64(a) * float64(b) // exact
	z := float64(c)
	sum := p + z
	if math.IsInf(sum, 0) || math.IsNaN(sum) {
		return float32(sum)
	}
	// What sum has lost (Knuth's TwoSum).
	t := sum - p
	lost := (p - (sum - t)) + (z - t)
	if u := math.Float64bits(sum); lost != 0 && u&1 == 0 {
		if (lost > 0) == (sum > 0) {
			u++
		} else {
			u--
		}
		sum = math.Float64frombits(u)
	}
	return float32(sum)
}

func fpMax(s uint8, a, b uint64) uint64 {
	x, y := value(s, a), value(s, b)
	switch {
	case x > y:
		return a
	case y > x:
		return b
	case x == y:
		return a & b // of zeros the positive one
	}
	return chooseNaN(s, a, b)
}

func fpMin(s uint8, a, b uint64) uint64 {
	x, y := value(s, a), value(s, b)
	switch {
	case x < y:
		return a
	case y < x:
		return b
	case x == y:
		return a | b
	}
	return chooseNaN(s, a, b)
}

// oneNumber says whether one operand is a NaN that does not signal and the other a
// number, which it is then.
func oneNumber(s uint8, a, b uint64) (uint64, bool) {
	switch x, y := isNaN(s, a), isNaN(s, b); {
	case x && !y && !isSignaling(s, a):
		return b, true
	case y && !x && !isSignaling(s, b):
		return a, true
	}
	return 0, false
}

func fpMaxnm(s uint8, a, b uint64) uint64 {
	if x, ok := oneNumber(s, a, b); ok {
		return x
	}
	return fpMax(s, a, b)
}

func fpMinnm(s uint8, a, b uint64) uint64 {
	if x, ok := oneNumber(s, a, b); ok {
		return x
	}
	return fpMin(s, a, b)
}

// fpCompare is NZCV after comparing.
func fpCompare(s uint8, a, b uint64) uint8 {
	switch x, y := value(s, a), value(s, b); {
	case x < y:
		return bitN
	case x == y:
		return bitZ | bitC
	case x > y:
		return bitC
	}
	return bitC | bitV
}

// Rounding to an integer.
const (
	roundNearest = iota // to even
	roundUp
	roundDown
	roundZero
	roundAway // to nearest, away from zero
)

func rounded(f float64, mode uint8) float64 {
	switch mode {
	case roundNearest:
		return math.RoundToEven(f)
	case roundUp:
		return math.Ceil(f)
	case roundDown:
		return math.Floor(f)
	case roundZero:
		return math.Trunc(f)
	}
	return math.Round(f)
}

func fpRound(s uint8, a uint64, mode uint8) uint64 {
	if isNaN(s, a) {
		return quiet(s, a)
	}
	return encode(s, rounded(value(s, a), mode))
}

// fpToInt is an integer of width bits, the nearest there is.
func fpToInt(s uint8, a uint64, mode uint8, isSigned bool, width, fraction uint) uint64 {
	if isNaN(s, a) {
		return 0
	}
	f := rounded(math.Ldexp(value(s, a), int(fraction)), mode)
	mask := ^uint64(0) >> (64 - width)
	if isSigned {
		limit := math.Ldexp(1, int(width)-1)
		switch {
		case f >= limit:
			return mask >> 1
		case f < -limit:
			return mask>>1 + 1
		}
		return uint64(int64(f)) & mask
	}
	switch {
	case f >= math.Ldexp(1, int(width)):
		return mask
	case f <= 0:
		return 0
	}
	return uint64(f)
}

// intToFP is of an integer that is extended to 64 bits.
func intToFP(s uint8, v uint64, isSigned bool, fraction uint) uint64 {
	var f float64
	switch {
	case s == 3 && isSigned:
		f = float64(int64(v))
	case s == 3:
		f = float64(v)
	case isSigned:
		f = float64(float32(int64(v)))
	default:
		f = float64(float32(v))
	}
	return encode(s, math.Ldexp(f, -int(fraction)))
}

// convert is between the sizes.
func fpConvert(from, to uint8, a uint64) uint64 {
	if from == to {
		return a
	}
	if isNaN(from, a) {
		if to == 2 {
			return a>>63<<31 | 0x7fc<<20 | a>>29&(1<<22-1)
		}
		return a>>31&1<<63 | 0x7ff8<<48 | a&(1<<22-1)<<29
	}
	return encode(to, value(from, a))
}

// expandFloat is VFPExpandImm of the architecture manual.
func expandFloat(imm8 uint64, size uint8) uint64 {
	sign, b, rest := imm8>>7, imm8>>6&1, imm8&0x3f
	if size == 3 {
		exponent := (b^1)<<8 | b*0xff
		return sign<<63 | exponent<<54 | rest<<48
	}
	exponent := (b^1)<<5 | b*0x1f
	return sign<<31 | exponent<<25 | rest<<19
}
