package interp

// twoByte decodes integer opcodes after 0f; false means that op is none.
func (d *decoder) twoByte(op byte) bool {
	in := d.in
	switch {
	case op == 0x01:
		switch {
		case transactions && d.peek() == 0xd6 && d.pp == 0:
			d.byte()
			in.fn = xtest
		case d.peek() == 0xd0 && d.pp == 0:
			d.byte()
			in.fn = xgetbv
		case d.peek() == 0xf9 && d.pp == 0:
			d.byte()
			in.fn = rdtscp
		}
		return true // swapgs, ...: not supported
	case op == 0x05:
		in.fn = enterKernel
	case op == 0x0b:
		in.refuse()
	case op == 0x0d, op == 0x18, op >= 0x19 && op <= 0x1f:
		// Prefetch, endbr64, the shadow stack's rdssp (which is a nop
		// without one) and nops with an operand.
		d.modRM(1)
		if op == 0x0d && !in.mem {
			return true
		}
		in.mem = false
		in.fn = nop
	case op == 0x31:
		in.fn = rdtsc
	case op == 0xa2:
		return true // cpuid: not to be known ahead
	case op&0xf0 == 0x40:
		if d.pp > 1 {
			return false
		}
		d.modRM(1)
		in.op = op & 15
		in.fn = cmov
	case op&0xf0 == 0x80:
		in.imm = d.signed(4)
		in.op = op & 15
		d.jump(jcc)
	case op&0xf0 == 0x90:
		d.operands(true)
		in.op = op & 15
		in.fn = setcc
	case op == 0xa3, op == 0xab, op == 0xb3, op == 0xbb:
		d.modRM(1)
		in.op = op >> 3 & 3
		in.fn = bitReg
		d.lockable = in.op != 0
	case op == 0xba:
		g := d.peek() >> 3 & 7
		d.modRM(1)
		in.imm = uint64(d.byte())
		if g < 4 {
			return true
		}
		in.op = g & 3
		in.fn = bitImm
		d.lockable = in.op != 0
	case op == 0xa4, op == 0xa5, op == 0xac, op == 0xad:
		d.modRM(1)
		in.op = op >> 3 & 1
		in.fn = shiftDoubleCL
		if op&1 == 0 {
			in.imm = uint64(d.byte())
			in.fn = shiftDoubleImm
		}
	case op == 0xae:
		return d.group15()
	case op == 0xaf:
		d.modRM(1)
		in.fn = imulReg
	case op == 0xb0, op == 0xb1:
		d.operands(op == 0xb0)
		in.fn = cmpxchg
		d.lockable = true
	case op == 0xb6, op == 0xb7, op == 0xbe, op == 0xbf:
		in.op = in.w // destination size
		d.operands(op&1 == 0)
		if op&1 != 0 {
			in.w = 2
		}
		in.reg = d.plain(in.reg) // the destination is never a high byte
		in.fn = movzx
		if op >= 0xbe {
			in.fn = movsx
		}
	case op == 0xb8 && d.pp == 2, op == 0xbc, op == 0xbd:
		d.modRM(1)
		switch {
		case op == 0xb8:
			in.fn = popcnt
		case op == 0xbc && d.pp == 2:
			in.fn = tzcnt
		case op == 0xbc:
			in.fn = bsf
		case d.pp == 2:
			in.fn = lzcnt
		default:
			in.fn = bsr
		}
	case op == 0xc0, op == 0xc1:
		d.operands(op == 0xc0)
		in.fn = xadd
		d.lockable = true
	case op == 0xc3 && d.pp == 0:
		d.modRM(1)
		in.fn = movRMReg
		if !in.mem {
			in.refuse()
		}
	case op == 0xc7:
		if d.peek()>>3&7 == 4 && d.peek()>>6 != 3 && d.pp == 0 {
			d.modRM(1)
			in.flags |= usesVector
			in.fn, in.op = xsave, 1
			return true
		}
		if d.peek()>>3&7 != 1 || d.peek()>>6 == 3 {
			return true // rdrand, rdseed, rdpid, xsaves, ...: not supported
		}
		d.modRM(1)
		in.fn = cmpxchg8b
		if d.wbit {
			in.fn = cmpxchg16b
		}
		d.lockable = true
	case op&0xf8 == 0xc8:
		in.rm = op&7 | d.base
		if in.w != 2 { // undefined
			in.fn = bswap
		}
	default:
		return false
	}
	return true
}

// plain undoes reg8.
func (d *decoder) plain(r uint8) uint8 {
	if r >= highByte {
		return r - highByte + 4
	}
	return r
}

// group15 decodes 0f ae: fences, cache flushes, access to the FS and GS base, and
// what saves and restores vector registers.
func (d *decoder) group15() bool {
	in := d.in
	b := d.peek()
	g, isReg := b>>3&7, b>>6 == 3
	switch {
	case isReg && d.pp == 0 && g >= 5: // lfence, mfence, sfence
		d.modRM(1)
		in.fn = nop
	case isReg && d.pp == 2 && g < 4:
		d.modRM(1)
		in.op = g
		in.fn = fsgsbase
	case !isReg && g == 7 && d.pp < 2, !isReg && d.pp == 1 && g == 6: // clflush, clflushopt, clwb
		d.modRM(1)
		in.fn = flushLine
	case !isReg && d.pp == 0 && g != 2 && g != 3: // 7 is above
		d.modRM(1)
		in.flags |= usesVector
		in.fn = [...]func(*Machine, *inst){0: fxsave, 1: fxrstor, 4: xsave, 5: xrstor, 6: xsave}[g]
		if g == 6 {
			in.op = 2 // xsaveopt
		}
	case !isReg && d.pp == 0 && g == 2:
		d.modRM(1)
		in.w = 4
		in.flags |= usesVector
		in.fn = ldmxcsr
	case !isReg && d.pp == 0 && g == 3:
		d.modRM(1)
		in.w = 4
		in.flags |= usesVector
		in.fn = stmxcsr
	}
	return true
}

// threeByte38 decodes integer opcodes after 0f 38.
func (d *decoder) threeByte38(op byte) bool {
	in := d.in
	switch {
	case op&0xfe == 0xf0 && d.rep == 0xf2:
		d.crc32(op)
	case op&0xfe == 0xf0 && d.pp < 2:
		d.modRM(1)
		in.fn = movbeLoad
		if op == 0xf1 {
			in.fn = movbeStore
		}
		if !in.mem {
			in.refuse()
		}
	case op == 0xf6 && (d.pp == 1 || d.pp == 2):
		d.modRM(1)
		if d.pp == 1 {
			in.w = 4
			if d.wbit {
				in.w = 8
			}
		}
		in.op = d.pp - 1
		in.fn = addCarry
	case op == 0xf9 && d.pp == 0:
		d.modRM(1)
		in.fn = movRMReg
		if !in.mem {
			in.refuse()
		}
	default:
		return false
	}
	return true
}

func (d *decoder) crc32(op byte) {
	in := d.in
	in.op = 4
	if d.wbit {
		in.op = 8
	}
	d.operands(op == 0xf0)
	in.reg = d.plain(in.reg)
	in.fn = crc32c
}

// vexInteger decodes BMI1, BMI2 and vldmxcsr and vstmxcsr.
func (d *decoder) vexInteger(op byte) bool {
	in := d.in
	if g := d.peek() >> 3 & 7; d.opmap == 1 && op == 0xae && d.pp == 0 && d.ll == 0 && d.vvvv == 0 &&
		(g == 2 || g == 3) && d.peek() < 0xc0 {
		return d.group15()
	}
	if d.ll != 0 {
		return false
	}
	var fn func(*Machine, *inst)
	switch {
	case d.opmap == 3 && op == 0xf0 && d.pp == 3:
		fn = rorx
	case d.opmap != 2:
		return false
	case op == 0xf2 && d.pp == 0:
		fn = andn
	case op == 0xf3 && d.pp == 0:
		fn = blsGroup
	case op == 0xf5:
		fn = [4]func(*Machine, *inst){bzhi, nil, pext, pdep}[d.pp]
	case op == 0xf6 && d.pp == 3:
		fn = mulx
	case op == 0xf7:
		fn = [4]func(*Machine, *inst){bextr, shlx, sarx, shrx}[d.pp]
	}
	if fn == nil {
		return false
	}
	in.w = 4
	if d.wbit {
		in.w = 8
	}
	d.modRM(1)
	in.v = d.vvvv
	in.op = in.reg & 7
	if d.opmap == 3 {
		in.imm = uint64(d.byte())
		if d.vvvv != 0 {
			fn = undefined
		}
	}
	in.fn = fn
	return true
}
