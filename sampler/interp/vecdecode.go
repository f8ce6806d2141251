package interp

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"sync"
)

// vecOp is one row of the vector opcode tables.
type vecOp struct {
	// code is prefix, map and opcode as in the manuals, "66 0f38 00", "np map5 58", with
	// "/r" after it where modrm.reg is part of the opcode.
	code string
	// enc has l, v, e for the legacy, VEX and EVEX encodings, and after v or e
	// 0 or 1 if only that value of W is meant.
	enc string
	// form is a list of:
	//   b w d q x   element size (x: d or q by EVEX.W); d and q allow broadcast
	//   h           16-bit floating point: as w, but allows broadcast; hb: so does msz
	//   msz=N       element size of the memory operand if another
	//   mem=N       bytes of the memory operand; /N: the vector length's Nth part
	//   sc          scalar: a memory operand of one element, length ignored
	//   imm         has an immediate byte
	//   v           uses vvvv, which must be unused otherwise
	//   vd          vvvv is the destination
	//   fl          floating point: depends on MXCSR
	//   ef          the result is the arithmetic flags
	//   dd          the destination must not be an operand
	//   un          legacy encoding needs no alignment (ua: of AMD's CPUs); al: every encoding does
	//   l0 l1 l2    this vector length only; lx: not l0
	//   nb          no broadcast
	//   wh          memory is read whole, whatever the opmask; nk: no opmask
	//   any         memory is read whole if any element is active
	//   st          memory operand is stored
	//   m, r        r/m must be memory, a register
	//   t1          memory is a run of single elements: displacements count those
	//   k           the destination is an opmask register
	//   half        the result is half as long
	//   nar         elements of the result are msz wide
	//   vs          the index is a vector register
	//   gr          reg is a general register
	//   g           r/m is a general register or memory of its size
	form string
	fn   func(*Machine, *inst) // nil: runs natively only
	kern kernel
}

// vecEntry is a row in the form that the decoder uses.
type vecEntry struct {
	vecOp
	group              int8 // modrm.reg, -1: any
	legacy, vex, evex  bool
	vexW, evexW        int8 // -1: any
	length             int8 // EVEX.L'L, -1: any, 3: not 0
	esz, msz, mem, div uint8

	byW, scalar, tuple1, half, narrow   bool
	imm, v, vd, fl, setsFlags           bool
	native, bcastHalf, distinct         bool
	unaligned, unalignedAMD, aligned    bool
	noBcast, whole, any, noMask         bool
	store, toMask                       bool
	onlyMem, onlyReg, gpr, regGPR, vsib bool

	raise raiser
}

func vecKey(opmap, pp, op uint8) uint16 {
	return uint16(opmap)<<10 | uint16(pp)<<8 | uint16(op)
}

// vecTable is built when it is first needed, see Prepare.
var vecTable = sync.OnceValue(func() map[uint16][]vecEntry {
	return buildVecTable(vecMoves, vecInts, vecShifts, vecShuffles, vecMasks, vecFloats, vecConverts, vecCrypto, vecStrings, vecNatives)
})

// Prepare builds the tables that decoding needs, in some milliseconds, so that no held thread waits for it.
func Prepare() { vecTable() }

func buildVecTable(tables ...[]vecOp) map[uint16][]vecEntry {
	t := make(map[uint16][]vecEntry)
	for _, rows := range tables {
		for _, row := range rows {
			e, key := parseVecOp(row)
			t[key] = append(t[key], e)
		}
	}
	return t
}

// parseVecOp reads a row of the tables above, which are part of the program: a
// mistake in them is a bug, found by the first use of the package.
func parseVecOp(row vecOp) (vecEntry, uint16) {
	e := vecEntry{vecOp: row, group: -1, vexW: -1, evexW: -1, length: -1}
	f := strings.Fields(row.code)
	code, group, ok := strings.Cut(f[2], "/")
	if ok {
		e.group = int8(group[0] - '0')
	}
	op, err := strconv.ParseUint(code, 16, 8)
	pp := strings.Index("np 66 f3 f2", f[0])
	opmap := map[string]uint8{"0f": 1, "0f38": 2, "0f3a": 3, "map5": 5, "map6": 6}[f[1]]
	if err != nil || pp < 0 || opmap == 0 {
		panic("opcode table: " + row.code)
	}
	var last rune
	for _, c := range row.enc {
		switch c {
		case 'l':
			e.legacy = true
		case 'v':
			e.vex = true
		case 'e':
			e.evex = true
		default:
			if last == 'e' {
				e.evexW = int8(c - '0')
			} else {
				e.vexW = int8(c - '0')
			}
		}
		last = c
	}
	for _, w := range strings.Fields(row.form) {
		name, num, _ := strings.Cut(w, "=")
		n, _ := strconv.Atoi(num)
		switch name {
		case "b":
			e.esz = 1
		case "w":
			e.esz = 2
		case "h":
			e.esz, e.bcastHalf = 2, true
		case "hb":
			e.bcastHalf = true
		case "dd":
			e.distinct = true
		case "d":
			e.esz = 4
		case "q":
			e.esz = 8
		case "x":
			e.esz, e.byW = 4, true
		case "msz":
			e.msz = uint8(n)
		case "mem":
			e.mem = uint8(n)
		case "/2", "/4", "/8":
			e.div = name[1] - '0'
		case "sc":
			e.scalar = true
		case "imm":
			e.imm = true
		case "v":
			e.v = true
		case "vd":
			e.v, e.vd = true, true
		case "fl":
			e.fl = true
		case "ef":
			e.setsFlags = true
		case "un":
			e.unaligned = true
		case "ua":
			e.unalignedAMD = true
		case "al":
			e.aligned = true
		case "l0", "l1", "l2":
			e.length = int8(name[1] - '0')
		case "lx":
			e.length = 3
		case "nb":
			e.noBcast = true
		case "wh":
			e.whole = true
		case "any":
			e.whole, e.any = true, true
		case "nk":
			e.noMask = true
		case "st":
			e.store = true
		case "m":
			e.onlyMem = true
		case "r":
			e.onlyReg = true
		case "g":
			e.gpr = true
		case "gr":
			e.regGPR = true
		case "t1":
			e.tuple1 = true
		case "k":
			e.toMask = true
		case "half":
			e.half = true
		case "nar":
			e.narrow = true
		case "vs":
			e.vsib = true
		default:
			panic("opcode table: " + row.code + ": " + w)
		}
	}
	if e.native = row.fn == nil; e.native {
		e.fn = vecNative
	}
	if e.esz == 0 {
		panic("opcode table: no element size: " + row.code)
	}
	if e.fl {
		msz := e.msz
		if msz == 0 {
			msz = e.esz
		}
		e.raise = vecRaisers[fmt.Sprintf("%s %d %d", row.code, e.esz, msz)]
	}
	return e, vecKey(opmap, uint8(pp/3), uint8(op))
}

// vector decodes what is left: MMX, SSE, AVX, AVX-512 and opmask instructions.
func (d *decoder) vector(op byte) {
	if m := d.opmap; m == 0 || m > 3 && !(d.evex && (m == 5 || m == 6)) {
		return
	}
	d.in.vecForm = new(vecForm)
	if d.vex && !d.evex && d.opmask(op) {
		return
	}
	if d.vex && !d.evex && d.opmap == 1 && d.pp == 0 && op == 0x77 && d.vvvv == 0 {
		d.in.flags |= usesVector
		d.in.n = 16 << d.ll
		d.in.fn = vzeroupper
		return
	}
	if d.mmx(op) {
		return
	}
	rows := vecTable()[vecKey(d.opmap, d.pp, op)]
	for i := range rows {
		e := &rows[i]
		w := int8(0)
		if d.wbit {
			w = 1
		}
		switch {
		case d.evex && !e.evex, d.vex && !d.evex && !e.vex, !d.vex && !e.legacy,
			d.evex && e.evexW >= 0 && e.evexW != w,
			d.vex && !d.evex && e.vexW >= 0 && e.vexW != w,
			e.group >= 0 && uint8(e.group) != d.peek()>>3&7,
			d.vex && !e.fits(d.ll) && !(d.evex && d.bc && d.peek() >= 0xc0),
			e.onlyMem && d.peek() >= 0xc0, e.onlyReg && d.peek() < 0xc0:
			continue
		}
		d.vectorEntry(e, op)
		return
	}
}

// fits reports whether the row is for vector length ll.
func (e *vecEntry) fits(ll uint8) bool {
	switch {
	case e.length < 0:
		return true
	case e.length == 3:
		return ll != 0
	}
	return uint8(e.length) == ll
}

func (d *decoder) vectorEntry(e *vecEntry, op byte) {
	in := d.in
	in.flags |= usesVector
	if e.fl {
		in.flags |= usesFloat
	}
	regForm := d.peek() >= 0xc0
	in.legacy = !d.vex
	in.scalar = e.scalar
	in.n = 16 << d.ll
	rounding := d.evex && d.bc && regForm
	if rounding {
		in.n = 64
	}
	if !d.vex || e.scalar {
		in.n = 16
	}
	in.esz = e.esz
	if e.byW && d.wbit {
		in.esz = 8
	}
	in.msz = in.esz
	if e.msz != 0 {
		in.msz = e.msz
	}
	switch {
	case e.scalar, e.tuple1:
		in.size = in.msz
	case e.mem != 0:
		in.size = e.mem
	case e.div != 0:
		in.size = in.n / e.div
	default:
		in.size = in.n
	}
	bad := false
	if d.evex && d.bc && !regForm {
		in.bcast = true
		in.size = in.msz
		bad = in.msz < 4 && !e.bcastHalf || e.noBcast || e.scalar || e.tuple1 || e.store || e.mem != 0
	}
	bad = bad || rounding && !e.fl
	bad = bad || d.ll == 3 && !rounding && !e.scalar
	if e.half {
		in.n /= 2
	}
	if e.narrow {
		in.n = in.n / in.esz * in.msz
		in.esz = in.msz
	}
	disp := int64(1)
	if d.evex {
		disp = int64(in.size)
	}
	d.vsib = e.vsib
	d.modRM(disp)
	if e.vsib {
		in.vsib, in.vsibWide = true, op&1 != 0
		if d.evex {
			bad = bad || d.z || d.aaa == 0
			d.vvvv &= 15 // the rest of it extends the index
		}
	}
	in.w = 4
	if d.wbit {
		in.w = 8
	}
	if e.gpr && !in.mem {
		in.rm &= 15
	}
	in.dst, in.v = in.reg, d.vvvv
	if !e.v && d.vvvv != 0 {
		bad = true
	}
	if in.legacy && e.v {
		in.v = in.reg
	}
	if e.store {
		in.dst = in.rm
	}
	if e.vd {
		in.dst = d.vvvv
		if in.legacy {
			in.dst = in.rm
		}
	}
	in.k, in.zeroing, in.whole, in.any = d.aaa, d.z, e.whole, e.any
	bad = bad || d.z && (d.aaa == 0 || e.store && in.mem) || d.evex && e.noMask && (d.aaa != 0 || d.z)
	bad = bad || e.regGPR && in.reg > 15
	bad = bad || e.toMask && d.evex && (d.z || in.reg > 7)
	in.aligned = e.aligned || in.legacy && in.size == 16 && !e.unaligned && !(e.unalignedAMD && amd)
	in.relaxed = !e.aligned
	if e.imm {
		in.imm = uint64(d.byte())
	}
	in.fn, in.kern = e.fn, e.kern
	in.raise, in.sae = e.raise, rounding
	in.op = op
	bad = bad || e.distinct && (in.dst == in.v || !in.mem && in.dst == in.rm)
	if e.fl || e.native {
		in.nat = d.native(e, op)
		const reduce = 0x56 // and 0x57
		in.nat.sae, in.nat.reduces = rounding, d.opmap == 3 && op&^1 == reduce
	}
	if rounding && d.ll != 0 { // a rounding mode of its own
		in.fn = vecNative
	}
	if bad || d.noSIB {
		in.refuse()
	}
}

// span is the first and last set bit of a mask that is not zero.
func span(mask uint64) (first, last int) {
	return bits.TrailingZeros64(mask), 63 - bits.LeadingZeros64(mask)
}
