package interp

var vecMoves = []vecOp{
	{"np 0f 10", "lve0", "d un nb", vecLoad, nil},
	{"np 0f 11", "lve0", "d un st", vecSave, nil},
	{"66 0f 10", "lve1", "q un nb", vecLoad, nil},
	{"66 0f 11", "lve1", "q un st", vecSave, nil},
	{"np 0f 28", "lve0", "d al nb", vecLoad, nil},
	{"np 0f 29", "lve0", "d al st", vecSave, nil},
	{"66 0f 28", "lve1", "q al nb", vecLoad, nil},
	{"66 0f 29", "lve1", "q al st", vecSave, nil},
	{"np 0f 2b", "lve0", "d al st m nk", vecSave, nil},
	{"66 0f 2b", "lve1", "q al st m nk", vecSave, nil},
	{"66 0f e7", "lve0", "d al st m nk", vecSave, nil},
	{"66 0f38 2a", "lve0", "d al nb m nk", vecLoad, nil},
	{"f2 0f f0", "lv", "b un m", vecLoad, nil},
	{"66 0f 6f", "lv", "b al", vecLoad, nil},
	{"66 0f 7f", "lv", "b al st", vecSave, nil},
	{"f3 0f 6f", "lv", "b un", vecLoad, nil},
	{"f3 0f 7f", "lv", "b un st", vecSave, nil},
	{"66 0f 6f", "e", "x al nb", vecLoad, nil},
	{"66 0f 7f", "e", "x al st", vecSave, nil},
	{"f3 0f 6f", "e", "x nb", vecLoad, nil},
	{"f3 0f 7f", "e", "x st", vecSave, nil},
	{"f2 0f 6f", "e0", "b", vecLoad, nil},
	{"f2 0f 7f", "e0", "b st", vecSave, nil},
	{"f2 0f 6f", "e1", "w", vecLoad, nil},
	{"f2 0f 7f", "e1", "w st", vecSave, nil},

	{"f3 0f 10", "lve0", "d sc m", scalarLoad, nil},
	{"f3 0f 11", "lve0", "d sc m st", scalarSave, nil},
	{"f2 0f 10", "lv", "q sc m", scalarLoad, nil},
	{"f2 0f 11", "lv", "q sc m st", scalarSave, nil},
	{"f2 0f 10", "e1", "q sc m", scalarLoad, nil},
	{"f2 0f 11", "e1", "q sc m st", scalarSave, nil},
	{"f3 0f 10", "lve0", "d sc r v", vecRVM, lowElement},
	{"f3 0f 11", "lve0", "d sc r v st", vecMVR, lowElement},
	{"f2 0f 10", "lv", "q sc r v", vecRVM, lowElement},
	{"f2 0f 11", "lv", "q sc r v st", vecMVR, lowElement},
	{"f2 0f 10", "e1", "q sc r v", vecRVM, lowElement},
	{"f2 0f 11", "e1", "q sc r v st", vecMVR, lowElement},

	{"np 0f 12", "lve0", "q mem=8 l0 v m nb nk", vecRVM, lowHalf},
	{"66 0f 12", "lv", "q mem=8 l0 v m nb nk", vecRVM, lowHalf},
	{"66 0f 12", "e1", "q mem=8 l0 v m nb nk", vecRVM, lowHalf},
	{"np 0f 12", "lve0", "q l0 v r nk", vecRVM, highToLow},
	{"np 0f 13", "lve0", "q mem=8 l0 m st nk", vecSave, nil},
	{"66 0f 13", "lv", "q mem=8 l0 m st nk", vecSave, nil},
	{"66 0f 13", "e1", "q mem=8 l0 m st nk", vecSave, nil},
	{"np 0f 16", "lve0", "q mem=8 l0 v nb nk", vecRVM, lowToHigh},
	{"66 0f 16", "lv", "q mem=8 l0 v m nb nk", vecRVM, lowToHigh},
	{"66 0f 16", "e1", "q mem=8 l0 v m nb nk", vecRVM, lowToHigh},
	{"np 0f 17", "lve0", "q mem=8 l0 m st nk", vecMR, highToLow},
	{"66 0f 17", "lv", "q mem=8 l0 m st nk", vecMR, highToLow},
	{"66 0f 17", "e1", "q mem=8 l0 m st nk", vecMR, highToLow},

	{"f2 0f 12", "lv", "q mem=8 l0", vecRM, movddup},
	{"f2 0f 12", "v", "q l1", vecRM, movddup},
	{"f2 0f 12", "e1", "q mem=8 l0 nb wh", vecRM, movddup},
	{"f2 0f 12", "e1", "q nb wh", vecRM, movddup},
	{"f3 0f 12", "lve0", "d nb wh", vecRM, movsldup},
	{"f3 0f 16", "lve0", "d nb wh", vecRM, movshdup},

	{"66 0f 6e", "lve", "x sc l0 nk g", fromGPR, nil},
	{"66 0f 7e", "lve", "x sc l0 nk g", toGPR, nil},
	{"f3 0f 7e", "lv", "q sc l0", scalarLoad, nil},
	{"f3 0f 7e", "e1", "q sc l0 nk", scalarLoad, nil},
	{"66 0f d6", "lv", "q sc l0 st", movqSave, nil},
	{"66 0f d6", "e1", "q sc st l0 nk", movqSave, nil},
	{"66 0f d7", "lv", "b r", maskToGPR, nil},
	{"np 0f 50", "lv", "d r", maskToGPR, nil},
	{"66 0f 50", "lv", "q r", maskToGPR, nil},

	{"66 0f38 18", "v0e0", "d mem=4 nb any", vecRM, broadcast},
	{"66 0f38 19", "v0", "q mem=8 lx nb", vecRM, broadcast},
	{"66 0f38 19", "e1", "q mem=8 lx nb any", vecRM, broadcast},
	{"66 0f38 19", "e0", "d msz=8 mem=8 lx nb any", vecRM, broadcast},
	{"66 0f38 1a", "v0", "b msz=16 mem=16 l1 m", vecRM, broadcast},
	{"66 0f38 1a", "e", "x msz=16 mem=16 lx m nb any", vecRM, broadcast},
	{"66 0f38 1b", "e", "x msz=32 mem=32 l2 m nb any", vecRM, broadcast},
	{"66 0f38 5a", "v0", "b msz=16 mem=16 l1 m", vecRM, broadcast},
	{"66 0f38 5a", "e", "x msz=16 mem=16 lx m nb any", vecRM, broadcast},
	{"66 0f38 5b", "e", "x msz=32 mem=32 l2 m nb any", vecRM, broadcast},
	{"66 0f38 58", "v0", "d mem=4", vecRM, broadcast},
	{"66 0f38 59", "v0", "q mem=8", vecRM, broadcast},
	{"66 0f38 58", "e0", "d mem=4 nb any", vecRM, broadcast},
	{"66 0f38 59", "e1", "q mem=8 nb any", vecRM, broadcast},
	{"66 0f38 59", "e0", "d msz=8 mem=8 nb any", vecRM, broadcast},
	{"66 0f38 78", "v0", "b mem=1", vecRM, broadcast},
	{"66 0f38 78", "e0", "b mem=1 nb any", vecRM, broadcast},
	{"66 0f38 79", "v0", "w mem=2", vecRM, broadcast},
	{"66 0f38 79", "e0", "w mem=2 nb any", vecRM, broadcast},
	{"66 0f38 7a", "e0", "b r g", broadcastGPR, nil},
	{"66 0f38 7b", "e0", "w r g", broadcastGPR, nil},
	{"66 0f38 7c", "e", "x r g", broadcastGPR, nil},

	{"66 0f38 2c", "v0", "d v m", maskedLoad, nil},
	{"66 0f38 2d", "v0", "q v m", maskedLoad, nil},
	{"66 0f38 2e", "v0", "d v m st", maskedSave, nil},
	{"66 0f38 2f", "v0", "q v m st", maskedSave, nil},
	{"66 0f38 8c", "v", "x v m", maskedLoad, nil},
	{"66 0f38 8e", "v", "x v m st", maskedSave, nil},
	{"66 0f f7", "lv", "b r l0", maskmovdqu, nil},
	{"f3 0f 2b", "l", "d sc m st", scalarSave, nil}, {"f2 0f 2b", "l", "q sc m st", scalarSave, nil}, // movnts of SSE4a
}

// scalarLoad clears the rest of the register.
func scalarLoad(m *Machine, in *inst) {
	b := m.vecSource(in)
	m.tmp = Vec{b.elem(0, in.esz)}
	m.vecPut(in)
}

func scalarSave(m *Machine, in *inst) { m.vecStore(in, &m.vec.Z[in.reg&31]) }

func movqSave(m *Machine, in *inst) {
	if in.mem {
		m.vecStore(in, &m.vec.Z[in.reg&31])
		return
	}
	m.tmp = Vec{m.vec.Z[in.reg&31][0]}
	m.vecPut(in)
}

// vecMVR is the store form of a register move: rm = kern(vvvv, reg).
func vecMVR(m *Machine, in *inst) {
	a := &m.vec.Z[in.v&31]
	if in.legacy {
		a = &m.vec.Z[in.rm&31]
	}
	m.tmp = m.vec.Z[in.dst&31]
	in.kern(&m.tmp, a, &m.vec.Z[in.reg&31], in)
	m.vecPut(in)
}

func lowElement(d, a, b *Vec, in *inst) {
	x := b.elem(0, in.esz)
	*d = *a
	d.setElem(0, in.esz, x)
}

func lowHalf(d, a, b *Vec, _ *inst)   { d[0], d[1] = b[0], a[1] }
func highToLow(d, a, b *Vec, _ *inst) { d[0], d[1] = b[1], a[1] }
func lowToHigh(d, a, b *Vec, _ *inst) { d[0], d[1] = a[0], b[0] }

func movddup(d, a, _ *Vec, in *inst) {
	for i := 0; i < int(in.n/8); i += 2 {
		d[i], d[i+1] = a[i], a[i]
	}
}

func movsldup(d, a, _ *Vec, in *inst) {
	for i := range in.n / 8 {
		x := uint64(uint32(a[i&7]))
		d[i&7] = x | x<<32
	}
}

func movshdup(d, a, _ *Vec, in *inst) {
	for i := range in.n / 8 {
		x := a[i&7] >> 32
		d[i&7] = x | x<<32
	}
}

func fromGPR(m *Machine, in *inst) {
	m.tmp = Vec{m.rmOperand(in)}
	m.vecPut(in)
}

func toGPR(m *Machine, in *inst) {
	m.setRM(in, m.vec.Z[in.reg&31][0])
}

// maskToGPR collects the sign bits of the elements.
func maskToGPR(m *Machine, in *inst) {
	m.setReg(in.reg, 8, signBits(&m.vec.Z[in.rm&31], int(in.n/in.esz), in.esz))
}

func signBits(v *Vec, lanes int, esz uint8) uint64 {
	var r uint64
	if esz == 1 {
		for i := 0; i < lanes/8; i++ {
			r |= (v[i&7] & 0x8080808080808080 >> 7 * 0x0102040810204080 >> 56) << (8 * i)
		}
		return r
	}
	for i := range lanes {
		r |= v.elem(i, esz) >> (8*esz - 1) & 1 << i
	}
	return r
}

func broadcast(d, a, _ *Vec, in *inst) {
	step := int(in.msz)
	x := *a
	for i := 0; i < int(in.n); i += step {
		copy(d.b()[i:i+step], x.b()[:step])
	}
}

func broadcastGPR(m *Machine, in *inst) {
	x := m.r[in.rm&15]
	m.tmp = Vec{}
	for i := range in.lanes() {
		m.tmp.setElem(i, in.esz, x)
	}
	m.vecPut(in)
}

// maskedLoad is vmaskmov and vpmaskmov: the mask is the sign bits of vvvv.
func maskedLoad(m *Machine, in *inst) {
	act := signBits(&m.vec.Z[in.v&31], in.lanes(), in.esz)
	m.tmp = Vec{}
	if act != 0 {
		a := m.ea(in)
		first, last := span(act)
		lo, hi := first*int(in.esz), (last+1)*int(in.esz)
		m.log(a+uint64(lo), int32(hi-lo), false)
		m.Read(a+uint64(lo), m.tmp.b()[lo:hi])
		for i := range in.lanes() {
			if act>>i&1 == 0 {
				m.tmp.setElem(i, in.esz, 0)
			}
		}
	}
	m.vecPut(in)
}

func maskedSave(m *Machine, in *inst) {
	act := signBits(&m.vec.Z[in.v&31], in.lanes(), in.esz)
	m.maskedStore(m.ea(in), &m.vec.Z[in.reg&31], act, in.esz)
}
