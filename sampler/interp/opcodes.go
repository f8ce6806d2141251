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
			in.refuse()
		}
	case op == 0x8f:
		if d.peek()>>3&7 != 0 {
			return
		}
		stackSize()
		d.modRM(1)
		in.fn = popRM
	case op == 0x90 && (d.base == 0 || d.rep == 0xf3 && !amd): // with rep it is pause, for AMD not of r8
		in.fn = nop
	case op&0xf8 == 0x90:
		in.rm, in.reg = op&7|d.base, RAX
		in.fn = xchg
	case op == 0x98:
		in.fn = cbw
	case op == 0x99:
		in.fn = cwd
	case op == 0x9b:
		in.fn = fnop
		in.flags |= usesVector
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
	case op&0xf8 == 0xd8:
		d.fpu(op)
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
