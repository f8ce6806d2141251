package a64

import "math/bits"

// sbox and its inverse are AES's substitution of bytes (FIPS 197, 5.1.1).
var sbox, sboxInverse = func() (s, inverse [256]byte) {
	p, q := byte(1), byte(1)
	for {
		p ^= p<<1 ^ p>>7*0x1b // times 3
		q ^= q << 1           // divided by 3
		q ^= q << 2
		q ^= q << 4
		q ^= q >> 7 * 0x09
		s[p] = q ^ bits.RotateLeft8(q, 1) ^ bits.RotateLeft8(q, 2) ^ bits.RotateLeft8(q, 3) ^ bits.RotateLeft8(q, 4) ^ 0x63
		if p == 1 {
			break
		}
	}
	s[0] = 0x63
	for i, v := range s {
		inverse[v] = byte(i)
	}
	return
}()

// aes decodes aese, aesd, aesmc and aesimc.
func (in *inst) aes(w word32) handler {
	if w.bits(23, 22) != 0 {
		return nil
	}
	switch w.bits(16, 12) {
	case 4, 5:
		in.op = uint8(w.bit(12))
		return aesRound
	case 6, 7:
		in.op = uint8(w.bit(12))
		return aesMix
	}
	return nil
}

// aesRound adds the key, shifts the rows and substitutes; by op the inverse.
func aesRound(m *Machine, in *inst) {
	d, k := &m.vec.V[in.rd&31], &m.vec.V[in.rn&31]
	x := Vec{d[0] ^ k[0], d[1] ^ k[1]}
	var r Vec
	for i := range 16 {
		if in.op == 0 {
			r.put(i, 0, uint64(sbox[x.get((i+4*(i&3))&15, 0)]))
		} else {
			r.put(i, 0, uint64(sboxInverse[x.get((i-4*(i&3))&15, 0)]))
		}
	}
	*d = r
}

// times is multiplication in AES's field.
func times(a, b byte) (p byte) {
	for ; b != 0; b >>= 1 {
		p ^= a * (b & 1)
		a = a<<1 ^ a>>7*0x1b
	}
	return
}

// aesMix mixes the columns; by op the inverse.
func aesMix(m *Machine, in *inst) {
	x := m.vec.V[in.rn&31].bytes()
	factors := [4]byte{2, 3, 1, 1}
	if in.op == 1 {
		factors = [4]byte{14, 11, 13, 9}
	}
	var r Vec
	for i := range 16 {
		var v byte
		for k := range 4 {
			v ^= times(x[i&^3+(i+k)&3], factors[k])
		}
		r.put(i, 0, uint64(v))
	}
	m.vec.V[in.rd&31] = r
}

// multiplyPolynomial is pmull of 64 bits.
func multiplyPolynomial(m *Machine, in *inst) {
	half := 0
	if in.q {
		half = 1
	}
	a, b := m.vec.V[in.rn&31][half], m.vec.V[in.rm&31][half]
	var low, high uint64
	for i := range 64 {
		mask := -(b >> i & 1)
		low ^= a << i & mask
		high ^= a >> (64 - i) & mask
	}
	m.vec.V[in.rd&31] = Vec{low, high}
}

// hash3 decodes the instructions for SHA-1 and SHA-256 of three registers.
func (in *inst) hash3(w word32) handler {
	in.op = uint8(w.bits(14, 12))
	switch {
	case w.bits(23, 22) != 0:
	case in.op < 3:
		return sha1Rounds
	case in.op == 3:
		return sha1Schedule0
	case in.op < 6:
		return sha256Rounds
	case in.op == 6:
		return sha256Schedule1
	}
	return nil
}

// hash2 decodes those of two.
func (in *inst) hash2(w word32) handler {
	if w.bits(23, 22) != 0 {
		return nil
	}
	switch w.bits(16, 12) {
	case 0:
		return sha1Rotate
	case 1:
		return sha1Schedule1
	case 2:
		return sha256Schedule0
	}
	return nil
}

// words are the register's four.
func (v *Vec) words() [4]uint32 {
	return [4]uint32{uint32(v[0]), uint32(v[0] >> 32), uint32(v[1]), uint32(v[1] >> 32)}
}

func fromWords(w [4]uint32) Vec {
	return Vec{uint64(w[0]) | uint64(w[1])<<32, uint64(w[2]) | uint64(w[3])<<32}
}

func choose(x, y, z uint32) uint32   { return (y^z)&x ^ z }
func majority(x, y, z uint32) uint32 { return x&y | (x|y)&z }

// sha1Rounds is sha1c, sha1p and sha1m: four rounds.
func sha1Rounds(m *Machine, in *inst) {
	x, w := m.vec.V[in.rd&31].words(), m.vec.V[in.rm&31].words()
	y := uint32(m.vec.V[in.rn&31][0])
	for i := range 4 {
		var t uint32
		switch in.op {
		case 0:
			t = choose(x[1], x[2], x[3])
		case 1:
			t = x[1] ^ x[2] ^ x[3]
		default:
			t = majority(x[1], x[2], x[3])
		}
		t += y + bits.RotateLeft32(x[0], 5) + w[i]
		x, y = [4]uint32{t, x[0], bits.RotateLeft32(x[1], 30), x[2]}, x[3]
	}
	m.vec.V[in.rd&31] = fromWords(x)
}

func sha1Rotate(m *Machine, in *inst) {
	m.vec.V[in.rd&31] = Vec{uint64(bits.RotateLeft32(uint32(m.vec.V[in.rn&31][0]), 30))}
}

func sha1Schedule0(m *Machine, in *inst) {
	d, n, k := m.vec.V[in.rd&31], m.vec.V[in.rn&31], m.vec.V[in.rm&31]
	m.vec.V[in.rd&31] = Vec{d[1] ^ d[0] ^ k[0], n[0] ^ d[1] ^ k[1]}
}

func sha1Schedule1(m *Machine, in *inst) {
	d, n := m.vec.V[in.rd&31].words(), m.vec.V[in.rn&31].words()
	t := [4]uint32{d[0] ^ n[1], d[1] ^ n[2], d[2] ^ n[3], d[3]}
	var r [4]uint32
	for i := range t {
		r[i] = bits.RotateLeft32(t[i], 1)
	}
	r[3] ^= bits.RotateLeft32(t[0], 2)
	m.vec.V[in.rd&31] = fromWords(r)
}

// sha256Rounds is sha256h and sha256h2: four rounds, of which each returns a half.
func sha256Rounds(m *Machine, in *inst) {
	x, y, w := m.vec.V[in.rd&31].words(), m.vec.V[in.rn&31].words(), m.vec.V[in.rm&31].words()
	if in.op == 5 {
		x, y = y, x
	}
	for i := range 4 {
		s0 := bits.RotateLeft32(x[0], -2) ^ bits.RotateLeft32(x[0], -13) ^ bits.RotateLeft32(x[0], -22)
		s1 := bits.RotateLeft32(y[0], -6) ^ bits.RotateLeft32(y[0], -11) ^ bits.RotateLeft32(y[0], -25)
		t := y[3] + s1 + choose(y[0], y[1], y[2]) + w[i]
		u := x[3] + t
		t += s0 + majority(x[0], x[1], x[2])
		x, y = [4]uint32{t, x[0], x[1], x[2]}, [4]uint32{u, y[0], y[1], y[2]}
	}
	if in.op == 5 {
		x = y
	}
	m.vec.V[in.rd&31] = fromWords(x)
}

func sha256Schedule0(m *Machine, in *inst) {
	d, n := m.vec.V[in.rd&31].words(), m.vec.V[in.rn&31].words()
	t := [4]uint32{d[1], d[2], d[3], n[0]}
	for i, v := range t {
		d[i] += bits.RotateLeft32(v, -7) ^ bits.RotateLeft32(v, -18) ^ v>>3
	}
	m.vec.V[in.rd&31] = fromWords(d)
}

func sha256Schedule1(m *Machine, in *inst) {
	d, n, k := m.vec.V[in.rd&31].words(), m.vec.V[in.rn&31].words(), m.vec.V[in.rm&31].words()
	t := [4]uint32{n[1], n[2], n[3], k[0]}
	from := [4]uint32{k[2], k[3], 0, 0}
	for i := range 4 {
		v := from[i]
		d[i] += bits.RotateLeft32(v, -17) ^ bits.RotateLeft32(v, -19) ^ v>>10 + t[i]
		if i < 2 {
			from[i+2] = d[i]
		}
	}
	m.vec.V[in.rd&31] = fromWords(d)
}

// threeRegisters decodes eor3, bcax, rax1 and xar; SHA-512, SM3 and SM4 are not supported.
func (in *inst) threeRegisters(w word32) handler {
	switch {
	case w.bits(23, 21) == 0 && !w.is(15):
		in.op = 0
	case w.bits(23, 21) == 1 && !w.is(15):
		in.op = 1
	case w.bits(23, 21) == 3 && w.bits(15, 10) == 0b100011:
		in.op = 2
	case w.bits(23, 21) == 4:
		in.op, in.shift = 3, uint8(w.bits(15, 10))
	default:
		return nil
	}
	return sha3
}

func sha3(m *Machine, in *inst) {
	n, k, a := &m.vec.V[in.rn&31], &m.vec.V[in.rm&31], &m.vec.V[in.ra&31]
	var r Vec
	for i := range r {
		switch in.op {
		case 0:
			r[i] = n[i] ^ k[i] ^ a[i]
		case 1:
			r[i] = n[i] ^ k[i]&^a[i]
		case 2:
			r[i] = n[i] ^ bits.RotateLeft64(k[i], 1)
		default:
			r[i] = bits.RotateLeft64(n[i]^k[i], -int(in.shift))
		}
	}
	m.vec.V[in.rd&31] = r
}
