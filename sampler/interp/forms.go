package interp

import "encoding/binary"

// The commonest forms of the commonest instructions, three in four of those that programs run, do not look what they are: their operands
// are of 8 or 4 bytes, and no segment has a base. What they do is what the handlers do that they stand in for.

// form is what runs an instruction of a one-byte opcode that has no further condition, nil if nothing but its handler does.
func (d *decoder) form(op byte) func(*Machine, *inst) {
	in, wide := d.in, 0
	switch in.w {
	case 8:
	case 4:
		wide = 1
	default:
		return nil
	}
	switch {
	case op&0xf0 == 0x70:
		return conditionals[op&15]
	case op >= 0x50 && op < 0x58 && in.w == 8:
		return pushForm
	case op >= 0x58 && op < 0x60 && in.w == 8:
		return popForm
	case op == 0x8b && in.mem:
		return loads[wide]
	case op == 0x8b:
		return movesFrom[wide]
	case op == 0x89 && in.mem:
		return stores[wide]
	case op == 0x89:
		return movesTo[wide]
	case op == 0x8d && in.mem:
		return addresses[wide]
	case op == 0x85 && !in.mem:
		return tests[wide]
	case op < 0x40 && op&7 == 1 && !in.mem:
		return withReg[in.op][wide]
	case (op == 0x81 || op == 0x83) && !in.mem:
		return withImm[in.op][wide]
	}
	return nil
}

// The first of each pair is of 8 bytes, the second of 4.
type forms [2]func(*Machine, *inst)

var (
	loads     = forms{load8, load4}
	stores    = forms{store8, store4}
	movesFrom = forms{moveFrom8, moveFrom4}
	movesTo   = forms{moveTo8, moveTo4}
	addresses = forms{lea8, lea4}
	tests     = forms{test8, test4}
	// By inst.op; none of adc and sbb.
	withReg = [8]forms{aluAdd: {addReg8, addReg4}, aluOr: {orReg8, orReg4}, aluAnd: {andReg8, andReg4}, aluSub: {subReg8, subReg4}, aluXor: {xorReg8, xorReg4}, aluCmp: {cmpReg8, cmpReg4}}
	withImm = [8]forms{aluAdd: {addImm8, addImm4}, aluOr: {orImm8, orImm4}, aluAnd: {andImm8, andImm4}, aluSub: {subImm8, subImm4}, aluXor: {xorImm8, xorImm4}, aluCmp: {cmpImm8, cmpImm4}}
	// By condition; none of overflow and parity.
	conditionals = [16]func(*Machine, *inst){2: jb, 3: jae, 4: je, 5: jne, 6: jbe, 7: ja, 8: js, 9: jns, 12: jl, 13: jge, 14: jle, 15: jg}
)

// address is that of the memory operand where no segment has a base and all of it counts.
func (m *Machine) address(in *inst) uint64 {
	return m.r[in.base&31] + m.r[in.index&31]<<(in.scale&63) + in.disp
}

// quick is the page of an address if it was looked up just now and has 8 bytes from it on, else nil.
func (m *Machine) quick(addr uint64) *page {
	p := m.tlb[addr/pageSize%tlbSize]
	if p.num != addr/pageSize || addr%pageSize > pageSize-8 {
		return nil
	}
	return p
}

func (m *Machine) loaded8(addr uint64) uint64 {
	m.log(addr, 8, false)
	if p := m.quick(addr); p != nil {
		return binary.LittleEndian.Uint64(p.data[addr%pageSize:])
	}
	return m.Peek(addr, 8)
}

func load8(m *Machine, in *inst) { m.r[in.reg&15] = m.loaded8(m.address(in)) }

func load4(m *Machine, in *inst) {
	a := m.address(in)
	m.log(a, 4, false)
	if p := m.quick(a); p != nil {
		m.r[in.reg&15] = uint64(binary.LittleEndian.Uint32(p.data[a%pageSize:]))
		return
	}
	m.r[in.reg&15] = m.Peek(a, 4)
}

func (m *Machine) stored8(addr, v uint64) {
	m.log(addr, 8, true)
	if p := m.quick(addr); p != nil && p.dirty && !p.code {
		binary.LittleEndian.PutUint64(p.data[addr%pageSize:], v)
		return
	}
	m.Poke(addr, 8, v)
}

func store8(m *Machine, in *inst) { m.stored8(m.address(in), m.r[in.reg&15]) }

func store4(m *Machine, in *inst) {
	a := m.address(in)
	m.log(a, 4, true)
	if p := m.quick(a); p != nil && p.dirty && !p.code {
		binary.LittleEndian.PutUint32(p.data[a%pageSize:], uint32(m.r[in.reg&15]))
		return
	}
	m.Poke(a, 4, m.r[in.reg&15])
}

func moveFrom8(m *Machine, in *inst) { m.r[in.reg&15] = m.r[in.rm&15] }
func moveFrom4(m *Machine, in *inst) { m.r[in.reg&15] = uint64(uint32(m.r[in.rm&15])) }
func moveTo8(m *Machine, in *inst)   { m.r[in.rm&15] = m.r[in.reg&15] }
func moveTo4(m *Machine, in *inst)   { m.r[in.rm&15] = uint64(uint32(m.r[in.reg&15])) }

func lea8(m *Machine, in *inst) { m.r[in.reg&15] = m.address(in) }
func lea4(m *Machine, in *inst) { m.r[in.reg&15] = uint64(uint32(m.address(in))) }

func pushForm(m *Machine, in *inst) {
	a := m.r[RSP] - 8
	m.stored8(a, m.r[in.rm&15])
	m.r[RSP] = a
}

func popForm(m *Machine, in *inst) {
	v := m.loaded8(m.r[RSP])
	m.r[RSP] += 8
	m.r[in.rm&15] = v
}

// zsp8 and zsp4 are zsp, and carry8 and carry4 carryFlags of that many bytes.
func zsp8(r uint64) uint64 {
	f := uint64(parity[byte(r)]) | r>>56&FlagSF
	if r == 0 {
		f |= FlagZF
	}
	return f
}

func zsp4(r uint64) uint64 {
	f := uint64(parity[byte(r)]) | r>>24&FlagSF
	if r == 0 {
		f |= FlagZF
	}
	return f
}

func carry8(c uint64) uint64 { return c>>63 | c<<1&FlagAF | (c>>63^c>>62&1)<<11 }
func carry4(c uint64) uint64 { return c>>31&1 | c<<1&FlagAF | (c>>31^c>>30)&1<<11 }

func (m *Machine) add8(a, b uint64) uint64 {
	r := a + b
	m.setFlags(zsp8(r) | carry8(a&b|(a|b)&^r))
	return r
}

// add4 is of operands that may have more bytes.
func (m *Machine) add4(a, b uint64) uint64 {
	a, b = uint64(uint32(a)), uint64(uint32(b))
	r := uint64(uint32(a + b))
	m.setFlags(zsp4(r) | carry4(a&b|(a|b)&^r))
	return r
}

func (m *Machine) sub8(a, b uint64) uint64 {
	r := a - b
	m.setFlags(zsp8(r) | carry8(^a&b|(^a|b)&r))
	return r
}

// sub4 is of operands that may have more bytes.
func (m *Machine) sub4(a, b uint64) uint64 {
	a, b = uint64(uint32(a)), uint64(uint32(b))
	r := uint64(uint32(a - b))
	m.setFlags(zsp4(r) | carry4(^a&b|(^a|b)&r))
	return r
}

func (m *Machine) logic8(r uint64) uint64 {
	m.setFlags(zsp8(r))
	return r
}

func (m *Machine) logic4(r uint64) uint64 {
	r = uint64(uint32(r))
	m.setFlags(zsp4(r))
	return r
}

func test8(m *Machine, in *inst) { m.logic8(m.r[in.rm&15] & m.r[in.reg&15]) }
func test4(m *Machine, in *inst) { m.logic4(m.r[in.rm&15] & m.r[in.reg&15]) }

func addReg8(m *Machine, in *inst) { m.r[in.rm&15] = m.add8(m.r[in.rm&15], m.r[in.reg&15]) }
func orReg8(m *Machine, in *inst)  { m.r[in.rm&15] = m.logic8(m.r[in.rm&15] | m.r[in.reg&15]) }
func andReg8(m *Machine, in *inst) { m.r[in.rm&15] = m.logic8(m.r[in.rm&15] & m.r[in.reg&15]) }
func subReg8(m *Machine, in *inst) { m.r[in.rm&15] = m.sub8(m.r[in.rm&15], m.r[in.reg&15]) }
func xorReg8(m *Machine, in *inst) { m.r[in.rm&15] = m.logic8(m.r[in.rm&15] ^ m.r[in.reg&15]) }
func cmpReg8(m *Machine, in *inst) { m.sub8(m.r[in.rm&15], m.r[in.reg&15]) }
func addReg4(m *Machine, in *inst) { m.r[in.rm&15] = m.add4(m.r[in.rm&15], m.r[in.reg&15]) }
func orReg4(m *Machine, in *inst)  { m.r[in.rm&15] = m.logic4(m.r[in.rm&15] | m.r[in.reg&15]) }
func andReg4(m *Machine, in *inst) { m.r[in.rm&15] = m.logic4(m.r[in.rm&15] & m.r[in.reg&15]) }
func subReg4(m *Machine, in *inst) { m.r[in.rm&15] = m.sub4(m.r[in.rm&15], m.r[in.reg&15]) }
func xorReg4(m *Machine, in *inst) { m.r[in.rm&15] = m.logic4(m.r[in.rm&15] ^ m.r[in.reg&15]) }
func cmpReg4(m *Machine, in *inst) { m.sub4(m.r[in.rm&15], m.r[in.reg&15]) }

func addImm8(m *Machine, in *inst) { m.r[in.rm&15] = m.add8(m.r[in.rm&15], in.imm) }
func orImm8(m *Machine, in *inst)  { m.r[in.rm&15] = m.logic8(m.r[in.rm&15] | in.imm) }
func andImm8(m *Machine, in *inst) { m.r[in.rm&15] = m.logic8(m.r[in.rm&15] & in.imm) }
func subImm8(m *Machine, in *inst) { m.r[in.rm&15] = m.sub8(m.r[in.rm&15], in.imm) }
func xorImm8(m *Machine, in *inst) { m.r[in.rm&15] = m.logic8(m.r[in.rm&15] ^ in.imm) }
func cmpImm8(m *Machine, in *inst) { m.sub8(m.r[in.rm&15], in.imm) }
func addImm4(m *Machine, in *inst) { m.r[in.rm&15] = m.add4(m.r[in.rm&15], in.imm) }
func orImm4(m *Machine, in *inst)  { m.r[in.rm&15] = m.logic4(m.r[in.rm&15] | in.imm) }
func andImm4(m *Machine, in *inst) { m.r[in.rm&15] = m.logic4(m.r[in.rm&15] & in.imm) }
func subImm4(m *Machine, in *inst) { m.r[in.rm&15] = m.sub4(m.r[in.rm&15], in.imm) }
func xorImm4(m *Machine, in *inst) { m.r[in.rm&15] = m.logic4(m.r[in.rm&15] ^ in.imm) }
func cmpImm4(m *Machine, in *inst) { m.sub4(m.r[in.rm&15], in.imm) }

// Conditional jumps.

func jb(m *Machine, in *inst) {
	if m.flags&FlagCF != 0 {
		m.rip = in.imm
	}
}

func jae(m *Machine, in *inst) {
	if m.flags&FlagCF == 0 {
		m.rip = in.imm
	}
}

func je(m *Machine, in *inst) {
	if m.flags&FlagZF != 0 {
		m.rip = in.imm
	}
}

func jne(m *Machine, in *inst) {
	if m.flags&FlagZF == 0 {
		m.rip = in.imm
	}
}

func jbe(m *Machine, in *inst) {
	if m.flags&(FlagCF|FlagZF) != 0 {
		m.rip = in.imm
	}
}

func ja(m *Machine, in *inst) {
	if m.flags&(FlagCF|FlagZF) == 0 {
		m.rip = in.imm
	}
}

func js(m *Machine, in *inst) {
	if m.flags&FlagSF != 0 {
		m.rip = in.imm
	}
}

func jns(m *Machine, in *inst) {
	if m.flags&FlagSF == 0 {
		m.rip = in.imm
	}
}

func jl(m *Machine, in *inst) {
	if (m.flags>>7^m.flags>>11)&1 != 0 {
		m.rip = in.imm
	}
}

func jge(m *Machine, in *inst) {
	if (m.flags>>7^m.flags>>11)&1 == 0 {
		m.rip = in.imm
	}
}

func jle(m *Machine, in *inst) {
	if (m.flags>>7^m.flags>>11)&1 != 0 || m.flags&FlagZF != 0 {
		m.rip = in.imm
	}
}

func jg(m *Machine, in *inst) {
	if (m.flags>>7^m.flags>>11)&1 == 0 && m.flags&FlagZF == 0 {
		m.rip = in.imm
	}
}
