package a64

// get reads lane i of 1<<size bytes.
func (v *Vec) get(i int, size uint8) uint64 {
	at := uint(i) << (3 + size&3)
	return v[at>>6&1] >> (at & 63) & sizeMask(size)
}

// put writes a lane that is zero.
func (v *Vec) put(i int, size uint8, x uint64) {
	at := uint(i) << (3 + size&3)
	v[at>>6&1] |= x & sizeMask(size) << (at & 63)
}

// set writes a lane.
func (v *Vec) set(i int, size uint8, x uint64) {
	at := uint(i) << (3 + size&3)
	p := &v[at>>6&1]
	*p = *p&^(sizeMask(size)<<(at&63)) | x&sizeMask(size)<<(at&63)
}

// replicate has x in all lanes of 8 or, with q, 16 bytes.
func replicate(x uint64, size uint8, q bool) Vec {
	x &= sizeMask(size)
	for n := uint(8) << size; n < 64; n *= 2 {
		x |= x << n
	}
	if q {
		return Vec{x, x}
	}
	return Vec{x}
}

// signed is a lane as a signed number.
func signed(x uint64, size uint8) int64 {
	drop := (64 - 8<<size) & 63
	return int64(x<<drop) >> drop
}

// lanes is how many there are of 1<<size bytes.
func lanes(size uint8, q bool) uint8 {
	if q {
		return 16 >> size
	}
	return 8 >> size
}

// eachPair computes lane by lane.
func eachPair(m *Machine, in *inst) {
	a, b, old := &m.vec.V[in.rn&31], &m.vec.V[in.rm&31], &m.vec.V[in.rd&31]
	var d Vec
	for i := range int(in.count) {
		d.put(i, in.size, in.lane(m, in.size, old.get(i, in.size), a.get(i, in.size), b.get(i, in.size)))
	}
	*old = d
}

// eachOne computes lane by lane from one register; the other operand is in imm.
func eachOne(m *Machine, in *inst) {
	a, old := &m.vec.V[in.rn&31], &m.vec.V[in.rd&31]
	var d Vec
	for i := range int(in.count) {
		d.put(i, in.size, in.lane(m, in.size, old.get(i, in.size), a.get(i, in.size), in.imm))
	}
	*old = d
}

// byElement computes lane by lane with one lane, shift, of the last register.
func byElement(m *Machine, in *inst) {
	a, old := &m.vec.V[in.rn&31], &m.vec.V[in.rd&31]
	b := m.vec.V[in.rm&31].get(int(in.shift), in.size)
	var d Vec
	for i := range int(in.count) {
		d.put(i, in.size, in.lane(m, in.size, old.get(i, in.size), a.get(i, in.size), b))
	}
	*old = d
}

// pairwise computes from neighbours, of the first register and then of the
// second.
func pairwise(m *Machine, in *inst) {
	a, b := &m.vec.V[in.rn&31], &m.vec.V[in.rm&31]
	var d Vec
	half := int(in.count) / 2
	for i := range half {
		d.put(i, in.size, in.lane(m, in.size, 0, a.get(2*i, in.size), a.get(2*i+1, in.size)))
		d.put(half+i, in.size, in.lane(m, in.size, 0, b.get(2*i, in.size), b.get(2*i+1, in.size)))
	}
	m.vec.V[in.rd&31] = d
}

// pairScalar computes from the two lanes of one register.
func pairScalar(m *Machine, in *inst) {
	a := &m.vec.V[in.rn&31]
	m.vec.V[in.rd&31] = Vec{in.lane(m, in.size, 0, a.get(0, in.size), a.get(1, in.size)) & sizeMask(in.size)}
}

// widen computes lanes of twice the size, from the lower or, with q, upper halves. By
// mode operands are extended as signed numbers; by kind the first is wide already,
// by op the second is one lane.
func widen(m *Machine, in *inst) {
	a, b, old := &m.vec.V[in.rn&31], &m.vec.V[in.rm&31], &m.vec.V[in.rd&31]
	n := int(in.count)
	from := 0
	if in.q {
		from = n
	}
	var d Vec
	for i := range n {
		var x uint64
		if in.kind == 1 {
			x = a.get(i, in.size+1)
		} else {
			x = in.extended(a.get(from+i, in.size))
		}
		j := from + i
		if in.op == 1 {
			j = int(in.shift)
		}
		y := in.extended(b.get(j, in.size))
		d.put(i, in.size+1, in.lane(m, in.size+1, old.get(i, in.size+1), x, y))
	}
	*old = d
}

// extended is a lane as a number of twice the size.
func (in *inst) extended(x uint64) uint64 {
	if in.mode == 1 {
		return uint64(signed(x, in.size))
	}
	return x
}

// widenOne is widen of one register, with the other operand in imm.
func widenOne(m *Machine, in *inst) {
	a, old := &m.vec.V[in.rn&31], &m.vec.V[in.rd&31]
	n := int(in.count)
	from := 0
	if in.q {
		from = n
	}
	var d Vec
	for i := range n {
		d.put(i, in.size+1, in.lane(m, in.size+1, 0, in.extended(a.get(from+i, in.size)), in.imm))
	}
	*old = d
}

// narrow computes from lanes of twice the size, into the lower half or, with q, the
// upper one, which leaves the lower as it is.
func narrow(m *Machine, in *inst) {
	a, b, old := &m.vec.V[in.rn&31], &m.vec.V[in.rm&31], &m.vec.V[in.rd&31]
	var d Vec
	for i := range int(in.count) {
		y := in.imm
		if in.op == 1 {
			y = b.get(i, in.size+1)
		}
		d.put(i, in.size, in.lane(m, in.size, 0, a.get(i, in.size+1), y))
	}
	if in.q {
		old[1] = d[0]
	} else {
		*old = d
	}
}

// pairLong computes from pairs of lanes one of twice the size.
func pairLong(m *Machine, in *inst) {
	a, old := &m.vec.V[in.rn&31], &m.vec.V[in.rd&31]
	var d Vec
	for i := range int(in.count) {
		d.put(i, in.size+1, in.lane(m, in.size+1, old.get(i, in.size+1), in.extended(a.get(2*i, in.size)), in.extended(a.get(2*i+1, in.size))))
	}
	*old = d
}

// across computes one lane from all.
func across(m *Machine, in *inst) {
	a := &m.vec.V[in.rn&31]
	x := a.get(0, in.size)
	for i := 1; i < int(in.count); i++ {
		x = in.lane(m, in.size, 0, x, a.get(i, in.size)) & sizeMask(in.size)
	}
	m.vec.V[in.rd&31] = Vec{x}
}

// acrossLong adds all lanes up in one of twice the size.
func acrossLong(m *Machine, in *inst) {
	a := &m.vec.V[in.rn&31]
	x := uint64(0)
	for i := range int(in.count) {
		x += in.extended(a.get(i, in.size))
	}
	m.vec.V[in.rd&31] = Vec{x & sizeMask(in.size+1)}
}
