package interp

// mmxShape says how an MMX instruction is made of the 128-bit one of the same
// opcode.
type mmxShape uint8

const (
	mmxEach mmxShape = iota + 1 // the same, on half the elements
	mmxBoth                     // both operands side by side are its first one
	mmxLow                      // interleaves the low halves
	mmxHigh                     // the high ones
)

// mmxShapes are the MMX and SSSE3 instructions, by map and opcode, that have an SSE2 one.
var mmxShapes = func() map[uint16]mmxShape {
	t := map[uint16]mmxShape{}
	for _, s := range []struct {
		first, last uint16
		shape       mmxShape
	}{
		{0x160, 0x162, mmxLow}, {0x163, 0x163, mmxBoth}, {0x164, 0x166, mmxEach}, {0x167, 0x167, mmxBoth},
		{0x168, 0x16a, mmxHigh}, {0x16b, 0x16b, mmxBoth}, {0x171, 0x176, mmxEach}, {0x1d1, 0x1d5, mmxEach}, {0x1d8, 0x1e5, mmxEach},
		{0x1e8, 0x1ef, mmxEach}, {0x1f1, 0x1f6, mmxEach}, {0x1f8, 0x1fe, mmxEach},
		{0x201, 0x203, mmxBoth}, {0x204, 0x204, mmxEach}, {0x205, 0x207, mmxBoth}, {0x208, 0x20b, mmxEach}, {0x21c, 0x21e, mmxEach},
	} {
		for op := s.first; op <= s.last; op++ {
			t[op] = s.shape
		}
	}
	return t
}()

// mmx decodes legacy instructions on MMX registers, which are the x87's; false if op is
// none.
func (d *decoder) mmx(op byte) bool {
	in := d.in
	if d.vex {
		return false
	}
	isMem, group := d.peek() < 0xc0, d.peek()>>3&7
	imm := false
	shape := mmxShapes[uint16(d.opmap)<<8|uint16(op)]
	in.n, in.size, in.esz = 8, 8, 8
	switch key := uint16(d.opmap)<<8 | uint16(op); {
	case d.pp == 0 && shape != 0:
		if shape == mmxHigh {
			key -= 8 // what interleaving low halves leaves in the high half
		}
		e := legacyRow(key, group)
		if e == nil || e.vd && isMem {
			in.refuse()
			break
		}
		in.op, in.esz, in.kern = uint8(shape), e.esz, e.kern
		if in.fn = mmxRM; e.vd {
			in.fn = mmxShift
		} else if e.v {
			in.fn = mmxRVM
		}
		if shape == mmxLow {
			in.size = 4
		}
		imm = e.imm
	case d.pp == 0 && key == 0x177:
		in.flags |= usesVector
		in.fn = emms
		return true
	case d.pp == 0 && (key == 0x16e || key == 0x17e):
		in.fn = mmxFromGPR
		if key == 0x17e {
			in.fn = mmxToGPR
		}
	case d.pp == 0 && key == 0x16f:
		in.fn = mmxLoad
	case d.pp == 0 && key == 0x17f, d.pp == 0 && key == 0x1e7 && isMem:
		in.fn = mmxSave
	case d.pp == 0 && key == 0x1e7:
		in.refuse()
	case d.pp == 0 && key == 0x170:
		in.kern, in.fn, imm = mmxShuffleWords, mmxRM, true
	case d.pp == 0 && key == 0x30f:
		in.kern, in.fn, imm = mmxAlign, mmxRVM, true
	case d.pp == 0 && key == 0x200:
		in.kern, in.fn = mmxShuffle, mmxRVM
	case d.pp == 0 && key == 0x1c4:
		in.fn, imm = mmxInsert, true
	case d.pp == 0 && key == 0x1c5 && !isMem:
		in.fn, imm = mmxExtract, true
	case d.pp == 0 && key == 0x1d7 && !isMem:
		in.fn = mmxSigns
	case d.pp == 0 && key == 0x1f7 && !isMem:
		in.fn = maskmovq
	case (d.pp == 2 || d.pp == 3) && key == 0x1d6 && !isMem:
		in.fn = movq2dq
		if d.pp == 3 {
			in.fn = movdq2q
		}
	case d.pp < 2 && (key == 0x12a || key == 0x12c || key == 0x12d):
		d.mmxConvert(op)
	default:
		in.n, in.size, in.esz = 0, 0, 0
		return false
	}
	in.flags |= usesVector
	d.modRM(1)
	in.w = 4
	if d.wbit {
		in.w = 8
	}
	if imm {
		in.imm = uint64(d.byte())
	}
	return true
}

// mmxConvert is cvtpi2ps and cvtpi2pd (2a), and to integers truncating (2c) and
// rounding (2d).
func (d *decoder) mmxConvert(op byte) {
	in := d.in
	in.flags |= usesFloat
	var like uint16
	switch {
	case op == 0x2a && d.pp == 0:
		like, in.esz, in.msz = vecKey(1, 0, 0x5b), 4, 4
	case op == 0x2a:
		like, in.n, in.esz, in.msz = vecKey(1, 2, 0xe6), 16, 8, 4
	case d.pp == 0:
		like, in.esz, in.msz = vecKey(1, map[byte]uint8{0x2c: 2, 0x2d: 1}[op], 0x5b), 4, 4
	default:
		like, in.size, in.esz, in.msz = vecKey(1, map[byte]uint8{0x2c: 1, 0x2d: 3}[op], 0xe6), 16, 4, 8
	}
	e := &vecTable()[like][0]
	in.kern, in.fn = e.kern, mmxToInts
	if op == 0x2a {
		in.fn = mmxFromInts
	}
	of := decoder{in: new(inst), opmap: uint8(like >> 10), pp: uint8(like >> 8 & 3)}
	in.nat = of.native(e, byte(like))
	in.nat.run = in.fn
}

// mmxFromInts leaves the x87 alone if the integers are in memory.
func mmxFromInts(m *Machine, in *inst) {
	b := Vec{m.mmxSource(in)}
	z := &m.vec.Z[in.reg&15]
	m.tmp = *z
	m.lanes(in, &m.tmp, &b)
	if !in.mem {
		m.mmxState()
	}
	copy(z.b()[:in.n], m.tmp.b()[:in.n])
}

func mmxToInts(m *Machine, in *inst) {
	b := m.vec.Z[in.rm&15]
	if in.size == 8 {
		b[1] = 0
	}
	if in.mem {
		a := m.ea(in)
		if in.size == 16 && a%16 != 0 && m.vec.MXCSR&misalignedSSE == 0 {
			fault()
		}
		b = Vec{}
		m.log(a, int32(in.size), false)
		m.Read(a, b.b()[:in.size])
	}
	m.tmp = Vec{}
	m.lanes(in, &m.tmp, &b)
	m.mmxState().setMMX(in.reg, m.tmp[0])
}

// legacyRow is the SSE form of an opcode.
func legacyRow(key uint16, group uint8) *vecEntry {
	rows := vecTable()[vecKey(uint8(key>>8), 1, uint8(key))]
	for i := range rows {
		if e := &rows[i]; e.legacy && (e.group < 0 || uint8(e.group) == group) && !(e.group == 3 || e.group == 7) {
			return e
		}
	}
	return nil
}

// mmxState is the x87's as MMX instructions leave it: no register empty, the top
// of the stack at 0.
func (m *Machine) mmxState() *X87 {
	m.noPending()
	x := &m.vec.X87
	x.FSW &^= 7 << 11
	x.Valid = 0xff
	return x
}

func (x *X87) setMMX(i uint8, v uint64) { x.R[i&7] = F80{v, 0xffff} }

// mmxSource is the r/m operand.
func (m *Machine) mmxSource(in *inst) uint64 {
	if in.mem {
		return m.load(m.ea(in), in.size)
	}
	return m.vec.X87.R[in.rm&7].M
}

func mmxRVM(m *Machine, in *inst) {
	b := Vec{m.mmxSource(in)}
	x := m.mmxState()
	a := Vec{x.R[in.reg&7].M}
	if mmxShape(in.op) == mmxBoth {
		a[1], b[1] = b[0], b[0]
	}
	m.tmp = Vec{}
	whole := m.as(in)
	if in.op > uint8(mmxEach) {
		whole.n = 16
	}
	in.kern(&m.tmp, &a, &b, whole)
	if mmxShape(in.op) == mmxHigh {
		m.tmp[0] = m.tmp[1]
	}
	x.setMMX(in.reg, m.tmp[0])
}

func mmxRM(m *Machine, in *inst) {
	b := Vec{m.mmxSource(in)}
	m.tmp = Vec{}
	in.kern(&m.tmp, &b, &b, in)
	m.mmxState().setMMX(in.reg, m.tmp[0])
}

func mmxShift(m *Machine, in *inst) {
	x := m.mmxState()
	a := Vec{x.R[in.rm&7].M}
	m.tmp = Vec{}
	in.kern(&m.tmp, &a, &a, in)
	x.setMMX(in.rm, m.tmp[0])
}

func mmxLoad(m *Machine, in *inst) {
	v := m.mmxSource(in)
	m.mmxState().setMMX(in.reg, v)
}

func mmxSave(m *Machine, in *inst) {
	v := m.vec.X87.R[in.reg&7].M
	if in.mem {
		m.store(m.ea(in), 8, v)
		m.mmxState()
		return
	}
	m.mmxState().setMMX(in.rm, v)
}

func mmxFromGPR(m *Machine, in *inst) {
	v := m.rmOperand(in)
	m.mmxState().setMMX(in.reg, v)
}

func mmxToGPR(m *Machine, in *inst) {
	m.setRM(in, m.vec.X87.R[in.reg&7].M)
	m.mmxState()
}

func mmxInsert(m *Machine, in *inst) {
	in2 := *in
	in2.w = 2
	v := m.rmOperand(&in2)
	x := m.mmxState()
	at := 16 * (in.imm & 3)
	x.setMMX(in.reg, x.R[in.reg&7].M&^(0xffff<<at)|v<<at)
}

func mmxExtract(m *Machine, in *inst) {
	m.setReg(in.reg, 8, m.mmxState().R[in.rm&7].M>>(16*(in.imm&3))&0xffff)
}

func mmxSigns(m *Machine, in *inst) {
	v := Vec{m.mmxState().R[in.rm&7].M}
	m.setReg(in.reg, 8, signBits(&v, 8, 1))
}

// maskmovq stores the bytes whose mask has its sign bit, at rdi, which faults
// even if there are none.
func maskmovq(m *Machine, in *inst) {
	v, mask := Vec{m.vec.X87.R[in.reg&7].M}, Vec{m.vec.X87.R[in.rm&7].M}
	a := m.r[RDI]
	if in.addr32 {
		a = uint64(uint32(a))
	}
	a += m.segBase[in.seg&3]
	m.at(a)
	m.at(a + 7)
	m.maskedStore(a, &v, signBits(&mask, 8, 1), 1)
	m.mmxState()
}

func movq2dq(m *Machine, in *inst) {
	z := &m.vec.Z[in.reg&15]
	z[0], z[1] = m.mmxState().R[in.rm&7].M, 0
}

func movdq2q(m *Machine, in *inst) {
	m.mmxState().setMMX(in.reg, m.vec.Z[in.rm&15][0])
}

func emms(m *Machine, _ *inst) {
	m.mmxState().Valid = 0
}

func mmxShuffleWords(d, a, _ *Vec, in *inst) {
	for i := range uint64(4) {
		d.w()[i] = a.w()[in.imm>>(2*i)&3]
	}
}

func mmxShuffle(d, a, b *Vec, _ *inst) {
	for i, s := range b.b()[:8] {
		if d.b()[i] = a.b()[s&7]; s&0x80 != 0 {
			d.b()[i] = 0
		}
	}
}

func mmxAlign(d, a, b *Vec, in *inst) {
	both := Vec{b[0], a[0]}
	for i := range 8 {
		if at := i + int(in.imm); at < 16 {
			d.b()[i] = both.b()[at]
		}
	}
}
