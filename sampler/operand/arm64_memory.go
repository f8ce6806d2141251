package operand

// loadStore decodes the class "loads and stores" (Arm ARM, C4.1.94).
func (in *ARM64Inst) loadStore(w a64Word) string {
	in.base = w.rn()
	switch {
	case w.bits(29, 24) == 0b001000:
		return in.exclusive(w)
	case w.bits(29, 24) == 0b001100 && w.bit(31) == 0:
		return in.multiple(w)
	case w.bits(29, 24) == 0b001101 && w.bit(31) == 0:
		return in.single(w)
	case w.bits(29, 24) == 0b011001 && w.bit(21) == 0 && w.bits(11, 10) == 0:
		// ldapur, stlur and their signed forms
		in.disp = w.signed(20, 12)
		return in.sized(w, w.bits(31, 30), w.bits(23, 22), false)
	case w.bits(29, 27) == 0b011 && w.bits(25, 24) == 0:
		return in.literalLoad(w)
	case w.bits(29, 27) == 0b101 && w.bit(25) == 0:
		return in.pair(w)
	case w.bits(29, 27) == 0b111 && w.bits(25, 24) == 1:
		if why := in.sized(w, w.bits(31, 30), w.bits(23, 22), w.bit(26) == 1); why != "" {
			return why
		}
		in.disp = int64(w.bits(21, 10)) << in.scale(w)
	case w.bits(29, 27) == 0b111 && w.bits(25, 24) == 0 && w.bit(21) == 0:
		if w.bits(11, 10) == 0b10 && (w.bit(26) == 1 || w.bits(31, 30) == 3 && w.bits(23, 22) == 2) {
			return "load/store" // there is no unprivileged prefetch
		}
		in.disp = w.signed(20, 12)
		why := in.sized(w, w.bits(31, 30), w.bits(23, 22), w.bit(26) == 1)
		if why == "" && w.bit(10) == 1 {
			if !in.Touches() {
				return "load/store" // there is no prefetch with write-back
			}
			if w.bit(26) == 0 && in.base == w.rd() && in.base != 31 {
				return "unpredictable" // the base is written twice
			}
			in.post = w.bit(11) == 0
			in.Writes |= 1 << in.base
		}
		return why
	case w.bits(29, 27) == 0b111 && w.bits(25, 24) == 0:
		switch w.bits(11, 10) {
		case 0b00:
			return in.atomic(w)
		case 0b10:
			in.index, in.extend = w.rm(), uint8(w.bits(15, 13))
			if in.extend&2 == 0 {
				return "load/store"
			}
			why := in.sized(w, w.bits(31, 30), w.bits(23, 22), w.bit(26) == 1)
			if why == "" && w.bit(12) == 1 {
				in.shift = in.scale(w)
			}
			return why
		}
		if w.bits(31, 30) != 3 || w.bit(26) != 0 {
			return "load/store"
		}
		// ldraa, ldrab
		in.access(true, false, 8)
		in.signed = true
		in.disp = (w.signed(22, 22)<<9 | int64(w.bits(20, 12))) * 8
		in.Writes = general(w.rd())
		if w.bit(11) == 1 {
			in.Writes |= 1 << in.base
		}
	default:
		return "load/store"
	}
	return ""
}

// scale is log2 of the access size of the size/opc/V encoding.
func (in *ARM64Inst) scale(w a64Word) uint8 {
	if w.bit(26) == 1 && w.bit(23) == 1 {
		return 4
	}
	return uint8(w.bits(31, 30))
}

// sized decodes size, opc and V as the single-register loads and stores have them.
func (in *ARM64Inst) sized(w a64Word, size, opc uint32, vector bool) string {
	if vector {
		if opc&2 != 0 {
			if size != 0 {
				return "load/store"
			}
			size = 4
		}
		in.access(opc&1 == 1, opc&1 == 0, 1<<size)
		if in.load {
			in.Writes |= RegVector
		}
		return ""
	}
	switch {
	case opc == 0:
		in.access(false, true, 1<<size)
	case opc == 2 && size == 3:
		if w.bits(29, 24) == 0b011001 {
			return "load/store"
		}
		// prfm: no access that counts
	case opc == 3 && size >= 2:
		return "load/store"
	default:
		in.access(true, false, 1<<size)
		in.Writes |= general(w.rd())
	}
	return ""
}

func (in *ARM64Inst) access(load, store bool, size uint16) {
	in.load, in.store, in.size = load, store, size
}

func (in *ARM64Inst) exclusive(w a64Word) string {
	size := uint16(1) << w.bits(31, 30)
	rs, rt, rt2 := w.rm(), w.rd(), uint8(w.bits(14, 10))
	isLoad := w.bit(22) == 1
	o2, o1 := w.bit(23), w.bit(21)
	pairs := o2 == 0 && o1 == 1
	// Register fields that an instruction does not use must be all ones.
	if rt2 != 31 && (!pairs || w.bit(31) == 0) || rs != 31 && o1 == 0 && (o2 == 1 || isLoad) || rs != 31 && pairs && isLoad && w.bit(31) == 1 {
		return "exclusive"
	}
	switch {
	case o2 == 0 && o1 == 0: // stxr, stlxr, ldxr, ldaxr
		in.access(isLoad, !isLoad, size)
		if isLoad {
			in.Writes = general(rt)
		} else {
			in.Writes = general(rs)
		}
	case o2 == 0 && w.bit(31) == 1: // stxp, stlxp, ldxp, ldaxp
		in.access(isLoad, !isLoad, 8<<w.bit(30))
		if isLoad {
			in.Writes = general(rt) | general(rt2)
		} else {
			in.Writes = general(rs)
		}
	case o2 == 0: // casp
		if rs&1 != 0 || rt&1 != 0 {
			return "casp"
		}
		in.access(true, true, 8<<w.bit(30))
		in.Writes = general(rs) | general(rs+1)
	case o1 == 0: // stlr, stllr, ldar, ldlar
		in.access(isLoad, !isLoad, size)
		if isLoad {
			in.Writes = general(rt)
		}
	default: // cas
		in.access(true, true, size)
		in.Writes = general(rs)
	}
	return ""
}

func (in *ARM64Inst) literalLoad(w a64Word) string {
	in.literal, in.base = true, noReg
	in.disp = w.signed(23, 5) * 4
	opc := w.bits(31, 30)
	if w.bit(26) == 1 {
		if opc == 3 {
			return "load literal"
		}
		in.access(true, false, 4<<opc)
		in.Writes = RegVector
		return ""
	}
	switch opc {
	case 0, 2:
		in.access(true, false, 4)
	case 1:
		in.access(true, false, 8)
	case 3:
		return "" // prfm
	}
	in.Writes = general(w.rd())
	return ""
}

func (in *ARM64Inst) pair(w a64Word) string {
	opc, mode, isLoad := w.bits(31, 30), w.bits(24, 23), w.bit(22) == 1
	rt, rt2 := w.rd(), uint8(w.bits(14, 10))
	var scale uint32
	if w.bit(26) == 1 {
		if opc == 3 {
			return "pair"
		}
		scale = 2 + opc
		if isLoad {
			in.Writes = RegVector
		}
	} else {
		if opc == 3 || opc == 1 && (!isLoad || mode == 0) { // stgp, unallocated
			return "pair"
		}
		scale = 2 + opc>>1
		if isLoad {
			in.Writes = general(rt) | general(rt2)
		}
	}
	if isLoad && rt == rt2 || w.bit(26) == 0 && mode&1 == 1 && in.base != 31 && (in.base == rt || in.base == rt2) {
		return "unpredictable"
	}
	in.access(isLoad, !isLoad, 2<<scale)
	in.disp = w.signed(21, 15) << scale
	in.post = mode == 1
	if mode&1 == 1 {
		in.Writes |= 1 << in.base
	}
	return ""
}

func (in *ARM64Inst) atomic(w a64Word) string {
	if w.bit(26) != 0 {
		return "atomic"
	}
	size := uint16(1) << w.bits(31, 30)
	rt := w.rd()
	switch o3, opc := w.bit(15), w.bits(14, 12); {
	case o3 == 0, opc == 0: // ldadd ... ldumin, swp
		in.access(true, true, size)
	case opc == 4 && w.bit(23) == 1 && w.bit(22) == 0 && w.rm() == 31: // ldapr
		in.access(true, false, size)
	default:
		return "atomic"
	}
	in.Writes = general(rt)
	return ""
}

// multiple is ld1 to ld4 and st1 to st4 of whole registers.
func (in *ARM64Inst) multiple(w a64Word) string {
	regs, interleaved := uint16(0), false
	switch w.bits(15, 12) {
	case 0b0000:
		regs, interleaved = 4, true
	case 0b0010:
		regs = 4
	case 0b0100:
		regs, interleaved = 3, true
	case 0b0110:
		regs = 3
	case 0b0111:
		regs = 1
	case 0b1000:
		regs, interleaved = 2, true
	case 0b1010:
		regs = 2
	}
	if regs == 0 || w.bit(21) != 0 || interleaved && w.bits(11, 10) == 3 && w.bit(30) == 0 {
		return "ld1-4"
	}
	return in.structure(w, regs*(8<<w.bit(30)))
}

// single is ld1 to ld4 and st1 to st4 of one lane, and the replicating loads.
func (in *ARM64Inst) single(w a64Word) string {
	opcode, size := w.bits(15, 13), w.bits(11, 10)
	elements := uint16(opcode&1<<1|w.bit(21)) + 1
	var scale uint32
	switch opcode >> 1 {
	case 1:
		if size&1 != 0 {
			return "ld1-4 lane"
		}
		scale = 1
	case 2:
		scale = 2 + size
		if size > 1 || size == 1 && w.bit(12) == 1 {
			return "ld1-4 lane"
		}
	case 3:
		scale = size
		if w.bit(22) == 0 || w.bit(12) == 1 {
			return "ld1-4 lane"
		}
	}
	return in.structure(w, elements<<scale)
}

func (in *ARM64Inst) structure(w a64Word, size uint16) string {
	isLoad := w.bit(22) == 1
	in.access(isLoad, !isLoad, size)
	if isLoad {
		in.Writes = RegVector
	}
	if w.bit(23) == 1 {
		in.Writes |= 1 << in.base
	} else if w.rm() != 0 {
		return "ld1-4"
	}
	return ""
}

// ARM64Regs are a thread's registers as they are before the instruction runs.
type ARM64Regs struct {
	X    [31]uint64
	SP   uint64
	PC   uint64
	NZCV uint64 // as PSTATE has them: N bit 31, Z 30, C 29, V 28
	// ZVABlock is how many bytes dc zva clears: 4 << DCZID_EL0.BS. 0: not known.
	ZVABlock int
}

func (r *ARM64Regs) get(n uint8) uint64 {
	if n == a64SP {
		return r.SP
	}
	return r.X[n]
}

func (r *ARM64Regs) orZero(n uint8) uint64 {
	if n == 31 {
		return 0
	}
	return r.X[n]
}

// Accesses appends the instruction's memory accesses to buf, a load before a
// store, and returns the extended slice. A register pair or a structure is one
// access of all its bytes. It does not allocate when buf has room for two. An
// address's top byte, which the CPU ignores, is kept as it is in the register;
// from a signed pointer (ldraa, ldrab) the signature is stripped, of the 48-bit
// addresses that Linux gives to programs that do not ask for larger ones.
// The only error is ErrNeedZVABlock.
func (in *ARM64Inst) Accesses(r *ARM64Regs, buf []Access) ([]Access, error) {
	if !in.Touches() {
		return buf, nil
	}
	var a uint64
	switch {
	case in.zero:
		if r.ZVABlock == 0 {
			return buf, ErrNeedZVABlock
		}
		return append(buf, store(r.orZero(in.base)&^uint64(r.ZVABlock-1), r.ZVABlock)), nil
	case in.signed:
		const signature = 0x7f << 48
		a = r.get(in.base)
		if a>>55&1 == 1 {
			a |= signature
		} else {
			a &^= signature
		}
		a += uint64(in.disp)
	case in.literal:
		a = r.PC + uint64(in.disp)
	case in.post:
		a = r.get(in.base)
	default:
		a = r.get(in.base) + uint64(in.disp)
	}
	if in.index != noReg {
		v := r.orZero(in.index)
		switch in.extend {
		case 2:
			v = uint64(uint32(v))
		case 6:
			v = uint64(int64(int32(v)))
		}
		a += v << in.shift
	}
	if in.load {
		buf = append(buf, load(a, int(in.size)))
	}
	if in.store {
		buf = append(buf, store(a, int(in.size)))
	}
	return buf, nil
}

// Taken says whether a conditional branch will be taken.
func (in *ARM64Inst) Taken(r *ARM64Regs) bool {
	switch in.cond {
	case condCBZ, condCBNZ:
		v := r.orZero(in.reg)
		if in.bit == 0 {
			v = uint64(uint32(v))
		}
		return (v == 0) == (in.cond == condCBZ)
	case condTBZ, condTBNZ:
		return (r.orZero(in.reg)>>in.bit&1 == 0) == (in.cond == condTBZ)
	}
	n, z, c, v := r.NZCV>>31&1 == 1, r.NZCV>>30&1 == 1, r.NZCV>>29&1 == 1, r.NZCV>>28&1 == 1
	var t bool
	switch in.cond >> 1 {
	case 0:
		t = z
	case 1:
		t = c
	case 2:
		t = n
	case 3:
		t = v
	case 4:
		t = c && !z
	case 5:
		t = n == v
	case 6:
		t = n == v && !z
	case 7:
		return true // al and nv
	}
	return t != (in.cond&1 == 1)
}
