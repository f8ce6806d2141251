package interp

import "math/bits"

var vecCrypto = []vecOp{
	{"66 0f38 dc", "lve", "b v nk", vecRVM, aesRound(shiftRows, &aesSbox, mixColumns)},
	{"66 0f38 dd", "lve", "b v nk", vecRVM, aesRound(shiftRows, &aesSbox, nil)},
	{"66 0f38 de", "lve", "b v nk", vecRVM, aesRound(invShiftRows, &aesInverse, invMixColumns)},
	{"66 0f38 df", "lve", "b v nk", vecRVM, aesRound(invShiftRows, &aesInverse, nil)},
	{"66 0f38 db", "lv", "b l0", vecRM, aesimc},
	{"66 0f3a df", "lv", "b imm l0", vecRM, aeskeygenassist},
	{"66 0f3a 44", "lve", "q v imm nk nb", vecRVM, pclmul},
	// Intel's CPUs want the SHA instructions' operand aligned, AMD's do not.
	{"np 0f38 c8", "l", "d ua v", vecRVM, sha1nexte}, {"np 0f38 c9", "l", "d ua v", vecRVM, sha1msg1},
	{"np 0f38 ca", "l", "d ua v", vecRVM, sha1msg2}, {"np 0f3a cc", "l", "d ua v imm", vecRVM, sha1rnds4},
	{"np 0f38 cb", "l", "d ua", sha256rnds2, nil},
	{"np 0f38 cc", "l", "d ua v", vecRVM, sha256msg1}, {"np 0f38 cd", "l", "d ua v", vecRVM, sha256msg2},
	{"66 0f38 cf", "lv0e0", "b v", vecRVM, of8(func(a, b uint8) uint8 { return gfMul(a, b) })},
	{"66 0f3a ce", "lv1e1", "b msz=8 v imm wh", vecRVM, gfAffine(false)},
	{"66 0f3a cf", "lv1e1", "b msz=8 v imm wh", vecRVM, gfAffine(true)},
}

// gfMul multiplies in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
func gfMul(a, b uint8) (r uint8) {
	for ; b != 0; b >>= 1 {
		if b&1 != 0 {
			r ^= a
		}
		carry := a >> 7
		a = a<<1 ^ carry*0x1b
	}
	return r
}

// gfInverse is the multiplicative inverse, 0 for 0.
var gfInverse = func() (t [256]uint8) {
	for a := 1; a < 256; a++ {
		for b := 1; b < 256; b++ {
			if gfMul(uint8(a), uint8(b)) == 1 {
				t[a] = uint8(b)
			}
		}
	}
	return
}()

var aesSbox, aesInverse = func() (s, inv [256]uint8) {
	for i := range s {
		x := gfInverse[i]
		y := x ^ bits.RotateLeft8(x, 1) ^ bits.RotateLeft8(x, 2) ^ bits.RotateLeft8(x, 3) ^ bits.RotateLeft8(x, 4) ^ 0x63
		s[i] = y
		inv[y] = uint8(i)
	}
	return
}()

// mulTable is multiplication by a constant.
func mulTable(c uint8) (t [256]uint8) {
	for i := range t {
		t[i] = gfMul(uint8(i), c)
	}
	return
}

var (
	by2, by3     = mulTable(2), mulTable(3)
	by9, by11    = mulTable(9), mulTable(11)
	by13, by14   = mulTable(13), mulTable(14)
	shiftRows    = rowShift(1)
	invShiftRows = rowShift(-1)
)

// rowShift says where each byte of the state comes from: row r (every fourth
// byte) turns by r columns.
func rowShift(dir int) (t [16]uint8) {
	for i := range t {
		t[i] = uint8((i + dir*4*(i%4) + 64) % 16)
	}
	return
}

func mixColumns(s []uint8) {
	a, b, c, d := s[0], s[1], s[2], s[3]
	s[0] = by2[a] ^ by3[b] ^ c ^ d
	s[1] = a ^ by2[b] ^ by3[c] ^ d
	s[2] = a ^ b ^ by2[c] ^ by3[d]
	s[3] = by3[a] ^ b ^ c ^ by2[d]
}

func invMixColumns(s []uint8) {
	a, b, c, d := s[0], s[1], s[2], s[3]
	s[0] = by14[a] ^ by11[b] ^ by13[c] ^ by9[d]
	s[1] = by9[a] ^ by14[b] ^ by11[c] ^ by13[d]
	s[2] = by13[a] ^ by9[b] ^ by14[c] ^ by11[d]
	s[3] = by11[a] ^ by13[b] ^ by9[c] ^ by14[d]
}

func aesRound(rows [16]uint8, box *[256]uint8, mix func([]uint8)) kernel {
	return func(d, a, b *Vec, in *inst) {
		for l := 0; l < int(in.n); l += 16 {
			s := d.b()[l : l+16]
			for i := range s {
				s[i] = box[a.b()[l+int(rows[i])]]
			}
			if mix != nil {
				for c := 0; c < 16; c += 4 {
					mix(s[c : c+4])
				}
			}
		}
		pxor(d, d, b, in)
	}
}

func aesimc(d, a, _ *Vec, _ *inst) {
	d[0], d[1] = a[0], a[1]
	for c := 0; c < 16; c += 4 {
		invMixColumns(d.b()[c : c+4])
	}
}

func aeskeygenassist(d, a, _ *Vec, in *inst) {
	sub := func(x uint32) (r uint32) {
		for i := 0; i < 32; i += 8 {
			r |= uint32(aesSbox[byte(x>>i)]) << i
		}
		return
	}
	x1, x3 := sub(a.d()[1]), sub(a.d()[3])
	rcon := uint32(in.imm & 0xff)
	d.d()[0], d.d()[1] = x1, bits.RotateLeft32(x1, -8)^rcon
	d.d()[2], d.d()[3] = x3, bits.RotateLeft32(x3, -8)^rcon
}

func pclmul(d, a, b *Vec, in *inst) {
	for l := 0; l < int(in.n/8); l += 2 {
		x, y := a[l+int(in.imm&1)], b[l+int(in.imm>>4&1)]
		var lo, hi uint64
		for ; y != 0; y &= y - 1 {
			n := bits.TrailingZeros64(y)
			lo ^= x << n
			hi ^= x >> 1 >> (63 - n)
		}
		d[l], d[l+1] = lo, hi
	}
}

// gfAffine: b holds the 8x8 bit matrices, a byte of the result per bit row.
func gfAffine(inverse bool) kernel {
	return func(d, a, b *Vec, in *inst) {
		for i := range int(in.n) {
			x := a.b()[i]
			if inverse {
				x = gfInverse[x]
			}
			m := b[i/8]
			var r uint8
			for bit := range 8 {
				row := uint8(m >> (8 * (7 - bit)))
				r |= uint8(bits.OnesCount8(row&x)&1) << bit
			}
			d.b()[i] = r ^ uint8(in.imm)
		}
	}
}

// SHA. The words of a message lie highest first in SHA-1's registers.

func sha1nexte(d, a, b *Vec, _ *inst) {
	e := bits.RotateLeft32(a.d()[3], 30)
	x := *b
	x.d()[3] += e
	d[0], d[1] = x[0], x[1]
}

func sha1msg1(d, a, b *Vec, _ *inst) {
	d[1] = a[1] ^ a[0]
	d[0] = a[0] ^ b[1]
}

func sha1msg2(d, a, b *Vec, _ *inst) {
	x, y, z := a.d(), b.d(), d.d()
	w16 := bits.RotateLeft32(x[3]^y[2], 1)
	w17 := bits.RotateLeft32(x[2]^y[1], 1)
	w18 := bits.RotateLeft32(x[1]^y[0], 1)
	w19 := bits.RotateLeft32(x[0]^w16, 1)
	z[3], z[2], z[1], z[0] = w16, w17, w18, w19
}

func sha1rnds4(out, in1, in2 *Vec, in *inst) {
	k := [4]uint32{0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6}[in.imm&3]
	f := func(b, c, d uint32) uint32 {
		switch in.imm & 3 {
		case 0:
			return b&c ^ ^b&d
		case 2:
			return b&c ^ b&d ^ c&d
		}
		return b ^ c ^ d
	}
	s, w := in1.d(), in2.d()
	a, b, c, d, e := s[3], s[2], s[1], s[0], uint32(0)
	for i := 3; i >= 0; i-- {
		t := f(b, c, d) + bits.RotateLeft32(a, 5) + w[i] + e + k
		a, b, c, d, e = t, a, bits.RotateLeft32(b, 30), c, d
	}
	z := out.d()
	z[3], z[2], z[1], z[0] = a, b, c, d
}

// sha256rnds2 takes the message words and constants from xmm0.
func sha256rnds2(m *Machine, in *inst) {
	src := m.vecSource(in)
	dst := &m.vec.Z[in.reg&15]
	x, y := dst.d(), src.d()
	a, b, e, f := y[3], y[2], y[1], y[0]
	c, d, g, h := x[3], x[2], x[1], x[0]
	rot := func(v uint32, r, s, t int) uint32 {
		return bits.RotateLeft32(v, -r) ^ bits.RotateLeft32(v, -s) ^ bits.RotateLeft32(v, -t)
	}
	for i := range 2 {
		t1 := h + rot(e, 6, 11, 25) + (e&f ^ ^e&g) + m.vec.Z[0].d()[i]
		t2 := rot(a, 2, 13, 22) + (a&b ^ a&c ^ b&c)
		a, b, c, d, e, f, g, h = t1+t2, a, b, c, d+t1, e, f, g
	}
	m.tmp = Vec{}
	z := m.tmp.d()
	z[3], z[2], z[1], z[0] = a, b, e, f
	m.vecPut(in)
}

func sha256msg1(d, a, b *Vec, _ *inst) {
	w := [5]uint32{a.d()[0], a.d()[1], a.d()[2], a.d()[3], b.d()[0]}
	for i := range 4 {
		x := w[i+1]
		d.d()[i] = w[i] + (bits.RotateLeft32(x, -7) ^ bits.RotateLeft32(x, -18) ^ x>>3)
	}
}

func sha256msg2(d, a, b *Vec, _ *inst) {
	s1 := func(x uint32) uint32 { return bits.RotateLeft32(x, -17) ^ bits.RotateLeft32(x, -19) ^ x>>10 }
	w16 := a.d()[0] + s1(b.d()[2])
	w17 := a.d()[1] + s1(b.d()[3])
	w18, w19 := a.d()[2]+s1(w16), a.d()[3]+s1(w17)
	d[0], d[1] = uint64(w16)|uint64(w17)<<32, uint64(w18)|uint64(w19)<<32
}
