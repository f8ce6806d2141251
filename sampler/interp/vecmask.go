package interp

import "math/bits"

var vecMasks = []vecOp{
	{"66 0f 74", "e", "b v k", vecToMask, eqBytes}, {"66 0f 75", "e", "w v k", vecToMask, compareMask(predEQ, false)},
	{"66 0f 76", "e0", "d v k", vecToMask, compareMask(predEQ, false)}, {"66 0f38 29", "e1", "q v k", vecToMask, compareMask(predEQ, false)},
	{"66 0f 64", "e", "b v k", vecToMask, compareMask(predGT, true)}, {"66 0f 65", "e", "w v k", vecToMask, compareMask(predGT, true)},
	{"66 0f 66", "e0", "d v k", vecToMask, compareMask(predGT, true)}, {"66 0f38 37", "e1", "q v k", vecToMask, compareMask(predGT, true)},
	{"66 0f3a 3e", "e0", "b v imm k", vecToMask, compareImm(false)}, {"66 0f3a 3e", "e1", "w v imm k", vecToMask, compareImm(false)},
	{"66 0f3a 3f", "e0", "b v imm k", vecToMask, compareImm(true)}, {"66 0f3a 3f", "e1", "w v imm k", vecToMask, compareImm(true)},
	{"66 0f3a 1e", "e", "x v imm k", vecToMask, compareImm(false)}, {"66 0f3a 1f", "e", "x v imm k", vecToMask, compareImm(true)},
	{"66 0f38 26", "e0", "b v k", vecToMask, testMask(false)}, {"66 0f38 26", "e1", "w v k", vecToMask, testMask(false)},
	{"f3 0f38 26", "e0", "b v k", vecToMask, testMask(true)}, {"f3 0f38 26", "e1", "w v k", vecToMask, testMask(true)},
	{"66 0f38 27", "e", "x v k", vecToMask, testMask(false)}, {"f3 0f38 27", "e", "x v k", vecToMask, testMask(true)},
	{"f3 0f38 29", "e0", "b r nk k", vecToMask, signMask}, {"f3 0f38 29", "e1", "w r nk k", vecToMask, signMask},
	{"f3 0f38 39", "e", "x r nk k", vecToMask, signMask},
	{"f3 0f38 28", "e0", "b r nk", maskToVec, nil}, {"f3 0f38 28", "e1", "w r nk", maskToVec, nil},
	{"f3 0f38 38", "e", "x r nk", maskToVec, nil},
	{"f3 0f38 2a", "e1", "q r nk", broadcastMask, nil}, {"f3 0f38 3a", "e0", "d r nk", broadcastMask, nil},

	{"f2 0f38 68", "e", "x v nk wh k", intersect, nil},
	{"66 0f38 65", "e", "x v", vecBlend, nil}, {"66 0f38 64", "e", "x v", vecBlend, nil},
	{"66 0f38 66", "e0", "b v", vecBlend, nil}, {"66 0f38 66", "e1", "w v", vecBlend, nil},
	{"66 0f38 8a", "e", "x t1 st", compress, nil}, {"66 0f38 8b", "e", "x t1 st", compress, nil},
	{"66 0f38 63", "e0", "b t1 st", compress, nil}, {"66 0f38 63", "e1", "w t1 st", compress, nil},
	{"66 0f38 88", "e", "x t1", expand, nil}, {"66 0f38 89", "e", "x t1", expand, nil},
	{"66 0f38 62", "e0", "b t1", expand, nil}, {"66 0f38 62", "e1", "w t1", expand, nil},

	{"f3 0f38 30", "e0", "w msz=1 /2 st nar", vecMR, narrow(2, 1, cut)}, {"f3 0f38 31", "e0", "d msz=1 /4 st nar", vecMR, narrow(4, 1, cut)},
	{"f3 0f38 32", "e0", "q msz=1 /8 st nar", vecMR, narrow(8, 1, cut)}, {"f3 0f38 33", "e0", "d msz=2 /2 st nar", vecMR, narrow(4, 2, cut)},
	{"f3 0f38 34", "e0", "q msz=2 /4 st nar", vecMR, narrow(8, 2, cut)}, {"f3 0f38 35", "e0", "q msz=4 /2 st nar", vecMR, narrow(8, 4, cut)},
	{"f3 0f38 20", "e0", "w msz=1 /2 st nar", vecMR, narrow(2, 1, cutSigned)}, {"f3 0f38 21", "e0", "d msz=1 /4 st nar", vecMR, narrow(4, 1, cutSigned)},
	{"f3 0f38 22", "e0", "q msz=1 /8 st nar", vecMR, narrow(8, 1, cutSigned)}, {"f3 0f38 23", "e0", "d msz=2 /2 st nar", vecMR, narrow(4, 2, cutSigned)},
	{"f3 0f38 24", "e0", "q msz=2 /4 st nar", vecMR, narrow(8, 2, cutSigned)}, {"f3 0f38 25", "e0", "q msz=4 /2 st nar", vecMR, narrow(8, 4, cutSigned)},
	{"f3 0f38 10", "e0", "w msz=1 /2 st nar", vecMR, narrow(2, 1, cutUnsigned)}, {"f3 0f38 11", "e0", "d msz=1 /4 st nar", vecMR, narrow(4, 1, cutUnsigned)},
	{"f3 0f38 12", "e0", "q msz=1 /8 st nar", vecMR, narrow(8, 1, cutUnsigned)}, {"f3 0f38 13", "e0", "d msz=2 /2 st nar", vecMR, narrow(4, 2, cutUnsigned)},
	{"f3 0f38 14", "e0", "q msz=2 /4 st nar", vecMR, narrow(8, 2, cutUnsigned)}, {"f3 0f38 15", "e0", "q msz=4 /2 st nar", vecMR, narrow(8, 4, cutUnsigned)},

	{"66 0f38 90", "v", "x t1 v m vs", gatherVEX, nil}, {"66 0f38 91", "v", "x t1 v m vs", gatherVEX, nil},
	{"66 0f38 92", "v", "x t1 v m vs", gatherVEX, nil}, {"66 0f38 93", "v", "x t1 v m vs", gatherVEX, nil},
	{"66 0f38 90", "e", "x t1 m vs", gatherEVEX, nil}, {"66 0f38 91", "e", "x t1 m vs", gatherEVEX, nil},
	{"66 0f38 92", "e", "x t1 m vs", gatherEVEX, nil}, {"66 0f38 93", "e", "x t1 m vs", gatherEVEX, nil},
	{"66 0f38 a0", "e", "x t1 m vs", scatter, nil}, {"66 0f38 a1", "e", "x t1 m vs", scatter, nil},
	{"66 0f38 a2", "e", "x t1 m vs", scatter, nil}, {"66 0f38 a3", "e", "x t1 m vs", scatter, nil},
}

// Predicates of the integer compares, as in their immediate.
const (
	predEQ = 0
	predGT = 6
)

func holds[T int64 | uint64](pred uint8, a, b T) bool {
	switch pred & 7 {
	case 0:
		return a == b
	case 1:
		return a < b
	case 2:
		return a <= b
	case 3:
		return false
	case 4:
		return a != b
	case 5:
		return a >= b
	case 6:
		return a > b
	}
	return true
}

func compareLanes(a, b *Vec, in *inst, pred uint8, signed bool) (r uint64) {
	for i := range in.lanes() {
		x, y := a.elem(i, in.esz), b.elem(i, in.esz)
		var t bool
		if signed {
			t = holds(pred, signExtend(x, in.esz), signExtend(y, in.esz))
		} else {
			t = holds(pred, x, y)
		}
		if t {
			r |= 1 << i
		}
	}
	return r
}

func compareMask(pred uint8, signed bool) kernel {
	return func(d, a, b *Vec, in *inst) { d[0] = compareLanes(a, b, in, pred, signed) }
}

func compareImm(signed bool) kernel {
	return func(d, a, b *Vec, in *inst) {
		if in.esz == 1 && in.imm&3 == 0 { // what string functions use
			eqBytes(d, a, b, in)
			if in.imm&4 != 0 {
				d[0] = ^d[0]
			}
			return
		}
		d[0] = compareLanes(a, b, in, uint8(in.imm), signed)
	}
}

func eqBytes(d, a, b *Vec, in *inst) {
	var x Vec
	pcmpeqb(&x, a, b, in)
	d[0] = signBits(&x, int(in.n), 1)
}

// testMask is vptestm, or vptestnm with none.
func testMask(none bool) kernel {
	return func(d, a, b *Vec, in *inst) {
		var x Vec
		pand(&x, a, b, in)
		var r uint64
		if in.esz == 1 {
			var zero Vec
			eqBytes(d, &x, &zero, in)
			r = ^d[0]
		} else {
			for i := range in.lanes() {
				if x.elem(i, in.esz) != 0 {
					r |= 1 << i
				}
			}
		}
		if none {
			r = ^r
		}
		d[0] = r
	}
}

func signMask(d, _, b *Vec, in *inst) { d[0] = signBits(b, in.lanes(), in.esz) }

func maskToVec(m *Machine, in *inst) {
	k := m.vec.K[in.rm&7]
	m.tmp = Vec{}
	for i := range in.lanes() {
		m.tmp.setElem(i, in.esz, -(k >> i & 1))
	}
	m.vecPut(in)
}

func broadcastMask(m *Machine, in *inst) {
	k := m.vec.K[in.rm&7]
	if in.esz == 8 {
		k &= 0xff
	} else {
		k &= 0xffff
	}
	m.tmp = Vec{}
	for i := range in.lanes() {
		m.tmp.setElem(i, in.esz, k)
	}
	m.vecPut(in)
}

// vecBlend is vpblendm and vblendm: without an opmask all comes from b.
func vecBlend(m *Machine, in *inst) {
	b := m.vecSource(in)
	a := &m.vec.Z[in.v&31]
	act := m.active(in)
	m.tmp = Vec{}
	for i := range in.lanes() {
		var x uint64
		switch {
		case act>>i&1 != 0:
			x = b.elem(i, in.esz)
		case !in.zeroing:
			x = a.elem(i, in.esz)
		}
		m.tmp.setElem(i, in.esz, x)
	}
	plain := m.as(in)
	plain.k = 0
	m.vecPut(plain)
}

func compress(m *Machine, in *inst) {
	act := m.active(in)
	src := m.vec.Z[in.reg&31]
	n := 0
	m.tmp = Vec{}
	for i := range in.lanes() {
		if act>>i&1 != 0 {
			m.tmp.setElem(n, in.esz, src.elem(i, in.esz))
			n++
		}
	}
	if in.mem {
		m.maskedStore(m.ea(in), &m.tmp, lowBits(n), in.esz)
		return
	}
	if !in.zeroing {
		for i := n; i < in.lanes(); i++ {
			m.tmp.setElem(i, in.esz, m.vec.Z[in.rm&31].elem(i, in.esz))
		}
	}
	plain := m.as(in)
	plain.k = 0
	plain.dst = in.rm
	m.vecPut(plain)
}

func expand(m *Machine, in *inst) {
	act := m.active(in)
	var src Vec
	if in.mem {
		if n := bits.OnesCount64(act) * int(in.esz); n > 0 {
			a := m.ea(in)
			m.log(a, int32(n), false)
			m.Read(a, src.b()[:n])
		}
	} else {
		src = m.vec.Z[in.rm&31]
	}
	n := 0
	m.tmp = Vec{}
	for i := range in.lanes() {
		if act>>i&1 != 0 {
			m.tmp.setElem(i, in.esz, src.elem(n, in.esz))
			n++
		}
	}
	m.vecPut(in)
}

func cut(v uint64, _, _ uint8) uint64 { return v }

func cutSigned(v uint64, from, to uint8) uint64 {
	limit := int64(1) << (8*to - 1)
	return uint64(min(max(signExtend(v, from), -limit), limit-1))
}

func cutUnsigned(v uint64, _, to uint8) uint64 { return min(v, 1<<(8*to)-1) }

// narrow is vpmov, vpmovs and vpmovus; the register above the result is
// cleared.
func narrow(from, to uint8, f func(v uint64, from, to uint8) uint64) kernel {
	return func(d, a, _ *Vec, in *inst) {
		var x Vec
		for i := range in.lanes() {
			x.setElem(i, to, f(a.elem(i, from), from, to))
		}
		*d = x
	}
}

// Gather and scatter. An index is 4 or 8 bytes wide, by the opcode's low bit.

func (m *Machine) lane(in *inst, i int) uint64 {
	isz := uint8(4)
	if in.vsibWide {
		isz = 8
	}
	x := uint64(signExtend(m.vec.Z[in.index&31].elem(i, isz), isz))
	a := m.r[in.base&31] + x<<(in.scale&63) + in.disp
	if in.addr32 {
		a = uint64(uint32(a))
	}
	return a + m.segBase[in.seg&3]
}

// gatherLanes is how many elements there are: as many as the wider of index
// and element allows.
func (in *inst) gatherLanes() int {
	wide := in.esz
	if in.vsibWide {
		wide = 8
	} else {
		wide = max(wide, 4)
	}
	return int(in.n / wide)
}

func (m *Machine) gather(in *inst, act uint64) {
	m.tmp = m.vec.Z[in.dst&31]
	lanes := in.gatherLanes()
	for i := range lanes {
		if act>>i&1 != 0 {
			m.tmp.setElem(i, in.esz, m.load(m.lane(in, i), in.esz))
		}
	}
	used := lanes * int(in.esz)
	for i := used; i < 64; i++ {
		m.tmp.b()[i] = 0
	}
	m.vec.Z[in.dst&31] = m.tmp
}

func gatherVEX(m *Machine, in *inst) {
	if in.dst == in.index || in.dst == in.v || in.v == in.index {
		fault()
	}
	m.gather(in, signBits(&m.vec.Z[in.v&15], in.gatherLanes(), in.esz))
	m.vec.Z[in.v&15] = Vec{}
}

func gatherEVEX(m *Machine, in *inst) {
	if in.k == 0 || in.dst == in.index {
		fault()
	}
	m.gather(in, m.vec.K[in.k&7])
	m.vec.K[in.k&7] = 0
}

// scatter: elements that overlap are written in order.
func scatter(m *Machine, in *inst) {
	if in.k == 0 {
		fault()
	}
	act := m.vec.K[in.k&7]
	for i := range in.gatherLanes() {
		if act>>i&1 != 0 {
			m.at(m.lane(in, i))
			m.at(m.lane(in, i) + uint64(in.esz) - 1)
		}
	}
	for i := range in.gatherLanes() {
		if act>>i&1 != 0 {
			m.store(m.lane(in, i), in.esz, m.vec.Z[in.reg&31].elem(i, in.esz))
		}
	}
	m.vec.K[in.k&7] = 0
}
