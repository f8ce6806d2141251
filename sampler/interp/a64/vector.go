package a64

// vector decodes "data processing -- scalar floating-point and Advanced SIMD"
// (Arm ARM, C4.1.96). Arithmetic of 16-bit floating point, estimates and complex
// numbers are not supported.
func (in *inst) vector(w word32) handler {
	in.q = w.is(30)
	switch {
	case w.bits(31, 24) == 0b00011110, w.bits(31, 24) == 0b10011110:
		return in.float(w)
	case w.bits(31, 24) == 0b00011111:
		return in.floatMultiplyAdd(w)
	case w.bits(31, 24) == 0b11001110:
		return in.threeRegisters(w)
	case w.is(31):
		return nil
	case w.bits(28, 24) == 0b01110:
		return in.vectorMain(w)
	case w.bits(28, 24) == 0b01111:
		switch {
		case !w.is(10):
			return in.indexed(w, false)
		case w.is(23):
			return nil
		case w.bits(22, 19) == 0:
			return in.modifiedImmediate(w)
		}
		return in.shiftImmediate(w, false)
	case w.is(30) && w.bits(28, 24) == 0b11110:
		switch {
		case !w.is(21) && w.bits(15, 10) == 1 && !w.is(29) && w.bits(23, 22) == 0:
			return in.duplicate(w, true)
		case !w.is(21) && w.bits(11, 10) == 0 && !w.is(15) && !w.is(29):
			return in.hash3(w)
		case !w.is(21):
			return nil
		case w.is(10):
			return in.threeSame(w, true)
		case !w.is(11):
			return in.threeDifferent(w, true)
		case w.bits(20, 17) == 0:
			return in.twoMisc(w, true)
		case w.bits(20, 17) == 8:
			return in.pairScalarOp(w)
		case w.bits(20, 17) == 4 && !w.is(29):
			return in.hash2(w)
		}
	case w.is(30) && w.bits(28, 24) == 0b11111:
		switch {
		case !w.is(10):
			return in.indexed(w, true)
		case w.is(23) || w.bits(22, 19) == 0:
			return nil
		}
		return in.shiftImmediate(w, true)
	}
	return nil
}

func (in *inst) vectorMain(w word32) handler {
	if w.is(21) {
		switch {
		case w.is(10):
			return in.threeSame(w, false)
		case !w.is(11):
			return in.threeDifferent(w, false)
		case w.bits(20, 17) == 0:
			return in.twoMisc(w, false)
		case w.bits(20, 17) == 8:
			return in.acrossLanes(w)
		case w.bits(20, 17) == 4 && !w.is(29) && in.q:
			return in.aes(w)
		}
		return nil
	}
	zero := w.bits(23, 22) == 0
	switch {
	case w.is(15):
		if w.is(10) && w.bits(14, 11) == 2 && w.bits(23, 22) == 2 {
			in.mode, in.size, in.count = uint8(1-w.bit(29)), 2, lanes(2, in.q)
			return dotProduct
		}
	case w.is(29) && !w.is(10) && zero:
		in.shift = uint8(w.bits(14, 11))
		if in.shift < 8 || in.q {
			return extractVector
		}
	case w.is(10) && zero:
		return in.copyLanes(w)
	case w.is(29):
	case w.bits(11, 10) == 0 && zero:
		in.count, in.op = uint8(w.bits(14, 13))+1, uint8(w.bit(12))
		return tableLookup
	case w.bits(11, 10) == 2:
		in.size, in.op = uint8(w.bits(23, 22)), uint8(w.bits(14, 12))
		if (in.size == 3 && !in.q) || in.op&3 == 0 {
			return nil
		}
		return permute
	}
	return nil
}

// elementOf is the lane that imm5 names: its size is told by the lowest one.
func elementOf(imm5 uint32) (size, index uint8, ok bool) {
	for size := range uint8(4) {
		if imm5>>size&1 == 1 {
			return size, uint8(imm5 >> (size + 1)), true
		}
	}
	return 0, 0, false
}

func (in *inst) duplicate(w word32, scalar bool) handler {
	var ok bool
	in.size, in.shift, ok = elementOf(w.bits(20, 16))
	switch {
	case !ok || in.size == 3 && !in.q:
		return nil
	case scalar:
		in.count = 1
	default:
		in.count = lanes(in.size, in.q)
	}
	return duplicateLane
}

// copyLanes decodes dup, ins, smov and umov.
func (in *inst) copyLanes(w word32) handler {
	var ok bool
	in.size, in.shift, ok = elementOf(w.bits(20, 16))
	if !ok {
		return nil
	}
	imm4 := w.bits(14, 11)
	if w.is(29) {
		in.op = uint8(imm4 >> in.size)
		if in.q {
			return insertLane
		}
		return nil
	}
	switch imm4 {
	case 0:
		return in.duplicate(w, false)
	case 1:
		in.rn = source(in.rn)
		if in.size == 3 && !in.q {
			return nil
		}
		return duplicateRegister
	case 3:
		in.rn = source(in.rn)
		if in.q {
			return insertRegister
		}
	case 5, 7:
		in.rd = target(in.rd)
		in.mask = ^uint64(0)
		in.wide = imm4 == 5
		if imm4 == 5 {
			if in.size == 3 || in.size == 2 && !in.q {
				return nil
			}
			if !in.q {
				in.mask = 1<<32 - 1
			}
		} else if (in.size == 3) != in.q {
			return nil
		}
		return moveLane
	}
	return nil
}

func duplicateLane(m *Machine, in *inst) {
	x := m.vec.V[in.rn&31].get(int(in.shift), in.size)
	if in.count == 1 {
		m.vec.V[in.rd&31] = Vec{x}
		return
	}
	m.vec.V[in.rd&31] = replicate(x, in.size, in.q)
}

func duplicateRegister(m *Machine, in *inst) {
	m.vec.V[in.rd&31] = replicate(m.r[in.rn&63], in.size, in.q)
}

func insertLane(m *Machine, in *inst) {
	m.vec.V[in.rd&31].set(int(in.shift), in.size, m.vec.V[in.rn&31].get(int(in.op), in.size))
}

func insertRegister(m *Machine, in *inst) {
	m.vec.V[in.rd&31].set(int(in.shift), in.size, m.r[in.rn&63])
}

// moveLane is umov and smov.
func moveLane(m *Machine, in *inst) {
	x := m.vec.V[in.rn&31].get(int(in.shift), in.size)
	if in.wide {
		x = uint64(signed(x, in.size))
	}
	m.r[in.rd&63] = x & in.mask
}

func extractVector(m *Machine, in *inst) {
	a, b := &m.vec.V[in.rn&31], &m.vec.V[in.rm&31]
	n := uint(in.shift) * 8
	var d Vec
	if !in.q {
		d[0] = a[0]>>n | b[0]<<(64-n)
	} else {
		all := [4]uint64{a[0], a[1], b[0], b[1]}
		i := n >> 6
		n &= 63
		d[0] = all[i]>>n | all[i+1]<<(64-n)
		d[1] = all[i+1]>>n | all[i+2]<<(64-n)
	}
	m.vec.V[in.rd&31] = d
}

// tableLookup is tbl and, by op, tbx.
func tableLookup(m *Machine, in *inst) {
	var table [64]byte
	for i := range int(in.count) {
		b := m.vec.V[(int(in.rn)+i)&31].bytes()
		copy(table[16*i:], b[:])
	}
	index, old := m.vec.V[in.rm&31], m.vec.V[in.rd&31]
	var d Vec
	for i := range int(lanes(0, in.q)) {
		at := index.get(i, 0)
		switch {
		case at < 16*uint64(in.count):
			d.put(i, 0, uint64(table[at]))
		case in.op == 1:
			d.put(i, 0, old.get(i, 0))
		}
	}
	m.vec.V[in.rd&31] = d
}

// permute is uzp1, trn1, zip1, uzp2, trn2 and zip2 by op, from 1 and from 5.
func permute(m *Machine, in *inst) {
	a, b := &m.vec.V[in.rn&31], &m.vec.V[in.rm&31]
	n := int(lanes(in.size, in.q))
	part := int(in.op >> 2)
	from := func(i int) uint64 { // of both registers
		if i < n {
			return a.get(i, in.size)
		}
		return b.get(i-n, in.size)
	}
	var d Vec
	for i := range n {
		at := 0
		switch in.op & 3 {
		case 1:
			at = 2*i + part
		case 2:
			at = i&^1 + part + i&1*n
		case 3:
			at = i/2 + part*n/2 + i&1*n
		}
		d.put(i, in.size, from(at))
	}
	m.vec.V[in.rd&31] = d
}

// dotProduct is udot and sdot: by op with one group of four bytes, shift.
func dotProduct(m *Machine, in *inst) {
	a, b := m.vec.V[in.rn&31], m.vec.V[in.rm&31]
	d := &m.vec.V[in.rd&31]
	for i := range int(in.count) {
		j := i
		if in.op == 1 {
			j = int(in.shift)
		}
		sum := d.get(i, 2)
		for k := range 4 {
			x, y := a.get(4*i+k, 0), b.get(4*j+k, 0)
			if in.mode == 1 {
				x, y = uint64(signed(x, 0)), uint64(signed(y, 0))
			}
			sum += x * y
		}
		d.set(i, 2, sum)
	}
	if !in.q {
		d[1] = 0
	}
}

// modifiedImmediate decodes movi, mvni, orr, bic and fmov of a vector.
func (in *inst) modifiedImmediate(w word32) handler {
	imm8 := uint64(w.bits(18, 16)<<5 | w.bits(9, 5))
	cmode, op := w.bits(15, 12), w.is(29)
	if w.is(11) {
		return nil
	}
	var v uint64
	invert := op
	switch cmode >> 1 {
	case 0, 1, 2, 3:
		v = replicate(imm8<<(8*(cmode>>1)), 2, false)[0]
	case 4, 5:
		v = replicate(imm8<<(8*(cmode>>1&1)), 1, false)[0]
	case 6:
		v = imm8<<8 | 0xff
		if cmode&1 == 1 {
			v = imm8<<16 | 0xffff
		}
		v = replicate(v, 2, false)[0]
	default:
		invert = false
		switch {
		case cmode&1 == 0 && !op:
			v = replicate(imm8, 0, false)[0]
		case cmode&1 == 0:
			for i := range 8 {
				v |= imm8 >> i & 1 * 0xff << (8 * i)
			}
		case !op:
			v = replicate(expandFloat(imm8, 2), 2, false)[0]
		case in.q:
			v = expandFloat(imm8, 3)
		default:
			return nil
		}
	}
	in.imm = v
	if invert {
		in.imm = ^v
	}
	if cmode&1 == 1 && cmode < 12 {
		if op {
			return clearImmediate
		}
		return orImmediate
	}
	return fillImmediate
}

func fillImmediate(m *Machine, in *inst) { m.setLogic(in, in.imm, in.imm) }

func orImmediate(m *Machine, in *inst) {
	d := &m.vec.V[in.rd&31]
	m.setLogic(in, d[0]|in.imm, d[1]|in.imm)
}

func clearImmediate(m *Machine, in *inst) { // imm is inverted
	d := &m.vec.V[in.rd&31]
	m.setLogic(in, d[0]&in.imm, d[1]&in.imm)
}

func (m *Machine) setLogic(in *inst, low, high uint64) {
	if !in.q {
		high = 0
	}
	m.vec.V[in.rd&31] = Vec{low, high}
}

// logicVector is and, bic, orr, orn, eor, bsl, bit and bif by op.
func logicVector(m *Machine, in *inst) {
	a, b, d := &m.vec.V[in.rn&31], &m.vec.V[in.rm&31], &m.vec.V[in.rd&31]
	var r Vec
	for i := range r {
		x, y, z := a[i], b[i], d[i]
		switch in.op {
		case 0:
			r[i] = x & y
		case 1:
			r[i] = x &^ y
		case 2:
			r[i] = x | y
		case 3:
			r[i] = x | ^y
		case 4:
			r[i] = x ^ y
		case 5:
			r[i] = y ^ (x^y)&z
		case 6:
			r[i] = z ^ (z^x)&y
		default:
			r[i] = z ^ (z^x)&^y
		}
	}
	m.setLogic(in, r[0], r[1])
}
