package interp

import (
	"encoding/binary"
	"math/bits"
)

// X87 is the state of the x87 but for its control word and for where its last instruction
// and operand were, which are not kept.
type X87 struct {
	R     [8]F80 // by number, not from the top of the stack; MMX registers are their M
	FSW   uint16
	Valid uint8 // bit i: R[i] is not empty
}

// fpu decodes the x87's opcodes d8 to df.
func (d *decoder) fpu(op byte) {
	in := d.in
	b := d.peek()
	g := b >> 3 & 7
	d.modRM(1)
	in.op, in.reg, in.rm = op&7, g, in.rm&7
	if in.mem {
		in.fn = fpuMem[in.op][g]
	} else {
		in.fn = fpuReg[in.op][g]
		if one, ok := fpuOne[uint16(op)<<8|uint16(b)]; ok {
			in.fn = one
		}
	}
	if in.fn == nil && (in.mem && x87Operand[in.op][g] != 0 || op == 0xd9 && x87Natives[b]) {
		in.fn = x87Native
	}
	if in.mem && d.opsize && x87Operand[in.op][g] == 0 && g != 5 && g != 7 {
		in.fn = nil // 16-bit environments
	}
	if in.fn == nil {
		return
	}
	in.flags |= usesVector
	if !x87Control[uint16(op)<<8|uint16(b)] && (!in.mem || x87Operand[in.op][g] != 0) {
		in.flags |= usesX87
		in.vecForm = new(vecForm)
		in.nat = d.x87Native(op, b)
	}
}

// x87Control are the register forms that do the same whichever exceptions are masked.
var x87Control = map[uint16]bool{0xd9d0: true, 0xdbe2: true, 0xdbe3: true, 0xdfe0: true}

const x87Masks = 0x3f // in the control word

type fpuTable [8][8]func(*Machine, *inst)

var (
	fpuMem = fpuTable{
		{arithMem, arithMem, arithMem, arithMem, arithMem, arithMem, arithMem, arithMem},
		{fldMem, nil, fstMem, fstMem, fldenv, fldcw, fnstenv, fnstcw},
		{arithMem, arithMem, arithMem, arithMem, arithMem, arithMem, arithMem, arithMem},
		{fldMem, fistMem, fistMem, fistMem, nil, fldExt, nil, fstpExt},
		{arithMem, arithMem, arithMem, arithMem, arithMem, arithMem, arithMem, arithMem},
		{fldMem, fistMem, fstMem, fstMem, frstor, nil, fnsave, fnstsw},
		{arithMem, arithMem, arithMem, arithMem, arithMem, arithMem, arithMem, arithMem},
		{fldMem, fistMem, fistMem, fistMem, nil, fldMem, nil, fistMem},
	}
	fpuReg = fpuTable{
		{arithST, arithST, fcom, fcom, arithST, arithST, arithST, arithST},
		{fldST, fxch, nil, nil, nil, nil, nil, nil},
		{fcmov, fcmov, fcmov, fcmov, nil, nil, nil, nil},
		{fcmov, fcmov, fcmov, fcmov, nil, fcomi, fcomi, nil},
		{arithST, arithST, nil, nil, arithST, arithST, arithST, arithST},
		{ffree, nil, fstST, fstST, fcom, fcom, nil, nil},
		{arithST, arithST, nil, nil, arithST, arithST, arithST, arithST},
		{ffreep, nil, nil, nil, nil, fcomi, fcomi, nil},
	}
	fpuOne = map[uint16]func(*Machine, *inst){
		0xd9d0: fnop, 0xd9e0: fchs, 0xd9e1: fabs, 0xd9e4: ftst, 0xd9e5: fxam,
		0xd9e8: fconst, 0xd9e9: fconst, 0xd9ea: fconst, 0xd9eb: fconst, 0xd9ec: fconst, 0xd9ed: fconst, 0xd9ee: fconst,
		0xd9f4: fxtract, 0xd9f5: fprem, 0xd9f6: fturn, 0xd9f7: fturn, 0xd9f8: fprem,
		0xd9fa: fsqrtST, 0xd9fc: frndint, 0xd9fd: fscale,
		0xdbe2: fnclex, 0xdbe3: fninit, 0xdae9: fcom, 0xded9: fcom, 0xdfe0: fnstsw,
	}
)

// fpuState is the x87's state, of which C1 is cleared: it says how this instruction
// rounds. With an exception pending the burst ends; with one that is not masked
// x87Native runs, where it can.
func (m *Machine) fpuState() *X87 {
	m.noPending()
	if m.vec.FCW&x87Masks != x87Masks {
		panic(Halt{Cause: Unsupported, Err: errPending})
	}
	return &m.vec.X87
}

func (x *X87) at(i uint8) uint8 { return (uint8(x.FSW>>11) + i) & 7 }

// get is ST(i); ok is false if that is empty, which is noted.
func (x *X87) get(i uint8) (v f80, ok bool) {
	r := x.at(i)
	if x.Valid>>r&1 == 0 {
		x.FSW = x.FSW&^x87C1 | x87Invalid | x87Stack
		return indefinite.open(), false
	}
	return x.R[r].open(), true
}

func (x *X87) set(i uint8, v F80) {
	r := x.at(i)
	x.R[r] = v
	x.Valid |= 1 << r
}

// note adds exceptions to the status and says by C1 how was rounded.
func (x *X87) note(flags uint16) { x.FSW = x.FSW&^x87C1 | flags }

func (x *X87) turn(by uint8) {
	x.FSW = x.FSW&^(7<<11) | uint16(x.at(by))<<11
}

func (x *X87) push(v F80, flags uint16) {
	x.turn(7)
	if x.Valid>>x.at(0)&1 != 0 {
		v, flags = indefinite, x87Invalid|x87Stack|x87C1
	}
	x.note(flags)
	x.set(0, v)
}

func (x *X87) pop() {
	x.Valid &^= 1 << x.at(0)
	x.turn(1)
}

// number is a memory operand of the opcode's type: 32- and 64-bit numbers, 32-
// and 16-bit integers.
func (m *Machine) number(in *inst) (F80, uint16) {
	a := m.ea(in)
	switch in.op >> 1 {
	case 0:
		return f32Format.from(m.load(a, 4))
	case 1:
		return f80FromInt(int64(int32(m.load(a, 4)))), 0
	case 2:
		return f64Format.from(m.load(a, 8))
	}
	return f80FromInt(int64(int16(m.load(a, 2)))), 0
}

// arith does the operation of the opcode's reg field: add, mul, (com, comp,) sub,
// subr, div, divr.
func arith(op uint8, a, b f80, r f80Rounding) (F80, uint16) {
	if op&1 != 0 && op > 4 { // the reversed ones
		a, b = b, a
	}
	switch op {
	case 0:
		return f80Add(a, b, r)
	case 1:
		return f80Mul(a, b, r)
	case 4, 5:
		if !b.isNaN() {
			b.neg = !b.neg
			b.raw.SE ^= 0x8000
		}
		return f80Add(a, b, r)
	}
	return f80Div(a, b, r)
}

func arithMem(m *Machine, in *inst) {
	x := m.fpuState()
	v, denormal := m.number(in)
	a, ok := x.get(0)
	b := v.open()
	if in.reg == 2 || in.reg == 3 {
		if b.denormal = denormal != 0; !ok {
			x.FSW |= x87C0 | x87C2 | x87C3
		} else {
			x.order(a, b, true)
		}
		if in.reg == 3 {
			x.pop()
		}
		return
	}
	if !ok {
		x.set(0, indefinite)
		return
	}
	b.denormal = denormal != 0
	r, flags := arith(in.reg, a, b, extended(m.vec.FCW, 0))
	x.note(flags)
	x.set(0, r)
}

// arithST is between ST(0) and ST(i), to ST(0) with d8, to ST(i) with dc and de, which
// pops and, as dc, has the reversed ones changed about.
func arithST(m *Machine, in *inst) {
	x := m.fpuState()
	a, ok := x.get(0)
	b, also := x.get(in.rm)
	to := uint8(0)
	op := in.reg
	if in.op != 0 {
		a, b, to = b, a, in.rm
		if op >= 4 {
			op ^= 1
		}
	}
	v, flags := indefinite, x.FSW&x87C1
	if ok && also {
		v, flags = arith(op, a, b, extended(m.vec.FCW, 0))
	}
	x.note(flags)
	x.set(to, v)
	if in.op == 6 {
		x.pop()
	}
}

// order compares, into C0, C2 and C3. A quiet NaN is invalid to an ordered comparison.
func (x *X87) order(a, b f80, ordered bool) {
	x.FSW &^= x87C0 | x87C1 | x87C2 | x87C3
	c, flags := compareF80(a, b, ordered)
	x.FSW |= flags
	switch c {
	case -1:
		x.FSW |= x87C0
	case 0:
		x.FSW |= x87C3
	case 2:
		x.FSW |= x87C0 | x87C2 | x87C3
	}
}

// compareF80 is -1, 0 or 1, and 2 for unordered.
func compareF80(a, b f80, ordered bool) (c int, flags uint16) {
	switch {
	case a.kind == f80Invalid || b.kind == f80Invalid || a.kind == f80Signal || b.kind == f80Signal:
		return 2, x87Invalid
	case a.isNaN() || b.isNaN():
		if ordered {
			flags = x87Invalid
		}
		return 2, flags
	}
	if a.denormal || b.denormal {
		flags = x87Denormal
	}
	size := func(x f80) (exp int, sig uint64) {
		switch x.kind {
		case f80Zero:
			return -1 << 20, 0
		case f80Inf:
			return 1 << 20, 0
		}
		return x.exp, x.sig
	}
	if a.kind == f80Zero && b.kind == f80Zero {
		return 0, flags
	}
	if a.neg != b.neg {
		c = 1
	} else {
		ae, as := size(a)
		be, bs := size(b)
		switch {
		case ae == be && as == bs:
			return 0, flags
		case ae > be || ae == be && as > bs:
			c = 1
		default:
			c = -1
		}
	}
	if a.neg {
		c = -c
	}
	return c, flags
}

// fcom is fcom, fcomp, fcompp and the unordered ones.
func fcom(m *Machine, in *inst) {
	x := m.fpuState()
	a, ok := x.get(0)
	b, also := x.get(in.rm)
	if ok && also {
		x.order(a, b, in.op == 0 || in.op == 6)
	} else {
		x.FSW |= x87C0 | x87C2 | x87C3
	}
	pops := int(in.reg & 1)
	if in.op == 2 || in.op == 6 {
		pops = 2
	}
	for range pops {
		x.pop()
	}
}

// fcomi is fcomi and fucomi, which say it in the flags, and with df pop.
func fcomi(m *Machine, in *inst) {
	x := m.fpuState()
	a, ok := x.get(0)
	b, also := x.get(in.rm)
	c := 2
	if ok && also {
		var flags uint16
		c, flags = compareF80(a, b, in.reg == 6)
		x.FSW |= flags // C1 stays, as on AMD's CPUs
	}
	m.setFlags([...]uint64{FlagCF, FlagZF, 0, FlagCF | FlagZF | FlagPF}[c+1])
	if in.op == 7 {
		x.pop()
	}
}

func ftst(m *Machine, _ *inst) {
	x := m.fpuState()
	if a, ok := x.get(0); ok {
		x.order(a, f80{}, true)
	} else {
		x.FSW |= x87C0 | x87C2 | x87C3
	}
}

// fxam: processors differ in what they call a denormal exponent with a normal
// significand.
func fxam(m *Machine, in *inst) {
	x := m.fpuState()
	r := x.at(0)
	v := x.R[r].open()
	if v.denormal && v.raw.M>>63 == 1 && m.nativeOK() {
		x87Native(m, in)
		return
	}
	x.FSW &^= x87C0 | x87C1 | x87C2 | x87C3
	if v.neg {
		x.FSW |= x87C1
	}
	switch {
	case x.Valid>>r&1 == 0:
		x.FSW |= x87C3 | x87C0
	case v.kind == f80Zero:
		x.FSW |= x87C3
	case v.denormal && v.raw.M>>63 == 0:
		x.FSW |= x87C3 | x87C2
	case v.kind == f80Finite:
		x.FSW |= x87C2
	case v.kind == f80Inf:
		x.FSW |= x87C2 | x87C0
	case v.isNaN():
		x.FSW |= x87C0
	}
}

// fldMem loads a number; integers with db and df.
func fldMem(m *Machine, in *inst) {
	x := m.fpuState()
	var v F80
	var flags uint16
	if in.op == 7 && in.reg == 5 {
		v = f80FromInt(int64(m.load(m.ea(in), 8)))
	} else {
		// d9 and dd are of the types of d8 and dc, db and df of da and de.
		v, flags = m.number(in)
	}
	o := v.open()
	if o.kind == f80Signal {
		v, flags = v.quiet(), x87Invalid
	}
	x.push(v, flags)
}

func fldExt(m *Machine, in *inst) {
	x := m.fpuState()
	a := m.ea(in)
	var b [10]byte
	m.log(a, 10, false)
	m.Read(a, b[:])
	x.push(F80{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint16(b[8:])}, 0)
}

func fstpExt(m *Machine, in *inst) {
	a := m.ea(in)
	before := *m.fpuState()
	x := &m.vec.X87
	v, ok := before.get(0)
	var b [10]byte
	binary.LittleEndian.PutUint64(b[:], v.raw.M)
	binary.LittleEndian.PutUint16(b[8:], v.raw.SE)
	m.log(a, 10, true)
	m.Write(a, b[:])
	*x = before
	if ok {
		x.note(0)
	}
	x.pop()
}

// fstMem stores ST(0) as a 32- or 64-bit number.
func fstMem(m *Machine, in *inst) {
	f := f32Format
	if in.op == 5 {
		f = f64Format
	}
	m.fpuStore(in, uint8(f.bits/8), func(v F80) (uint64, uint16) { return f.to(v, m.vec.FCW>>10&3) })
}

// fistMem stores it as an integer.
func fistMem(m *Machine, in *inst) {
	size, mode := uint8(4), m.vec.FCW>>10&3
	switch {
	case in.op == 5, in.reg == 7:
		size = 8
	case in.op == 7:
		size = 2
	}
	if in.reg == 1 { // fisttp
		mode = 3
	}
	m.fpuStore(in, size, func(v F80) (uint64, uint16) {
		i, flags := v.toInt(8*int(size), mode)
		return uint64(i), flags
	})
}

// fpuStore stores what f makes of ST(0), and pops if the opcode's reg field is odd.
func (m *Machine) fpuStore(in *inst, size uint8, f func(F80) (uint64, uint16)) {
	x := *m.fpuState()
	v, ok := x.get(0)
	out, flags := f(v.raw)
	if ok {
		x.note(flags)
	}
	m.store(m.ea(in), size, out)
	if in.reg&1 != 0 {
		x.pop()
	}
	m.vec.X87 = x // not before the store, which may fault
}

func fldST(m *Machine, in *inst) {
	x := m.fpuState()
	v, ok := x.get(in.rm)
	if !ok {
		x.turn(7)
		x.set(0, indefinite)
		return
	}
	x.push(v.raw, 0)
}

func fstST(m *Machine, in *inst) {
	x := m.fpuState()
	v, ok := x.get(0)
	if ok {
		x.note(0)
	}
	x.set(in.rm, v.raw)
	if in.reg&1 != 0 {
		x.pop()
	}
}

func fxch(m *Machine, in *inst) {
	x := m.fpuState()
	a, ok := x.get(0)
	b, also := x.get(in.rm)
	if ok && also {
		x.note(0)
	}
	x.set(0, b.raw)
	x.set(in.rm, a.raw)
}

func fcmov(m *Machine, in *inst) {
	x := m.fpuState()
	v, ok := x.get(in.rm)
	_, also := x.get(0)
	mask := [4]uint64{FlagCF, FlagZF, FlagCF | FlagZF, FlagPF}[in.reg&3]
	take := m.flags&mask != 0
	if in.op == 3 {
		take = !take
	}
	if !ok || !also {
		x.set(0, indefinite)
		return
	}
	if take {
		x.set(0, v.raw)
	}
}

func ffree(m *Machine, in *inst) {
	x := m.fpuState()
	x.note(0)
	x.Valid &^= 1 << x.at(in.rm)
}

// fturn is fdecstp and fincstp.
func fturn(m *Machine, in *inst) {
	x := m.fpuState()
	x.note(0)
	if in.rm == 6 {
		x.turn(7)
	} else {
		x.turn(1)
	}
}

func fnop(m *Machine, _ *inst) { m.noPending() }

func fnclex(m *Machine, _ *inst) { m.vec.X87.FSW &= 0x7f00 }

func fninit(m *Machine, _ *inst) {
	m.vec.FCW, m.vec.X87.FSW, m.vec.X87.Valid = 0x37f, 0, 0
}

func fnstsw(m *Machine, in *inst) {
	sw := uint64(m.vec.X87.FSW)
	if in.mem {
		m.store(m.ea(in), 2, sw)
	} else {
		m.setReg(RAX, 2, sw)
	}
}

// unary replaces ST(0).
func (m *Machine) unary(f func(v f80) (F80, uint16)) {
	x := m.fpuState()
	v, ok := x.get(0)
	if !ok {
		x.set(0, indefinite)
		return
	}
	r, flags := f(v)
	x.note(flags)
	x.set(0, r)
}

func fchs(m *Machine, _ *inst) {
	m.unary(func(v f80) (F80, uint16) { return F80{v.raw.M, v.raw.SE ^ 0x8000}, 0 })
}

func fabs(m *Machine, _ *inst) {
	m.unary(func(v f80) (F80, uint16) { return F80{v.raw.M, v.raw.SE & 0x7fff}, 0 })
}

func fsqrtST(m *Machine, _ *inst) {
	m.unary(func(v f80) (F80, uint16) { return f80Sqrt(v, extended(m.vec.FCW, 0)) })
}

func frndint(m *Machine, _ *inst) {
	m.unary(func(v f80) (F80, uint16) {
		r, flags, ok := special(v, v)
		if ok {
			return r, flags
		}
		if v.kind != f80Finite || v.exp >= 63 {
			return v.raw, flags
		}
		q, up, inexact := extended(m.vec.FCW, 64).cut(v.neg, v.sig, 0, max(v.exp+1, -1))
		if up {
			q++
			flags |= x87C1
		}
		if inexact {
			flags |= x87Inexact
		}
		if q == 0 {
			return signed(v.neg, 0, 0), flags
		}
		n := bits.LeadingZeros64(q)
		return signed(v.neg, uint16(f80Bias+63-n), q<<n), flags
	})
}

// constants are those that fld1 to fldpi load: the significand as rounded to nearest
// and its exponent, and how that rounding went: 1 up, -1 down, 0 exact.
var constants = [...]struct {
	sig uint64
	se  uint16
	way int
}{
	{1 << 63, f80Bias, 0},                 // 1
	{0xd49a784bcd1b8afe, f80Bias + 1, -1}, // log2 10
	{0xb8aa3b295c17f0bc, f80Bias, 1},      // log2 e
	{0xc90fdaa22168c235, f80Bias + 1, 1},  // pi
	{0x9a209a84fbcff799, f80Bias - 2, 1},  // log10 2
	{0xb17217f7d1cf79ac, f80Bias - 1, 1},  // ln 2
	{0, 0, 0},                             // 0
}

func fconst(m *Machine, in *inst) {
	c := constants[in.rm]
	switch mode := m.vec.FCW >> 10 & 3; {
	case c.way > 0 && (mode == 1 || mode == 3):
		c.sig--
	case c.way < 0 && mode == 2:
		c.sig++
	}
	m.fpuState().push(F80{c.sig, c.se}, 0)
}

// fscale multiplies ST(0) by 2 to the power of ST(1), truncated.
func fscale(m *Machine, _ *inst) {
	x := m.fpuState()
	b, also := x.get(1)
	a, ok := x.get(0)
	if !ok || !also {
		x.set(0, indefinite)
		return
	}
	v, flags, done := special(a, b)
	if !done {
		v = a.raw
		switch {
		case b.kind == f80Inf && (b.neg && a.kind == f80Inf || !b.neg && a.kind == f80Zero):
			v, flags = indefinite, x87Invalid
		case b.kind == f80Inf && b.neg:
			v = signed(a.neg, 0, 0)
		case b.kind == f80Inf:
			v = signed(a.neg, 0x7fff, 1<<63)
		case a.kind == f80Finite && b.kind == f80Finite:
			by, _ := b.raw.toInt(64, 3)
			by = min(max(by, -1<<17), 1<<17)
			if b.exp > 60 {
				by = 1 << 17
				if b.neg {
					by = -by
				}
			}
			var f uint16
			v, f = extended(m.vec.FCW, 64).pack(a.neg, a.exp+int(by), a.sig, 0)
			flags |= f
		}
	}
	x.note(flags)
	x.set(0, v)
}

// fxtract replaces ST(0) by its exponent and pushes its significand.
func fxtract(m *Machine, _ *inst) {
	x := m.fpuState()
	a, ok := x.get(0)
	if !ok {
		x.set(0, indefinite)
		x.turn(7)
		x.set(0, indefinite)
		return
	}
	v, flags, done := special(a, a)
	exp, sig := v, v
	switch {
	case done:
	case a.kind == f80Zero:
		exp, sig, flags = signed(true, 0x7fff, 1<<63), a.raw, x87ZeroDiv
	case a.kind == f80Inf:
		exp, sig = signed(false, 0x7fff, 1<<63), a.raw
	default:
		exp, sig = f80FromInt(int64(a.exp)), signed(a.neg, f80Bias, a.sig)
	}
	if x.Valid>>x.at(7)&1 != 0 { // no room
		x.note(x87Invalid | x87Stack | x87C1)
		exp, sig = indefinite, indefinite
	} else {
		x.note(flags)
	}
	x.set(0, exp)
	x.turn(7)
	x.set(0, sig)
}

// fprem is fprem and fprem1: ST(0) less the multiple of ST(1) that truncation, or
// rounding to the nearest, of their quotient gives. How far one instruction gets where exponents
// differ by 64 or more depends on the CPU.
func fprem(m *Machine, in *inst) {
	x := m.fpuState()
	nearest := in.rm == 5
	b, also := x.get(1)
	a, ok := x.get(0)
	if !ok || !also {
		x.FSW &^= x87C2
		x.set(0, indefinite)
		return
	}
	v, flags, done := special(a, b)
	q := uint64(0)
	switch {
	case done:
	case a.kind == f80Inf || b.kind == f80Zero:
		v, flags = indefinite, x87Invalid
	case a.kind == f80Zero || b.kind == f80Inf:
		v = a.raw
	case a.exp-b.exp >= 64:
		x87Native(m, in)
		return
	default:
		v, q = remainder(a, b, nearest)
	}
	x.note(flags)
	if x.FSW &^= x87C2; !done && flags&x87Invalid == 0 {
		x.FSW &^= x87C0 | x87C3
	}
	if q&1 != 0 {
		x.FSW |= x87C1
	}
	if q&2 != 0 {
		x.FSW |= x87C3
	}
	if q&4 != 0 {
		x.FSW |= x87C0
	}
	x.set(0, v)
}

// remainder is a less q times b, exactly, and the low bits of q.
func remainder(a, b f80, nearest bool) (F80, uint64) {
	neg, exp := a.neg, b.exp
	var q, rem uint64
	switch d := a.exp - b.exp; {
	case d < -1 || d == -1 && !nearest:
		return a.raw, 0
	case d == -1:
		// Half of a's significand may lose a bit: compare 2 a' with b instead, where a = a'/2.
		if a.sig <= b.sig {
			return a.raw, 0
		}
		// a is above b/2: the quotient is 1 and the rest b - a, of the other sign.
		rest, lost := b.sig-a.sig>>1, a.sig&1
		hi, lo, e := normalize(rest-lost, lost<<63, exp)
		v, _ := extended(0x37f, 64).pack(!neg, e, hi, lo)
		return v, 1
	default:
		hi, lo := a.sig>>1>>(63-d), a.sig<<d
		q1 := hi / b.sig
		var low uint64
		low, rem = bits.Div64(hi%b.sig, lo, b.sig)
		q = q1<<63<<1 | low
	}
	if nearest && (rem > b.sig-rem || rem == b.sig-rem && q&1 != 0) {
		rem = b.sig - rem
		neg = !neg
		q++
	}
	if rem == 0 {
		return signed(a.neg, 0, 0), q
	}
	hi, lo, e := normalize(rem, 0, exp)
	v, _ := extended(0x37f, 64).pack(neg, e, hi, lo)
	return v, q
}
