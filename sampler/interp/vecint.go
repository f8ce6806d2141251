package interp

import "math/bits"

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// of8 to of64 make kernels of a function of one lane. They are for what is not
// on the hot path of string functions.
func of8(f func(a, b uint8) uint8) kernel {
	return func(d, a, b *Vec, in *inst) {
		x, y, z := a.b(), b.b(), d.b()
		for i := range in.n {
			z[i&63] = f(x[i&63], y[i&63])
		}
	}
}

func of16(f func(a, b uint16) uint16) kernel {
	return func(d, a, b *Vec, in *inst) {
		x, y, z := a.w(), b.w(), d.w()
		for i := range in.n / 2 {
			z[i&31] = f(x[i&31], y[i&31])
		}
	}
}

func of32(f func(a, b uint32) uint32) kernel {
	return func(d, a, b *Vec, in *inst) {
		x, y, z := a.d(), b.d(), d.d()
		for i := range in.n / 4 {
			z[i&15] = f(x[i&15], y[i&15])
		}
	}
}

func of64(f func(a, b uint64) uint64) kernel {
	return func(d, a, b *Vec, in *inst) {
		for i := range in.n / 8 {
			d[i&7] = f(a[i&7], b[i&7])
		}
	}
}

// bySize picks the 4- or 8-byte kernel by the element size.
func bySize(k4, k8 kernel) kernel {
	return func(d, a, b *Vec, in *inst) {
		if in.esz == 8 {
			k8(d, a, b, in)
		} else {
			k4(d, a, b, in)
		}
	}
}

func s8(v int) uint8   { return uint8(int8(min(max(v, -128), 127))) }
func u8(v int) uint8   { return uint8(min(max(v, 0), 255)) }
func s16(v int) uint16 { return uint16(int16(min(max(v, -32768), 32767))) }
func u16(v int) uint16 { return uint16(min(max(v, 0), 65535)) }

func i8(v uint8) int   { return int(int8(v)) }
func i16(v uint16) int { return int(int16(v)) }
func i32(v uint32) int { return int(int32(v)) }

var vecInts = []vecOp{
	{"66 0f db", "lv", "b v", vecRVM, pand}, {"66 0f db", "e", "x v", vecRVM, pand},
	{"66 0f df", "lv", "b v", vecRVM, pandn}, {"66 0f df", "e", "x v", vecRVM, pandn},
	{"66 0f eb", "lv", "b v", vecRVM, por}, {"66 0f eb", "e", "x v", vecRVM, por},
	{"66 0f ef", "lv", "b v", vecRVM, pxor}, {"66 0f ef", "e", "x v", vecRVM, pxor},
	{"np 0f 54", "lve0", "d v", vecRVM, pand}, {"66 0f 54", "lve1", "q v", vecRVM, pand},
	{"np 0f 55", "lve0", "d v", vecRVM, pandn}, {"66 0f 55", "lve1", "q v", vecRVM, pandn},
	{"np 0f 56", "lve0", "d v", vecRVM, por}, {"66 0f 56", "lve1", "q v", vecRVM, por},
	{"np 0f 57", "lve0", "d v", vecRVM, pxor}, {"66 0f 57", "lve1", "q v", vecRVM, pxor},
	{"66 0f3a 25", "e", "x v imm", vecRVM, pternlog},

	{"66 0f fc", "lve", "b v", vecRVM, paddb}, {"66 0f fd", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return a + b })},
	{"66 0f fe", "lve0", "d v", vecRVM, of32(func(a, b uint32) uint32 { return a + b })},
	{"66 0f d4", "lve1", "q v", vecRVM, of64(func(a, b uint64) uint64 { return a + b })},
	{"66 0f f8", "lve", "b v", vecRVM, psubb}, {"66 0f f9", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return a - b })},
	{"66 0f fa", "lve0", "d v", vecRVM, of32(func(a, b uint32) uint32 { return a - b })},
	{"66 0f fb", "lve1", "q v", vecRVM, of64(func(a, b uint64) uint64 { return a - b })},
	{"66 0f ec", "lve", "b v", vecRVM, of8(func(a, b uint8) uint8 { return s8(i8(a) + i8(b)) })},
	{"66 0f ed", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return s16(i16(a) + i16(b)) })},
	{"66 0f dc", "lve", "b v", vecRVM, of8(func(a, b uint8) uint8 { return u8(int(a) + int(b)) })},
	{"66 0f dd", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return u16(int(a) + int(b)) })},
	{"66 0f e8", "lve", "b v", vecRVM, of8(func(a, b uint8) uint8 { return s8(i8(a) - i8(b)) })},
	{"66 0f e9", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return s16(i16(a) - i16(b)) })},
	{"66 0f d8", "lve", "b v", vecRVM, of8(func(a, b uint8) uint8 { return u8(int(a) - int(b)) })},
	{"66 0f d9", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return u16(int(a) - int(b)) })},

	{"66 0f da", "lve", "b v", vecRVM, pminub}, {"66 0f de", "lve", "b v", vecRVM, of8(func(a, b uint8) uint8 { return max(a, b) })},
	{"66 0f ea", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return uint16(min(int16(a), int16(b))) })},
	{"66 0f ee", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return uint16(max(int16(a), int16(b))) })},
	{"66 0f38 38", "lve", "b v", vecRVM, of8(func(a, b uint8) uint8 { return uint8(min(int8(a), int8(b))) })},
	{"66 0f38 3c", "lve", "b v", vecRVM, of8(func(a, b uint8) uint8 { return uint8(max(int8(a), int8(b))) })},
	{"66 0f38 3a", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return min(a, b) })},
	{"66 0f38 3e", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return max(a, b) })},
	{"66 0f38 39", "lv", "d v", vecRVM, pminsd}, {"66 0f38 39", "e", "x v", vecRVM, bySize(pminsd, of64(func(a, b uint64) uint64 { return uint64(min(int64(a), int64(b))) }))},
	{"66 0f38 3b", "lv", "d v", vecRVM, pminud}, {"66 0f38 3b", "e", "x v", vecRVM, bySize(pminud, of64(func(a, b uint64) uint64 { return min(a, b) }))},
	{"66 0f38 3d", "lv", "d v", vecRVM, pmaxsd}, {"66 0f38 3d", "e", "x v", vecRVM, bySize(pmaxsd, of64(func(a, b uint64) uint64 { return uint64(max(int64(a), int64(b))) }))},
	{"66 0f38 3f", "lv", "d v", vecRVM, pmaxud}, {"66 0f38 3f", "e", "x v", vecRVM, bySize(pmaxud, of64(func(a, b uint64) uint64 { return max(a, b) }))},
	{"66 0f e0", "lve", "b v", vecRVM, of8(func(a, b uint8) uint8 { return uint8((int(a) + int(b) + 1) >> 1) })},
	{"66 0f e3", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return uint16((int(a) + int(b) + 1) >> 1) })},

	{"66 0f d5", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return a * b })},
	{"66 0f e4", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return uint16(uint32(a) * uint32(b) >> 16) })},
	{"66 0f e5", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return uint16(i16(a) * i16(b) >> 16) })},
	{"66 0f f4", "lve1", "q v", vecRVM, of64(func(a, b uint64) uint64 { return uint64(uint32(a)) * uint64(uint32(b)) })},
	{"66 0f38 28", "lve1", "q v", vecRVM, of64(func(a, b uint64) uint64 { return uint64(int64(int32(a)) * int64(int32(b))) })},
	{"66 0f38 40", "lv", "d v", vecRVM, pmulld},
	{"66 0f38 40", "e", "x v", vecRVM, bySize(pmulld, of64(func(a, b uint64) uint64 { return a * b }))},
	{"66 0f38 0b", "lve", "w v", vecRVM, of16(func(a, b uint16) uint16 { return uint16((i16(a)*i16(b)>>14 + 1) >> 1) })},
	{"66 0f f5", "lve", "d v nb wh", vecRVM, of32(pmaddwd)},
	{"66 0f38 04", "lve", "w v wh", vecRVM, of16(pmaddubsw)},
	{"66 0f f6", "lve", "q v nb nk", vecRVM, of64(psadbw)},
	{"66 0f38 b4", "v1e1", "q v", vecRVM, pmadd52(false)},
	{"66 0f38 b5", "v1e1", "q v", vecRVM, pmadd52(true)},
	{"66 0f38 50", "v0e0", "d v", vecRVM, pdpb(false)},
	{"66 0f38 51", "v0e0", "d v", vecRVM, pdpb(true)},
	{"66 0f38 52", "v0e0", "d v", vecRVM, pdpw(false)},
	{"66 0f38 53", "v0e0", "d v", vecRVM, pdpw(true)},

	{"66 0f38 08", "lv", "b v", vecRVM, of8(func(a, b uint8) uint8 { return uint8(withSign(int8(a), int8(b))) })},
	{"66 0f38 09", "lv", "w v", vecRVM, of16(func(a, b uint16) uint16 { return uint16(withSign(int16(a), int16(b))) })},
	{"66 0f38 0a", "lv", "d v", vecRVM, of32(func(a, b uint32) uint32 { return uint32(withSign(int32(a), int32(b))) })},
	{"66 0f38 1c", "lve", "b", vecRM, of8(func(a, _ uint8) uint8 { return uint8(withSign(int8(a), int8(a))) })},
	{"66 0f38 1d", "lve", "w", vecRM, of16(func(a, _ uint16) uint16 { return uint16(withSign(int16(a), int16(a))) })},
	{"66 0f38 1e", "lve0", "d", vecRM, of32(func(a, _ uint32) uint32 { return uint32(withSign(int32(a), int32(a))) })},
	{"66 0f38 1f", "e1", "q", vecRM, of64(func(a, _ uint64) uint64 { return uint64(withSign(int64(a), int64(a))) })},

	{"66 0f 74", "lv", "b v", vecRVM, pcmpeqb}, {"66 0f 75", "lv", "w v", vecRVM, of16(func(a, b uint16) uint16 { return ones[uint16](a == b) })},
	{"66 0f 76", "lv", "d v", vecRVM, of32(func(a, b uint32) uint32 { return ones[uint32](a == b) })},
	{"66 0f38 29", "lv", "q v", vecRVM, of64(func(a, b uint64) uint64 { return ones[uint64](a == b) })},
	{"66 0f 64", "lv", "b v", vecRVM, of8(func(a, b uint8) uint8 { return ones[uint8](int8(a) > int8(b)) })},
	{"66 0f 65", "lv", "w v", vecRVM, of16(func(a, b uint16) uint16 { return ones[uint16](int16(a) > int16(b)) })},
	{"66 0f 66", "lv", "d v", vecRVM, of32(func(a, b uint32) uint32 { return ones[uint32](int32(a) > int32(b)) })},
	{"66 0f38 37", "lv", "q v", vecRVM, of64(func(a, b uint64) uint64 { return ones[uint64](int64(a) > int64(b)) })},

	{"66 0f38 01", "lv", "w v", vecRVM, hori16(func(a, b int) uint16 { return uint16(a + b) })},
	{"66 0f38 03", "lv", "w v", vecRVM, hori16(func(a, b int) uint16 { return s16(a + b) })},
	{"66 0f38 05", "lv", "w v", vecRVM, hori16(func(a, b int) uint16 { return uint16(a - b) })},
	{"66 0f38 07", "lv", "w v", vecRVM, hori16(func(a, b int) uint16 { return s16(a - b) })},
	{"66 0f38 02", "lv", "d v", vecRVM, hori32(func(a, b uint32) uint32 { return a + b })},
	{"66 0f38 06", "lv", "d v", vecRVM, hori32(func(a, b uint32) uint32 { return a - b })},
	{"66 0f38 41", "lv", "w l0", vecRM, phminposuw},
	{"66 0f3a 42", "lv", "b v imm", vecRVM, mpsadbw},

	{"66 0f38 44", "e", "x", vecRM, bySize(of32(func(a, _ uint32) uint32 { return uint32(bits.LeadingZeros32(a)) }), of64(func(a, _ uint64) uint64 { return uint64(bits.LeadingZeros64(a)) }))},
	{"66 0f38 55", "e", "x", vecRM, bySize(of32(func(a, _ uint32) uint32 { return uint32(bits.OnesCount32(a)) }), of64(func(a, _ uint64) uint64 { return uint64(bits.OnesCount64(a)) }))},
	{"66 0f38 54", "e0", "b", vecRM, of8(func(a, _ uint8) uint8 { return uint8(bits.OnesCount8(a)) })},
	{"66 0f38 54", "e1", "w", vecRM, of16(func(a, _ uint16) uint16 { return uint16(bits.OnesCount16(a)) })},
	{"66 0f38 c4", "e", "x wh", vecRM, pconflict},

	{"66 0f38 17", "lv", "q", vecFlags, ptest},
	{"66 0f38 0e", "v0", "d", vecFlags, vtest}, {"66 0f38 0f", "v0", "q", vecFlags, vtest},
}

func ones[T integer](set bool) T {
	if set {
		return ^T(0)
	}
	return 0
}

// withSign negates a where s is negative and clears it where s is zero.
func withSign[T int8 | int16 | int32 | int64](a, s T) T {
	switch {
	case s < 0:
		return -a
	case s == 0:
		return 0
	}
	return a
}

var (
	pminsd = of32(func(a, b uint32) uint32 { return uint32(min(int32(a), int32(b))) })
	pmaxsd = of32(func(a, b uint32) uint32 { return uint32(max(int32(a), int32(b))) })
	pminud = of32(func(a, b uint32) uint32 { return min(a, b) })
	pmaxud = of32(func(a, b uint32) uint32 { return max(a, b) })
	pmulld = of32(func(a, b uint32) uint32 { return a * b })
)

func pand(d, a, b *Vec, in *inst) {
	for i := range in.n / 8 {
		d[i&7] = a[i&7] & b[i&7]
	}
}

func pandn(d, a, b *Vec, in *inst) {
	for i := range in.n / 8 {
		d[i&7] = ^a[i&7] & b[i&7]
	}
}

func por(d, a, b *Vec, in *inst) {
	for i := range in.n / 8 {
		d[i&7] = a[i&7] | b[i&7]
	}
}

func pxor(d, a, b *Vec, in *inst) {
	for i := range in.n / 8 {
		d[i&7] = a[i&7] ^ b[i&7]
	}
}

// pternlog: each bit of the immediate is the result for one combination of
// the three inputs.
func pternlog(d, a, b *Vec, in *inst) {
	for i := range in.n / 8 {
		x, y, z := d[i&7], a[i&7], b[i&7]
		var r uint64
		for c := range 8 {
			if in.imm>>c&1 == 0 {
				continue
			}
			t := ^uint64(0)
			for j, v := range [3]uint64{z, y, x} {
				if c>>j&1 != 0 {
					t &= v
				} else {
					t &^= v
				}
			}
			r |= t
		}
		d[i&7] = r
	}
}

const (
	high8 = 0x8080808080808080
	low7  = 0x7f7f7f7f7f7f7f7f
)

func paddb(d, a, b *Vec, in *inst) {
	for i := range in.n / 8 {
		x, y := a[i&7], b[i&7]
		d[i&7] = ((x & low7) + (y & low7)) ^ (x^y)&high8
	}
}

func psubb(d, a, b *Vec, in *inst) {
	for i := range in.n / 8 {
		x, y := a[i&7], b[i&7]
		d[i&7] = ((x | high8) - (y & low7)) ^ ^(x^y)&high8
	}
}

// zeroBytes has the top bit of each byte of x set that is zero.
func zeroBytes(x uint64) uint64 {
	return ^(((x & low7) + low7) | x | low7)
}

func pcmpeqb(d, a, b *Vec, in *inst) {
	for i := range in.n / 8 {
		d[i&7] = zeroBytes(a[i&7]^b[i&7]) >> 7 * 0xff
	}
}

// pminub takes a where a < b: the borrow of a - b in each byte.
func pminub(d, a, b *Vec, in *inst) {
	for i := range in.n / 8 {
		x, y := a[i&7], b[i&7]
		diff := (x | high8) - (y & low7)
		less := (^x&y | (^(x ^ y))&^diff) & high8 >> 7 * 0xff
		d[i&7] = x&less | y&^less
	}
}

func pmaddwd(a, b uint32) uint32 {
	return uint32(int32(int16(a))*int32(int16(b)) + int32(int16(a>>16))*int32(int16(b>>16)))
}

func pmaddubsw(a, b uint16) uint16 {
	return s16(int(uint8(a))*int(int8(b)) + int(a>>8)*int(int8(b>>8)))
}

func psadbw(a, b uint64) uint64 {
	sum := 0
	for range 8 {
		d := int(uint8(a)) - int(uint8(b))
		sum += max(d, -d)
		a >>= 8
		b >>= 8
	}
	return uint64(sum)
}

func pmadd52(high bool) kernel {
	const mask = 1<<52 - 1
	return func(d, a, b *Vec, in *inst) {
		for i := range in.n / 8 {
			hi, lo := bits.Mul64(a[i&7]&mask, b[i&7]&mask)
			if high {
				d[i&7] += hi<<12 | lo>>52
			} else {
				d[i&7] += lo & mask
			}
		}
	}
}

// pdpb is vpdpbusd: unsigned bytes times signed ones added to 32 bits.
func pdpb(saturating bool) kernel {
	return func(d, a, b *Vec, in *inst) {
		for i := range int(in.n / 4) {
			sum := i32(d.d()[i])
			for j := range 4 {
				sum += int(a.b()[4*i+j]) * i8(b.b()[4*i+j])
			}
			if saturating {
				sum = min(max(sum, -1<<31), 1<<31-1)
			}
			d.d()[i] = uint32(sum)
		}
	}
}

func pdpw(saturating bool) kernel {
	return func(d, a, b *Vec, in *inst) {
		for i := range int(in.n / 4) {
			sum := i32(d.d()[i])
			for j := range 2 {
				sum += i16(a.w()[2*i+j]) * i16(b.w()[2*i+j])
			}
			if saturating {
				sum = min(max(sum, -1<<31), 1<<31-1)
			}
			d.d()[i] = uint32(sum)
		}
	}
}

// Horizontal operations work on neighbours, in each 128 bits first a's, then b's.

func hori16(f func(a, b int) uint16) kernel {
	return func(d, a, b *Vec, in *inst) {
		for l := 0; l < int(in.n/2); l += 8 {
			for i := range 4 {
				d.w()[l+i] = f(i16(a.w()[l+2*i]), i16(a.w()[l+2*i+1]))
				d.w()[l+4+i] = f(i16(b.w()[l+2*i]), i16(b.w()[l+2*i+1]))
			}
		}
	}
}

func hori32(f func(a, b uint32) uint32) kernel {
	return func(d, a, b *Vec, in *inst) {
		for l := 0; l < int(in.n/4); l += 4 {
			for i := range 2 {
				d.d()[l+i] = f(a.d()[l+2*i], a.d()[l+2*i+1])
				d.d()[l+2+i] = f(b.d()[l+2*i], b.d()[l+2*i+1])
			}
		}
	}
}

func phminposuw(d, a, _ *Vec, _ *inst) {
	at := 0
	for i, v := range a.w()[:8] {
		if v < a.w()[at] {
			at = i
		}
	}
	d[0], d[1] = uint64(a.w()[at])|uint64(at)<<16, 0
}

func mpsadbw(d, a, b *Vec, in *inst) {
	for l := range int(in.n / 16) {
		imm := int(in.imm) >> (3 * l)
		x := a.b()[16*l+(imm>>2&1)*4:]
		y := b.b()[16*l+(imm&3)*4:]
		for i := range 8 {
			sum := 0
			for j := range 4 {
				diff := int(x[i+j]) - int(y[j])
				sum += max(diff, -diff)
			}
			d.w()[8*l+i] = uint16(sum)
		}
	}
}

// pconflict: for each element, which earlier ones are equal to it.
func pconflict(d, a, _ *Vec, in *inst) {
	for i := range in.lanes() {
		var r uint64
		for j := range i {
			if a.elem(i, in.esz) == a.elem(j, in.esz) {
				r |= 1 << j
			}
		}
		d.setElem(i, in.esz, r)
	}
}

func ptest(d, a, b *Vec, in *inst) {
	zf, cf := uint64(FlagZF), uint64(FlagCF)
	for i := range in.n / 8 {
		if a[i&7]&b[i&7] != 0 {
			zf = 0
		}
		if ^a[i&7]&b[i&7] != 0 {
			cf = 0
		}
	}
	d[0] = zf | cf
}

// vtest is ptest of the sign bits.
func vtest(d, a, b *Vec, in *inst) {
	x, y := signBits(a, in.lanes(), in.esz), signBits(b, in.lanes(), in.esz)
	d[0] = 0
	if x&y == 0 {
		d[0] |= FlagZF
	}
	if ^x&y == 0 {
		d[0] |= FlagCF
	}
}
