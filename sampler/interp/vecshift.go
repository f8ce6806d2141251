package interp

var vecShifts = []vecOp{
	{"66 0f d1", "lve", "w v mem=16 wh", vecRVM, shiftBy(shrLogical)}, {"66 0f d2", "lve0", "d v mem=16 nb wh", vecRVM, shiftBy(shrLogical)},
	{"66 0f d3", "lve1", "q v mem=16 nb wh", vecRVM, shiftBy(shrLogical)}, {"66 0f e1", "lve", "w v mem=16 wh", vecRVM, shiftBy(shrSigned)},
	{"66 0f e2", "lv", "d v mem=16 wh", vecRVM, shiftBy(shrSigned)}, {"66 0f e2", "e", "x v mem=16 nb wh", vecRVM, shiftBy(shrSigned)},
	{"66 0f f1", "lve", "w v mem=16 wh", vecRVM, shiftBy(shlLogical)}, {"66 0f f2", "lve0", "d v mem=16 nb wh", vecRVM, shiftBy(shlLogical)},
	{"66 0f f3", "lve1", "q v mem=16 nb wh", vecRVM, shiftBy(shlLogical)},
	{"66 0f 71/2", "lv", "w vd imm r", vecRM, shiftImmediate(shrLogical)}, {"66 0f 71/2", "e", "w vd imm", vecRM, shiftImmediate(shrLogical)},
	{"66 0f 71/4", "lv", "w vd imm r", vecRM, shiftImmediate(shrSigned)}, {"66 0f 71/4", "e", "w vd imm", vecRM, shiftImmediate(shrSigned)},
	{"66 0f 71/6", "lv", "w vd imm r", vecRM, shiftImmediate(shlLogical)}, {"66 0f 71/6", "e", "w vd imm", vecRM, shiftImmediate(shlLogical)},
	{"66 0f 72/2", "lv", "d vd imm r", vecRM, shiftImmediate(shrLogical)}, {"66 0f 72/2", "e0", "d vd imm", vecRM, shiftImmediate(shrLogical)},
	{"66 0f 72/4", "lv", "d vd imm r", vecRM, shiftImmediate(shrSigned)}, {"66 0f 72/4", "e", "x vd imm", vecRM, shiftImmediate(shrSigned)},
	{"66 0f 72/6", "lv", "d vd imm r", vecRM, shiftImmediate(shlLogical)}, {"66 0f 72/6", "e0", "d vd imm", vecRM, shiftImmediate(shlLogical)},
	{"66 0f 72/0", "e", "x vd imm", vecRM, shiftImmediate(rotRight)}, {"66 0f 72/1", "e", "x vd imm", vecRM, shiftImmediate(rotLeft)},
	{"66 0f 73/2", "lv", "q vd imm r", vecRM, shiftImmediate(shrLogical)}, {"66 0f 73/2", "e1", "q vd imm", vecRM, shiftImmediate(shrLogical)},
	{"66 0f 73/6", "lv", "q vd imm r", vecRM, shiftImmediate(shlLogical)}, {"66 0f 73/6", "e1", "q vd imm", vecRM, shiftImmediate(shlLogical)},
	{"66 0f 73/3", "lv", "b vd imm r", vecRM, psrldq}, {"66 0f 73/3", "e", "b vd imm nk", vecRM, psrldq},
	{"66 0f 73/7", "lv", "b vd imm r", vecRM, pslldq}, {"66 0f 73/7", "e", "b vd imm nk", vecRM, pslldq},
	{"66 0f38 45", "ve", "x v", vecRVM, shiftEach(shrLogical)}, {"66 0f38 46", "v0", "d v", vecRVM, shiftEach(shrSigned)}, {"66 0f38 46", "e", "x v", vecRVM, shiftEach(shrSigned)},
	{"66 0f38 47", "ve", "x v", vecRVM, shiftEach(shlLogical)},
	{"66 0f38 10", "e1", "w v", vecRVM, shiftEach(shrLogical)}, {"66 0f38 11", "e1", "w v", vecRVM, shiftEach(shrSigned)},
	{"66 0f38 12", "e1", "w v", vecRVM, shiftEach(shlLogical)},
	{"66 0f38 14", "e", "x v", vecRVM, shiftEach(rotRight)}, {"66 0f38 15", "e", "x v", vecRVM, shiftEach(rotLeft)},
	{"66 0f3a 70", "e1", "w v imm", vecRVM, funnel(shldElem, false)}, {"66 0f3a 71", "e", "x v imm", vecRVM, funnel(shldElem, false)},
	{"66 0f3a 72", "e1", "w v imm", vecRVM, funnel(shrdElem, false)}, {"66 0f3a 73", "e", "x v imm", vecRVM, funnel(shrdElem, false)},
	{"66 0f38 70", "e1", "w v", vecRVM, funnel(shldElem, true)}, {"66 0f38 71", "e", "x v", vecRVM, funnel(shldElem, true)},
	{"66 0f38 72", "e1", "w v", vecRVM, funnel(shrdElem, true)}, {"66 0f38 73", "e", "x v", vecRVM, funnel(shrdElem, true)},
}

// Shifts: f gets an element of size bits and a count.

func shrLogical(v, n uint64, size uint) uint64 { return v >> n }

func shlLogical(v, n uint64, size uint) uint64 {
	if n >= uint64(size) {
		return 0
	}
	return v << n
}

func shrSigned(v, n uint64, size uint) uint64 {
	s := int64(v<<(64-size)) >> (64 - size)
	return uint64(s >> min(n, 63))
}

func rotLeft(v, n uint64, size uint) uint64 {
	n %= uint64(size)
	return v<<n | v>>(uint64(size)-n)
}

func rotRight(v, n uint64, size uint) uint64 { return rotLeft(v, uint64(size)-n%uint64(size), size) }

type shifter func(v, n uint64, size uint) uint64

func shiftAll(d, a *Vec, in *inst, n uint64, f shifter) {
	for i := range in.lanes() {
		d.setElem(i, in.esz, f(a.elem(i, in.esz), n, 8*uint(in.esz)))
	}
}

func shiftBy(f shifter) kernel {
	return func(d, a, b *Vec, in *inst) { shiftAll(d, a, in, b[0], f) }
}

func shiftImmediate(f shifter) kernel {
	return func(d, a, _ *Vec, in *inst) { shiftAll(d, a, in, in.imm, f) }
}

func shiftEach(f shifter) kernel {
	return func(d, a, b *Vec, in *inst) {
		for i := range in.lanes() {
			d.setElem(i, in.esz, f(a.elem(i, in.esz), b.elem(i, in.esz), 8*uint(in.esz)))
		}
	}
}

func shldElem(hi, lo, n uint64, size uint) uint64 {
	n %= uint64(size)
	return hi<<n | lo>>(uint64(size)-n)
}

func shrdElem(lo, hi, n uint64, size uint) uint64 {
	n %= uint64(size)
	return lo>>n | hi<<(uint64(size)-n)
}

// funnel is vpshld and vpshrd; with counts from a register the destination is
// the first input.
func funnel(f func(x, y, n uint64, size uint) uint64, counts bool) kernel {
	return func(d, a, b *Vec, in *inst) {
		for i := range in.lanes() {
			x, y, n := a.elem(i, in.esz), b.elem(i, in.esz), in.imm
			if counts {
				x, y, n = d.elem(i, in.esz), x, y
			}
			d.setElem(i, in.esz, f(x, y, n, 8*uint(in.esz)))
		}
	}
}

func psrldq(d, a, _ *Vec, in *inst) {
	n := int(min(in.imm, 16))
	x, z := *a, d.b()
	for l := 0; l < int(in.n); l += 16 {
		for i := range 16 {
			z[l+i] = 0
			if i+n < 16 {
				z[l+i] = x.b()[l+i+n]
			}
		}
	}
}

func pslldq(d, a, _ *Vec, in *inst) {
	n := int(min(in.imm, 16))
	x, z := *a, d.b()
	for l := 0; l < int(in.n); l += 16 {
		for i := range 16 {
			z[l+i] = 0
			if i >= n {
				z[l+i] = x.b()[l+i-n]
			}
		}
	}
}
