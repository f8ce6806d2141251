package interp

import (
	"math/big"
	"math/bits"
)

// F80 is a number in the x87's extended format: the significand with its integer
// bit, and sign and biased exponent.
type F80 struct {
	M  uint64
	SE uint16
}

// Bits of the x87 status word.
const (
	x87Invalid   = 1 << 0
	x87Denormal  = 1 << 1
	x87ZeroDiv   = 1 << 2
	x87Overflow  = 1 << 3
	x87Underflow = 1 << 4
	x87Inexact   = 1 << 5
	x87Stack     = 1 << 6
	x87Summary   = 1 << 7
	x87C0        = 1 << 8
	x87C1        = 1 << 9
	x87C2        = 1 << 10
	x87C3        = 1 << 14
)

type f80Kind uint8

const (
	f80Zero f80Kind = iota
	f80Finite
	f80Inf
	f80Quiet
	f80Signal
	f80Invalid // no number: pseudo-NaN, pseudo-infinity, unnormal
)

// f80 is an F80 taken apart: sig * 2^(exp-63), sig with its highest bit set.
type f80 struct {
	kind     f80Kind
	neg      bool
	denormal bool
	exp      int
	sig      uint64
	raw      F80
}

const (
	f80Bias = 16383
	f80Min  = 1 - f80Bias // exponent of the smallest normal number
)

// indefinite is what an invalid operation gives.
var indefinite = F80{3 << 62, 0xffff}

func (v F80) open() f80 {
	x := f80{neg: v.SE>>15 != 0, sig: v.M, raw: v}
	e := int(v.SE & 0x7fff)
	switch {
	case e == 0 && v.M == 0:
		return x
	case e == 0:
		x.kind, x.denormal = f80Finite, true
		n := bits.LeadingZeros64(v.M)
		x.sig, x.exp = v.M<<n, f80Min-n
	case v.M>>63 == 0:
		x.kind = f80Invalid
	case e < 0x7fff:
		x.kind, x.exp = f80Finite, e-f80Bias
	case v.M<<1 == 0:
		x.kind = f80Inf
	case v.M>>62&1 != 0:
		x.kind = f80Quiet
	default:
		x.kind = f80Signal
	}
	return x
}

func (x *f80) isNaN() bool { return x.kind == f80Quiet || x.kind == f80Signal }

func signed(neg bool, se uint16, m uint64) F80 {
	if neg {
		se |= 0x8000
	}
	return F80{m, se}
}

func (v F80) quiet() F80 { return F80{v.M | 1<<62, v.SE} }

// f80Rounding is to p bits, with normal numbers from 2^least to below 2^(most+1),
// by the control word's mode: to nearest, down, up, to zero.
type f80Rounding struct {
	p, least, most int
	mode           uint16
}

// extended is the rounding of register results. Without a precision that is the
// control word's.
func extended(fcw uint16, p int) f80Rounding {
	if p == 0 {
		p = [4]int{24, 64, 53, 64}[fcw>>8&3]
	}
	return f80Rounding{p, f80Min, f80Bias, fcw >> 10 & 3}
}

// f80Rounded is a significand of which the highest p bits count, with the integer bit clear
// where the result is denormal or zero, or infinity.
type f80Rounded struct {
	sig   uint64
	exp   int
	inf   bool
	flags uint16 // of the status word; C1 if it was rounded away from zero
}

// round takes hi.lo * 2^(exp-63), hi with its highest bit set; the lowest bit of lo
// may stand for all below it.
func (r f80Rounding) round(neg bool, exp int, hi, lo uint64) (out f80Rounded) {
	keep := r.p
	if exp < r.least {
		keep = max(keep-(r.least-exp), -1)
	}
	q, up, inexact := r.cut(neg, hi, lo, keep)
	if inexact {
		out.flags |= x87Inexact
		// Tiny is what would be too small with any exponent.
		if exp < r.least {
			all, carry, _ := r.cut(neg, hi, lo, r.p)
			if carry {
				all++
			}
			if exp < r.least-1 || !(carry && all == power(r.p)) {
				out.flags |= x87Underflow
			}
		}
	}
	if up {
		q++
		out.flags |= x87C1
	}
	if exp < r.least {
		exp = r.least
	} else if q == power(keep) { // carried out of all bits
		q = power(keep - 1)
		exp++
	}
	out.sig, out.exp = q<<(64-r.p), exp
	if exp > r.most {
		out.flags = x87Overflow | x87Inexact
		toward := r.mode == 3 || r.mode == 1 && !neg || r.mode == 2 && neg
		if out.inf = !toward; out.inf {
			out.flags |= x87C1
		} else {
			out.sig, out.exp = ^uint64(0)<<(64-r.p), r.most
		}
	}
	return out
}

// power is 2^n, 0 for n = 64.
func power(n int) uint64 { return 1 << n }

// cut is the highest keep bits of hi.lo, -1 for none and not half a bit either, and
// whether they must be rounded up.
func (r f80Rounding) cut(neg bool, hi, lo uint64, keep int) (q uint64, up, inexact bool) {
	var half, rest bool
	switch drop := 64 - keep; {
	case drop == 0:
		q, half, rest = hi, lo>>63 != 0, lo<<1 != 0
	case drop <= 64:
		q, half = hi>>drop, hi>>(drop-1)&1 != 0
		rest = hi&(1<<(drop-1)-1) != 0 || lo != 0
	default:
		rest = true
	}
	inexact = half || rest
	switch r.mode {
	case 0:
		up = half && (rest || q&1 != 0)
	case 1:
		up = neg && inexact
	case 2:
		up = !neg && inexact
	}
	return q, up, inexact
}

// pack rounds to a register.
func (r f80Rounding) pack(neg bool, exp int, hi, lo uint64) (F80, uint16) {
	v := r.round(neg, exp, hi, lo)
	if v.inf {
		return signed(neg, 0x7fff, 1<<63), v.flags
	}
	if v.sig>>63 == 0 {
		return signed(neg, 0, v.sig), v.flags
	}
	return signed(neg, uint16(v.exp+f80Bias), v.sig), v.flags
}

// short is the 32- or 64-bit format.
type short struct{ bits, frac int }

var f32Format, f64Format = short{32, 23}, short{64, 52}

func (s short) bias() int { return 1<<(s.bits-s.frac-2) - 1 }

// from widens a number; it is exact. A signalling NaN stays one.
func (s short) from(v uint64) (x F80, flags uint16) {
	neg := v>>(s.bits-1)&1 != 0
	top := 1<<(s.bits-1-s.frac) - 1
	e, f := int(v>>s.frac)&top, v&(1<<s.frac-1)
	switch {
	case e == top:
		return signed(neg, 0x7fff, 1<<63|f<<(63-s.frac)), 0
	case e == 0 && f == 0:
		return signed(neg, 0, 0), 0
	case e == 0:
		n := bits.LeadingZeros64(f)
		return signed(neg, uint16(1-s.bias()-(n-(63-s.frac))+f80Bias), f<<n), x87Denormal
	}
	return signed(neg, uint16(e-s.bias()+f80Bias), 1<<63|f<<(63-s.frac)), 0
}

// to rounds to the format.
func (s short) to(v F80, mode uint16) (out uint64, flags uint16) {
	x := v.open()
	sign := uint64(v.SE>>15) << (s.bits - 1)
	top := uint64(1<<(s.bits-1-s.frac)-1) << s.frac
	quiet := uint64(1) << (s.frac - 1)
	fraction := v.M << 1 >> (64 - s.frac)
	switch x.kind {
	case f80Zero:
		return sign, 0
	case f80Inf:
		return sign | top, 0
	case f80Quiet:
		return sign | top | quiet | fraction, 0
	case f80Signal:
		return sign | top | quiet | fraction, x87Invalid
	case f80Invalid:
		return 1<<(s.bits-1) | top | quiet, x87Invalid
	}
	r := f80Rounding{s.frac + 1, 1 - s.bias(), s.bias(), mode}.round(x.neg, x.exp, x.sig, 0)
	if r.inf {
		return sign | top, r.flags
	}
	e := uint64(0)
	if r.sig>>63 != 0 {
		e = uint64(r.exp + s.bias())
	}
	return sign | e<<s.frac | r.sig<<1>>(64-s.frac), r.flags
}

// f80FromInt is exact.
func f80FromInt(v int64) F80 {
	if v == 0 {
		return F80{}
	}
	m := uint64(v)
	if v < 0 {
		m = -m
	}
	n := bits.LeadingZeros64(m)
	return signed(v < 0, uint16(f80Bias+63-n), m<<n)
}

// toInt rounds to an integer of so many bits; what has none is the smallest.
func (v F80) toInt(size int, mode uint16) (out int64, flags uint16) {
	x := v.open()
	none := int64(-1) << (size - 1)
	if x.kind == f80Zero {
		return 0, 0
	}
	if x.kind != f80Finite || x.exp > 63 {
		return none, x87Invalid
	}
	q, up, inexact := f80Rounding{mode: mode}.cut(x.neg, x.sig, 0, max(x.exp+1, -1))
	if up {
		q++
		flags |= x87C1
	}
	if inexact {
		flags |= x87Inexact
	}
	most := uint64(1)<<(size-1) - 1
	if x.neg {
		most++
	}
	if q > most || up && q == 0 {
		return none, x87Invalid
	}
	if x.neg {
		return -int64(q), flags
	}
	return int64(q), flags
}

// nan is what an operation on a NaN gives: the other operand's, if that is quiet and this
// one is not, else the one with the greater significand.
func nan(a, b f80) (F80, uint16) {
	var flags uint16
	if a.kind == f80Signal || b.kind == f80Signal {
		flags = x87Invalid
	}
	x, y := a.raw.quiet(), b.raw.quiet()
	switch {
	case !b.isNaN() || a.kind == f80Quiet && b.kind == f80Signal:
		return x, flags
	case !a.isNaN() || a.kind == f80Signal && b.kind == f80Quiet:
		return y, flags
	case x.M < y.M || x.M == y.M && x.SE > y.SE:
		return y, flags
	}
	return x, flags
}

// special handles operands that are no numbers; ok is false for others.
func special(a, b f80) (v F80, flags uint16, ok bool) {
	switch {
	case a.kind == f80Invalid || b.kind == f80Invalid:
		return indefinite, x87Invalid, true
	case a.isNaN() || b.isNaN():
		v, flags = nan(a, b)
		return v, flags, true
	}
	if a.denormal || b.denormal {
		flags = x87Denormal
	}
	return v, flags, false
}

func f80Add(a, b f80, r f80Rounding) (F80, uint16) {
	v, flags, ok := special(a, b)
	if ok {
		return v, flags
	}
	switch {
	case a.kind == f80Inf && b.kind == f80Inf && a.neg != b.neg:
		return indefinite, x87Invalid
	case a.kind == f80Inf:
		return a.raw, flags
	case b.kind == f80Inf:
		return b.raw, flags
	case a.kind == f80Zero && b.kind == f80Zero:
		neg := a.neg && b.neg || a.neg != b.neg && r.mode == 1
		return signed(neg, 0, 0), flags
	case a.kind == f80Zero:
		a = b
		b.sig = 0
	case b.kind == f80Zero:
		b.sig = 0
	case a.exp < b.exp || a.exp == b.exp && a.sig < b.sig:
		a, b = b, a
	}
	hi, lo := b.sig, uint64(0)
	switch d := a.exp - b.exp; {
	case b.sig == 0 || d == 0:
	case d < 64:
		hi, lo = b.sig>>d, b.sig<<(64-d)
	case d < 127:
		hi, lo = 0, b.sig>>(d-64)
		if lo<<(d-64) != b.sig {
			lo |= 1
		}
	default:
		hi, lo = 0, 1
	}
	exp := a.exp
	if a.neg == b.neg {
		sum, carry := bits.Add64(a.sig, hi, 0)
		if carry != 0 {
			lo = sum<<63 | lo>>1 | lo&1
			sum = 1<<63 | sum>>1
			exp++
		}
		v, f := r.pack(a.neg, exp, sum, lo)
		return v, flags | f
	}
	lo, borrow := bits.Sub64(0, lo, 0)
	hi, _ = bits.Sub64(a.sig, hi, borrow)
	if hi == 0 && lo == 0 {
		return signed(r.mode == 1, 0, 0), flags
	}
	hi, lo, exp = normalize(hi, lo, exp)
	v, f := r.pack(a.neg, exp, hi, lo)
	return v, flags | f
}

func normalize(hi, lo uint64, exp int) (uint64, uint64, int) {
	if hi == 0 {
		hi, lo, exp = lo, 0, exp-64
	}
	n := bits.LeadingZeros64(hi)
	return hi<<n | lo>>1>>(63-n), lo << n, exp - n
}

func f80Mul(a, b f80, r f80Rounding) (F80, uint16) {
	v, flags, ok := special(a, b)
	if ok {
		return v, flags
	}
	neg := a.neg != b.neg
	switch {
	case a.kind == f80Inf && b.kind == f80Zero, a.kind == f80Zero && b.kind == f80Inf:
		return indefinite, x87Invalid
	case a.kind == f80Inf || b.kind == f80Inf:
		return signed(neg, 0x7fff, 1<<63), flags
	case a.kind == f80Zero || b.kind == f80Zero:
		return signed(neg, 0, 0), flags
	}
	hi, lo := bits.Mul64(a.sig, b.sig)
	hi, lo, exp := normalize(hi, lo, a.exp+b.exp+1)
	v, f := r.pack(neg, exp, hi, lo)
	return v, flags | f
}

func f80Div(a, b f80, r f80Rounding) (F80, uint16) {
	v, flags, ok := special(a, b)
	if ok {
		return v, flags
	}
	neg := a.neg != b.neg
	switch {
	case a.kind == f80Inf && b.kind == f80Inf, a.kind == f80Zero && b.kind == f80Zero:
		return indefinite, x87Invalid
	case a.kind == f80Inf:
		return signed(neg, 0x7fff, 1<<63), flags
	case b.kind == f80Zero:
		return signed(neg, 0x7fff, 1<<63), x87ZeroDiv
	case a.kind == f80Zero || b.kind == f80Inf:
		return signed(neg, 0, 0), flags
	}
	hi, lo, exp := a.sig, uint64(0), a.exp-b.exp
	if hi >= b.sig {
		hi, lo = hi>>1, hi<<63
	} else {
		exp--
	}
	q, rem := bits.Div64(hi, lo, b.sig)
	q2, rem := bits.Div64(rem, 0, b.sig)
	if rem != 0 {
		q2 |= 1
	}
	v, f := r.pack(neg, exp, q, q2)
	return v, flags | f
}

func f80Sqrt(a f80, r f80Rounding) (F80, uint16) {
	v, flags, ok := special(a, a)
	switch {
	case ok:
		return v, flags
	case a.kind == f80Zero:
		return a.raw, flags
	case a.neg:
		return indefinite, x87Invalid
	case a.kind == f80Inf:
		return a.raw, flags
	}
	// The square is taken as sig * 2^64, or half of that, so that its exponent is even.
	shift := 64
	if a.exp&1 == 0 {
		shift = 63
	}
	square := new(big.Int).Lsh(new(big.Int).SetUint64(a.sig), uint(shift))
	root := new(big.Int).Sqrt(square)
	rest := square.Sub(square, new(big.Int).Mul(root, root))
	lo := uint64(0)
	if rest.Sign() != 0 {
		lo = 1
		if rest.Cmp(root) > 0 { // more than half a unit
			lo = 1<<63 | 1
		}
	}
	v, f := r.pack(false, a.exp>>1, root.Uint64(), lo)
	return v, flags | f
}
