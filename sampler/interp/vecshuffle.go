package interp

var vecShuffles = []vecOp{
	{"66 0f 60", "lve", "b v wh", vecRVM, unpackLow}, {"66 0f 61", "lve", "w v wh", vecRVM, unpackLow},
	{"66 0f 62", "lve0", "d v wh", vecRVM, unpackLow}, {"66 0f 6c", "lve1", "q v wh", vecRVM, unpackLow},
	{"66 0f 68", "lve", "b v wh", vecRVM, unpackHigh}, {"66 0f 69", "lve", "w v wh", vecRVM, unpackHigh},
	{"66 0f 6a", "lve0", "d v wh", vecRVM, unpackHigh}, {"66 0f 6d", "lve1", "q v wh", vecRVM, unpackHigh},
	{"np 0f 14", "lve0", "d v wh", vecRVM, unpackLow}, {"66 0f 14", "lve1", "q v wh", vecRVM, unpackLow},
	{"np 0f 15", "lve0", "d v wh", vecRVM, unpackHigh}, {"66 0f 15", "lve1", "q v wh", vecRVM, unpackHigh},
	{"66 0f 63", "lve", "b v wh", vecRVM, pack16(s8)}, {"66 0f 67", "lve", "b v wh", vecRVM, pack16(u8)},
	{"66 0f 6b", "lv", "w v", vecRVM, pack32(s16)}, {"66 0f 6b", "e0", "w msz=4 v wh", vecRVM, pack32(s16)},
	{"66 0f38 2b", "lv", "w v", vecRVM, pack32(u16)}, {"66 0f38 2b", "e0", "w msz=4 v wh", vecRVM, pack32(u16)},

	{"66 0f38 00", "lve", "b v wh", vecRVM, pshufb},
	{"66 0f 70", "lve0", "d imm wh", vecRM, pshufd},
	{"f3 0f 70", "lve", "w imm wh", vecRM, pshufw(4)}, {"f2 0f 70", "lve", "w imm wh", vecRM, pshufw(0)},
	{"np 0f c6", "lve0", "d v imm wh", vecRVM, shufps}, {"66 0f c6", "lve1", "q v imm wh", vecRVM, shufpd},
	{"66 0f3a 0f", "lve", "b v imm wh", vecRVM, palignr},
	{"66 0f3a 04", "v0e0", "d imm wh", vecRM, pshufd}, {"66 0f3a 05", "v0e1", "q imm wh", vecRM, permilpd},
	{"66 0f38 0c", "v0e0", "d v wh", vecRVM, permilpsVar}, {"66 0f38 0d", "v0e1", "q v wh", vecRVM, permilpdVar},
	{"66 0f3a 00", "v1e1", "q imm lx wh", vecRM, permq}, {"66 0f3a 01", "v1e1", "q imm lx wh", vecRM, permq},
	{"66 0f38 36", "v0", "d v lx", vecRVM, permute}, {"66 0f38 36", "e", "x v lx wh", vecRVM, permute},
	{"66 0f38 16", "v0", "d v lx", vecRVM, permute}, {"66 0f38 16", "e", "x v lx wh", vecRVM, permute},
	{"66 0f38 8d", "e0", "b v wh", vecRVM, permute}, {"66 0f38 8d", "e1", "w v wh", vecRVM, permute},
	{"66 0f38 75", "e0", "b v wh", vecRVM, permute2(true)}, {"66 0f38 75", "e1", "w v wh", vecRVM, permute2(true)},
	{"66 0f38 76", "e", "x v wh", vecRVM, permute2(true)}, {"66 0f38 77", "e", "x v wh", vecRVM, permute2(true)},
	{"66 0f38 7d", "e0", "b v wh", vecRVM, permute2(false)}, {"66 0f38 7d", "e1", "w v wh", vecRVM, permute2(false)},
	{"66 0f38 7e", "e", "x v wh", vecRVM, permute2(false)}, {"66 0f38 7f", "e", "x v wh", vecRVM, permute2(false)},
	{"66 0f38 83", "e1", "b msz=8 v wh", vecRVM, multishift},
	{"66 0f3a 06", "v0", "q v imm l1", vecRVM, perm128}, {"66 0f3a 46", "v0", "q v imm l1", vecRVM, perm128},
	{"66 0f3a 43", "e", "x v imm lx wh", vecRVM, shuf128}, {"66 0f3a 23", "e", "x v imm lx wh", vecRVM, shuf128},
	{"66 0f3a 03", "e", "x v imm wh", vecRVM, valign},

	{"66 0f3a 0c", "lv", "d v imm", vecRVM, blendImm}, {"66 0f3a 0d", "lv", "q v imm", vecRVM, blendImm},
	{"66 0f3a 0e", "lv", "w v imm", vecRVM, blendImm}, {"66 0f3a 02", "v0", "d v imm", vecRVM, blendImm},
	{"66 0f38 10", "l", "b", blendXMM0, nil}, {"66 0f38 14", "l", "d", blendXMM0, nil}, {"66 0f38 15", "l", "q", blendXMM0, nil},
	{"66 0f3a 4c", "v0", "b v imm", blendVar, nil}, {"66 0f3a 4a", "v0", "d v imm", blendVar, nil}, {"66 0f3a 4b", "v0", "q v imm", blendVar, nil},

	{"66 0f3a 18", "v0", "q v imm mem=16 l1", vecRVM, insertPart}, {"66 0f3a 38", "v0", "q v imm mem=16 l1", vecRVM, insertPart},
	{"66 0f3a 18", "e", "x v imm msz=16 mem=16 lx nb wh", vecRVM, insertPart}, {"66 0f3a 38", "e", "x v imm msz=16 mem=16 lx nb wh", vecRVM, insertPart},
	{"66 0f3a 1a", "e", "x v imm msz=32 mem=32 l2 nb wh", vecRVM, insertPart}, {"66 0f3a 3a", "e", "x v imm msz=32 mem=32 l2 nb wh", vecRVM, insertPart},
	{"66 0f3a 19", "v0", "q imm mem=16 l1 st", extractPart, nil}, {"66 0f3a 39", "v0", "q imm mem=16 l1 st", extractPart, nil},
	{"66 0f3a 19", "e", "x imm mem=16 lx st", extractPart, nil}, {"66 0f3a 39", "e", "x imm mem=16 lx st", extractPart, nil},
	{"66 0f3a 1b", "e", "x imm mem=32 l2 st", extractPart, nil}, {"66 0f3a 3b", "e", "x imm mem=32 l2 st", extractPart, nil},
	{"66 0f3a 14", "lve", "b sc imm l0 nk g", pextr, nil}, {"66 0f3a 15", "lve", "w sc imm l0 nk g", pextr, nil},
	{"66 0f3a 16", "lve", "x sc imm l0 nk g", pextr, nil}, {"66 0f3a 17", "lve", "d sc imm l0 nk g", pextr, nil},
	{"66 0f c5", "lve", "w sc imm l0 nk r gr", pextrw, nil},
	{"66 0f3a 20", "lve", "b sc v imm l0 nk g", pinsr, nil}, {"66 0f c4", "lve", "w sc v imm l0 nk g", pinsr, nil},
	{"66 0f3a 22", "lve", "x sc v imm l0 nk g", pinsr, nil},
	{"66 0f3a 21", "lve0", "d mem=4 v imm l0 nk nb", insertps, nil},

	{"66 0f38 20", "lve", "w msz=1 /2", vecRM, extend(1, true)}, {"66 0f38 21", "lve", "d msz=1 /4 nb", vecRM, extend(1, true)},
	{"66 0f38 22", "lve", "q msz=1 /8 nb", vecRM, extend(1, true)}, {"66 0f38 23", "lve", "d msz=2 /2 nb", vecRM, extend(2, true)},
	{"66 0f38 24", "lve", "q msz=2 /4 nb", vecRM, extend(2, true)}, {"66 0f38 25", "lve0", "q msz=4 /2 nb", vecRM, extend(4, true)},
	{"66 0f38 30", "lve", "w msz=1 /2", vecRM, extend(1, false)}, {"66 0f38 31", "lve", "d msz=1 /4 nb", vecRM, extend(1, false)},
	{"66 0f38 32", "lve", "q msz=1 /8 nb", vecRM, extend(1, false)}, {"66 0f38 33", "lve", "d msz=2 /2 nb", vecRM, extend(2, false)},
	{"66 0f38 34", "lve", "q msz=2 /4 nb", vecRM, extend(2, false)}, {"66 0f38 35", "lve0", "q msz=4 /2 nb", vecRM, extend(4, false)},
}

// Within each 128 bits, the elements of a and b alternate.
func unpack(d, a, b *Vec, in *inst, high bool) {
	per := 16 / int(in.esz)
	for l := 0; l < in.lanes(); l += per {
		from := l
		if high {
			from += per / 2
		}
		for i := range per / 2 {
			d.setElem(l+2*i, in.esz, a.elem(from+i, in.esz))
			d.setElem(l+2*i+1, in.esz, b.elem(from+i, in.esz))
		}
	}
}

func unpackLow(d, a, b *Vec, in *inst)  { unpack(d, a, b, in, false) }
func unpackHigh(d, a, b *Vec, in *inst) { unpack(d, a, b, in, true) }

func pack16(f func(int) uint8) kernel {
	return func(d, a, b *Vec, in *inst) {
		for l := 0; l < int(in.n); l += 16 {
			for i := range 8 {
				d.b()[l+i] = f(i16(a.w()[l/2+i]))
				d.b()[l+8+i] = f(i16(b.w()[l/2+i]))
			}
		}
	}
}

func pack32(f func(int) uint16) kernel {
	return func(d, a, b *Vec, in *inst) {
		for l := 0; l < int(in.n/2); l += 8 {
			for i := range 4 {
				d.w()[l+i] = f(i32(a.d()[l/2+i]))
				d.w()[l+4+i] = f(i32(b.d()[l/2+i]))
			}
		}
	}
}

func pshufb(d, a, b *Vec, in *inst) {
	for i := range int(in.n) {
		c := b.b()[i]
		d.b()[i] = 0
		if c < 0x80 {
			d.b()[i] = a.b()[i&^15|int(c&15)]
		}
	}
}

func pshufd(d, a, _ *Vec, in *inst) {
	for i := range int(in.n / 4) {
		d.d()[i] = a.d()[i&^3|int(in.imm>>(2*(i&3))&3)]
	}
}

// pshufw shuffles the four words from word at in each 128 bits.
func pshufw(at int) kernel {
	return func(d, a, _ *Vec, in *inst) {
		for i := range int(in.n / 2) {
			from := i
			if i&4 == at {
				from = i&^3 | int(in.imm>>(2*(i&3))&3)
			}
			d.w()[i] = a.w()[from]
		}
	}
}

func shufps(d, a, b *Vec, in *inst) {
	for i := range int(in.n / 4) {
		from := a
		if i&2 != 0 {
			from = b
		}
		d.d()[i] = from.d()[i&^3|int(in.imm>>(2*(i&3))&3)]
	}
}

func shufpd(d, a, b *Vec, in *inst) {
	for i := range int(in.n / 8) {
		from := a
		if i&1 != 0 {
			from = b
		}
		d[i] = from[i&^1|int(in.imm>>i&1)]
	}
}

func palignr(d, a, b *Vec, in *inst) {
	n := int(in.imm & 0xff)
	for i := range int(in.n) {
		l, j := i&^15, i&15+n
		switch {
		case j < 16:
			d.b()[i] = b.b()[l+j]
		case j < 32:
			d.b()[i] = a.b()[l+j-16]
		default:
			d.b()[i] = 0
		}
	}
}

func permilpd(d, a, _ *Vec, in *inst) {
	for i := range int(in.n / 8) {
		d[i] = a[i&^1|int(in.imm>>i&1)]
	}
}

func permilpsVar(d, a, b *Vec, in *inst) {
	for i := range int(in.n / 4) {
		d.d()[i] = a.d()[i&^3|int(b.d()[i]&3)]
	}
}

func permilpdVar(d, a, b *Vec, in *inst) {
	for i := range int(in.n / 8) {
		d[i] = a[i&^1|int(b[i]>>1&1)]
	}
}

func permq(d, a, _ *Vec, in *inst) {
	for i := range int(in.n / 8) {
		d[i] = a[i&^3|int(in.imm>>(2*(i&3))&3)]
	}
}

// permute takes the elements of b at the indexes in a.
func permute(d, a, b *Vec, in *inst) {
	lanes := uint64(in.lanes())
	for i := range in.lanes() {
		d.setElem(i, in.esz, b.elem(int(a.elem(i, in.esz)&(lanes-1)), in.esz))
	}
}

// permute2 picks from two registers; the indexes are in the destination
// (vpermi2) or in the first source (vpermt2).
func permute2(indexInDest bool) kernel {
	return func(d, a, b *Vec, in *inst) {
		index, first := a, *d
		if indexInDest {
			index, first = d, *a
		}
		lanes := uint64(in.lanes())
		for i := range in.lanes() {
			x := index.elem(i, in.esz)
			from := &first
			if x&lanes != 0 {
				from = b
			}
			d.setElem(i, in.esz, from.elem(int(x&(lanes-1)), in.esz))
		}
	}
}

func multishift(d, a, b *Vec, in *inst) {
	for i := range int(in.n) {
		n := uint64(a.b()[i] & 63)
		v := b[i/8]
		d.b()[i] = byte(v>>n | v<<(64-n))
	}
}

func perm128(d, a, b *Vec, in *inst) {
	for h := range 2 {
		c := in.imm >> (4 * h)
		from := a
		if c&2 != 0 {
			from = b
		}
		j := 2 * int(c&1)
		lo, hi := from[j], from[j+1]
		if c&8 != 0 {
			lo, hi = 0, 0
		}
		d[2*h], d[2*h+1] = lo, hi
	}
}

// shuf128 picks 128-bit parts: the lower half of the result from a, the upper from b.
func shuf128(d, a, b *Vec, in *inst) {
	parts := int(in.n / 16)
	width := parts / 2 // bits per selector: 1 of 2, 2 of 4
	for i := range parts {
		from := a
		if i >= parts/2 {
			from = b
		}
		j := 2 * (int(in.imm>>(i*width)) & (parts - 1))
		d[2*i], d[2*i+1] = from[j], from[j+1]
	}
}

func valign(d, a, b *Vec, in *inst) {
	lanes := in.lanes()
	n := int(in.imm) & (lanes - 1)
	for i := range lanes {
		from, j := b, i+n
		if j >= lanes {
			from, j = a, j-lanes
		}
		d.setElem(i, in.esz, from.elem(j, in.esz))
	}
}

func blendImm(d, a, b *Vec, in *inst) {
	for i := range in.lanes() {
		from := a
		if in.imm>>(i&7)&1 != 0 {
			from = b
		}
		d.setElem(i, in.esz, from.elem(i, in.esz))
	}
}

func (m *Machine) blend(in *inst, a, b, mask *Vec) {
	sel := signBits(mask, in.lanes(), in.esz)
	m.tmp = Vec{}
	for i := range in.lanes() {
		from := a
		if sel>>i&1 != 0 {
			from = b
		}
		m.tmp.setElem(i, in.esz, from.elem(i, in.esz))
	}
	m.vecPut(in)
}

func blendXMM0(m *Machine, in *inst) {
	b := m.vecSource(in)
	m.blend(in, &m.vec.Z[in.reg&15], b, &m.vec.Z[0])
}

func blendVar(m *Machine, in *inst) {
	b := m.vecSource(in)
	m.blend(in, &m.vec.Z[in.v&15], b, &m.vec.Z[in.imm>>4&15])
}

func insertPart(d, a, b *Vec, in *inst) {
	*d = *a
	part := int(in.size)
	at := int(in.imm) & (int(in.n)/part - 1) * part
	copy(d.b()[at:at+part], b.b()[:part])
}

func extractPart(m *Machine, in *inst) {
	part := int(in.size)
	at := int(in.imm) & (int(in.n)/part - 1) * part
	m.tmp = Vec{}
	copy(m.tmp.b()[:part], m.vec.Z[in.reg&31].b()[at:at+part])
	short := m.as(in)
	short.n = in.size
	if in.mem {
		// The CPU checks all of the operand, whatever the opmask.
		m.at(m.ea(in))
		m.at(m.ea(in) + uint64(part) - 1)
		m.vecStore(short, &m.tmp)
		return
	}
	m.vecPut(short)
}

func pextr(m *Machine, in *inst) {
	v := m.vec.Z[in.reg&31].elem(int(in.imm)&int(16/in.esz-1), in.esz)
	if in.mem {
		m.store(m.ea(in), in.esz, v)
		return
	}
	m.r[in.rm&15] = v
}

func pextrw(m *Machine, in *inst) {
	m.r[in.reg&15] = m.vec.Z[in.rm&31].elem(int(in.imm&7), 2)
}

func pinsr(m *Machine, in *inst) {
	var v uint64
	if in.mem {
		v = m.load(m.ea(in), in.esz)
	} else {
		v = m.r[in.rm&15]
	}
	a := &m.vec.Z[in.v&31]
	m.tmp = Vec{a[0], a[1]}
	m.tmp.setElem(int(in.imm)&int(16/in.esz-1), in.esz, v)
	m.vecPut(in)
}

func insertps(m *Machine, in *inst) {
	b := m.vecSource(in)
	from := 0
	if !in.mem {
		from = int(in.imm >> 6 & 3)
	}
	x := b.d()[from]
	a := &m.vec.Z[in.v&31]
	m.tmp = Vec{a[0], a[1]}
	m.tmp.d()[in.imm>>4&3] = x
	for i := range 4 {
		if in.imm>>i&1 != 0 {
			m.tmp.d()[i] = 0
		}
	}
	m.vecPut(in)
}

// extend widens elements of size bytes.
func extend(size uint8, signed bool) kernel {
	return func(d, a, _ *Vec, in *inst) {
		for i := range in.lanes() {
			x := a.elem(i, size)
			if signed {
				x = uint64(signExtend(x, size))
			}
			d.setElem(i, in.esz, x)
		}
	}
}
