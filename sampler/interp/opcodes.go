package interp

// oneByte decodes the one-byte opcodes.
func (d *decoder) oneByte(op byte) {
	in := d.in
	stackSize := func() {
		in.w = 8
		if d.opsize {
			in.w = 2
		}
	}
	switch {
	case op < 0x40 && op&7 < 6:
		in.op = op >> 3
		switch op & 7 {
		case 0, 1:
			d.operands(op&1 == 0)
			in.fn = aluRMReg
			d.lockable = in.op != aluCmp
		case 2, 3:
			d.operands(op&1 == 0)
			in.fn = aluRegRM
		default:
			if op&1 == 0 {
				in.w = 1
			}
			in.rm = RAX
			d.immZ()
			in.fn = aluRMImm
		}
	case op&0xf0 == 0x50:
		stackSize()
		in.rm = op&7 | d.base
		in.fn = push
		if op >= 0x58 {
			in.fn = popReg
		}
	case op == 0x63:
		d.modRM(1)
		in.op = in.w // destination size
		in.w = min(in.w, 4)
		in.fn = movsx
	case op == 0x68, op == 0x6a:
		stackSize()
		if op == 0x68 {
			d.immZ()
		} else {
			d.imm8()
		}
		in.fn = pushImm
	case op == 0x69, op == 0x6b:
		d.modRM(1)
		if op == 0x69 {
			d.immZ()
		} else {
			d.imm8()
		}
		in.fn = imulImm
	case op&0xf0 == 0x70:
		d.imm8()
		in.op = op & 15
		d.jump(jcc)
	case op == 0x80, op == 0x81, op == 0x83:
		d.operands(op == 0x80)
		if op == 0x81 {
			d.immZ()
		} else {
			d.imm8()
		}
		in.op = d.plain(in.reg) & 7
		in.fn = aluRMImm
		d.lockable = in.op != aluCmp
	case op == 0x84, op == 0x85:
		d.operands(op == 0x84)
		in.fn = testRMReg
	case op == 0x86, op == 0x87:
		d.operands(op == 0x86)
		in.fn = xchg
		d.lockable = true
		if in.mem {
			in.flags |= isLocked
		}
	case op >= 0x88 && op <= 0x8b:
		d.operands(op&1 == 0)
		in.fn = movRMReg
		if op >= 0x8a {
			in.fn = movRegRM
		}
	case op == 0x8d:
		d.modRM(1)
		in.seg = segNone
		in.fn = lea
		if !in.mem {
			in.fn = undefined
		}
	case op == 0x8f:
		if d.peek()>>3&7 != 0 {
			return
		}
		stackSize()
		d.modRM(1)
		in.fn = popRM
	case op == 0x90 && d.base == 0:
		in.fn = nop
	case op&0xf8 == 0x90:
		in.rm, in.reg = op&7|d.base, RAX
		in.fn = xchg
	case op == 0x98:
		in.fn = cbw
	case op == 0x99:
		in.fn = cwd
	case op == 0x9c:
		stackSize()
		in.fn = pushf
	case op == 0x9d:
		stackSize()
		in.fn = popf
	case op == 0x9e:
		in.fn = sahf
	case op == 0x9f:
		in.fn = lahf
	case op&0xfc == 0xa0:
		n := uint8(8)
		if in.addr32 {
			n = 4
		}
		in.disp = d.signed(n)
		in.mem = true
		in.reg = RAX
		if op&1 == 0 {
			in.w = 1
		}
		in.fn = movRegRM
		if op >= 0xa2 {
			in.fn = movRMReg
		}
	case op == 0xa8, op == 0xa9:
		if op == 0xa8 {
			in.w = 1
		}
		in.rm = RAX
		d.immZ()
		in.fn = testRMImm
	case op >= 0xa4 && op <= 0xaf:
		if op&1 == 0 {
			in.w = 1
		}
		in.fn = [...]func(*Machine, *inst){movs, cmps, nil, stos, lods, scas}[(op-0xa4)/2]
	case op&0xf8 == 0xb0:
		in.w = 1
		in.rm = d.reg8(op&7 | d.base)
		d.imm8()
		in.fn = movRMImm
	case op&0xf8 == 0xb8:
		in.rm = op&7 | d.base
		in.imm = d.signed(in.w)
		in.fn = movRMImm
	case op == 0xc0, op == 0xc1, op >= 0xd0 && op <= 0xd3:
		d.shiftGroup(op)
	case op == 0xc2, op == 0xc3:
		if d.opsize {
			return
		}
		in.w = 8
		if op == 0xc2 {
			in.imm = d.signed(2) & 0xffff
		}
		in.fn = ret
	case op == 0xc6, op == 0xc7:
		if d.peek()>>3&7 != 0 {
			return // xabort, xbegin
		}
		d.operands(op == 0xc6)
		d.immZ()
		in.fn = movRMImm
	case op == 0xc8:
		if d.opsize {
			return
		}
		in.imm = d.signed(2) & 0xffff
		in.op = d.byte() & 31
		if in.op == 0 {
			in.fn = enter
		}
	case op == 0xc9:
		stackSize()
		in.fn = leave
	case op == 0xd7:
		in.w = 1
		in.fn = xlat
	case op >= 0xe0 && op <= 0xe3:
		d.imm8()
		in.op = op & 3
		if d.rep == 0 { // AMD's CPUs let it override the condition
			d.jump(loop)
		}
	case op == 0xe8, op == 0xe9:
		in.imm = d.signed(4)
		if op == 0xe8 {
			d.jump(call)
		} else {
			d.jump(jmp)
		}
	case op == 0xeb:
		d.imm8()
		d.jump(jmp)
	case op == 0xf5:
		in.fn = cmc
	case op == 0xf8:
		in.fn = clc
	case op == 0xf9:
		in.fn = stc
	case op == 0xfc:
		in.fn = cld
	case op == 0xfd:
		in.fn = std
	case op == 0xf6, op == 0xf7:
		g := d.peek() >> 3 & 7
		d.operands(op == 0xf6)
		switch g {
		case 0, 1:
			d.immZ()
			in.fn = testRMImm
		case 2:
			in.fn = not
			d.lockable = true
		case 3:
			in.fn = neg
			d.lockable = true
		default:
			in.fn = [...]func(*Machine, *inst){mul, imul, div, idiv}[g-4]
		}
	case op == 0xfe, op == 0xff:
		d.incGroup(op)
	default:
		return
	}
}

// jump completes a relative jump. With an operand size prefix AMD's CPUs cut
// the target to 16 bits and Intel's do not: such a jump is not supported.
func (d *decoder) jump(fn func(*Machine, *inst)) {
	d.in.imm += d.rip + uint64(d.pos)
	if !d.opsize {
		d.in.fn = fn
	}
}

func (d *decoder) shiftGroup(op byte) {
	in := d.in
	g := d.peek() >> 3 & 7
	d.operands(op&1 == 0)
	in.op = g
	switch op & 0xfe {
	case 0xc0:
		in.imm = uint64(d.byte())
		in.fn = shiftImm
	case 0xd0:
		in.imm = 1
		in.fn = shiftImm
	default:
		in.fn = shiftCL
	}
}

func (d *decoder) incGroup(op byte) {
	in := d.in
	g := d.peek() >> 3 & 7
	if op == 0xfe && g > 1 {
		return
	}
	if g == 2 || g == 4 || g == 6 {
		in.w = 8
		if d.opsize {
			if g != 6 {
				return
			}
			in.w = 2
		}
	}
	d.operands(op == 0xfe)
	switch g {
	case 0:
		in.fn = inc
	case 1:
		in.fn = dec
	case 2:
		in.fn = callRM
	case 4:
		in.fn = jmpRM
	case 6:
		in.fn = push
	default:
		return // far call and jump
	}
	d.lockable = g < 2
}

// twoByte decodes integer opcodes after 0f; false means that op is none.
func (d *decoder) twoByte(op byte) bool {
	in := d.in
	switch {
	case op == 0x01:
		return true // xgetbv, rdtscp, swapgs, ...: not supported
	case op == 0x05:
		in.fn = enterKernel
	case op == 0x0b:
		in.fn = undefined
	case op == 0x0d, op == 0x18, op >= 0x19 && op <= 0x1f:
		// Prefetch, endbr64, the shadow stack's rdssp (which is a nop
		// without one) and nops with an operand.
		d.modRM(1)
		if op == 0x0d && !in.mem {
			return true
		}
		in.mem = false
		in.fn = nop
	case op == 0x31, op == 0xa2:
		return true // rdtsc, cpuid: not to be known ahead
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
			in.fn = undefined
		}
	case op == 0xc7:
		if d.peek()>>3&7 != 1 || d.peek()>>6 == 3 {
			return true // rdrand, rdseed, rdpid, xsavec, ...: not supported
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

// group15 decodes 0f ae: fences, cache flushes and access to the FS and GS base.
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
	case !isReg && d.pp == 0 && g == 2:
		d.modRM(1)
		in.w = 4
		in.flags |= usesVector
		in.fn = ldmxcsr
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
			in.fn = undefined
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
			in.fn = undefined
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

// vexInteger decodes BMI1 and BMI2.
func (d *decoder) vexInteger(op byte) bool {
	in := d.in
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
