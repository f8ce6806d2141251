package operand

import (
	"encoding/binary"
	"fmt"
)

// x86Decoder is the state of decoding one instruction.
type x86Decoder struct {
	code []byte
	pos  int

	prefix66, lock, addr32 bool
	rep                    uint8 // 0, 0xf3, 0xf2: the last one given
	seg                    uint8
	rex                    uint8

	enc       uint8
	opMap     uint8
	op        uint8
	pp        uint8 // prefix set bit
	w         uint8
	l         uint8 // vector length, 0 1 2 (3 is reserved)
	r, x, b   uint8 // register number extensions, 0 or 8
	r2, v2    uint8 // EVEX: 0 or 16
	vvvv      uint8
	evexB     bool
	opMask    uint8
	modrm     uint8
	truncated bool
}

func (d *x86Decoder) byte() uint8 {
	if d.pos >= len(d.code) {
		d.truncated = true
		return 0
	}
	d.pos++
	return d.code[d.pos-1]
}

func (d *x86Decoder) signed(n int) int64 {
	if d.pos+n > len(d.code) {
		d.truncated = true
		return 0
	}
	p := d.code[d.pos:]
	d.pos += n
	switch n {
	case 1:
		return int64(int8(p[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(p)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(p)))
	}
	return int64(binary.LittleEndian.Uint64(p))
}

func (d *x86Decoder) unsupported(why string) error {
	name := fmt.Sprintf("%02x", d.op)
	switch d.opMap {
	case 1:
		name = "0f " + name
	case 2:
		name = "0f38 " + name
	case 3:
		name = "0f3a " + name
	default:
		if d.opMap > 3 {
			name = fmt.Sprintf("map%d %s", d.opMap, name)
		}
	}
	switch d.enc {
	case encVEX:
		name = "vex " + name
	case encEVEX:
		name = "evex " + name
	}
	if d.modrm != 0 {
		name += fmt.Sprintf(" /%d", d.modrm>>3&7)
	}
	return &UnsupportedError{name, why}
}

func (d *x86Decoder) decode(in *X86Inst) error {
	if err := d.prefixes(); err != nil {
		return err
	}
	forms := x86Maps[d.opMap][d.op]
	if len(forms) == 0 {
		return d.unsupported("not in the table")
	}
	// Whether a ModRM byte follows never differs between the forms of one
	// opcode, except for vzeroupper's neighbours, which have none at all.
	if forms[0].modrm {
		d.modrm = d.byte()
	}
	if d.truncated {
		return nil
	}
	form := d.match(forms)
	if form == nil {
		return d.unsupported("no such form in the table")
	}
	return d.fill(in, form)
}

func (d *x86Decoder) match(forms []x86Form) *x86Form {
	isReg := d.modrm >= 0xc0
	for i := range forms {
		f := &forms[i]
		if f.enc&d.enc == 0 || f.prefix&d.pp == 0 || f.w>>d.w&1 == 0 || d.enc == encEVEX && f.evexW>>d.w&1 == 0 {
			continue
		}
		if !f.modrm {
			return f
		}
		if f.regs>>(d.modrm>>3&7)&1 == 0 {
			continue
		}
		if isReg {
			// In register forms EVEX.b turns the length bits into a rounding mode.
			if f.mod&modReg == 0 || f.rms>>(d.modrm&7)&1 == 0 || f.l>>d.l&1 == 0 && !d.evexB {
				continue
			}
		} else if f.mod&modMem == 0 || f.l>>d.l&1 == 0 {
			continue
		}
		return f
	}
	return nil
}

func (d *x86Decoder) operandSize() uint16 {
	switch {
	case d.w == 1:
		return 8
	case d.prefix66:
		return 2
	}
	return 4
}

// bytes resolves a memory size.
func (d *x86Decoder) bytes(k sizeKind) uint16 {
	vl := uint16(16) << d.l
	switch k {
	case sizeV:
		return d.operandSize()
	case sizeQ:
		if d.prefix66 && d.w == 0 {
			return 2
		}
		return 8
	case sizeY:
		return 4 << d.w
	case sizeX:
		return vl
	case sizeX2:
		return vl / 2
	case sizeX4:
		return vl / 4
	case sizeX8:
		return vl / 8
	case sizeDup:
		if d.l == 0 {
			return 8
		}
		return vl
	case sizeEnv, sizeSav:
		n := uint16(28)
		if d.operandSize() == 2 {
			n = 14
		}
		if k == sizeSav {
			n += 80
		}
		return n
	case sizeCX:
		return 8 << d.w
	}
	return uint16(k)
}

func (d *x86Decoder) fill(in *X86Inst, f *x86Form) error {
	in.shape, in.Branch = f.shape, f.branch
	in.base, in.index, in.bitReg, in.vecMask = noReg, noReg, noReg, noReg
	in.seg, in.addr32 = d.seg, d.addr32
	in.nf, in.part, in.indexQ = f.nf, f.part, f.indexQ
	isMem := f.modrm && d.modrm < 0xc0
	if isMem || !f.modrm || f.shape == shapeMaskMov {
		in.load, in.store = f.load, f.store
	}
	if in.load || in.store {
		in.size = d.bytes(f.size)
	}
	if isMem {
		if (f.size == sizeEnv || f.size == sizeSav) && d.prefix66 && d.w == 1 {
			return d.unsupported("x87 environment with both operand-size prefixes")
		}
		if !f.address {
			return d.unsupported("no memory form in the table")
		}
		if err := d.memory(in, f); err != nil {
			return err
		}
	}
	if d.lock && !(isMem && f.load && f.store) {
		return d.unsupported("LOCK on what is no read-modify-write of memory")
	}
	d.registers(in, f, isMem)
	// Intel ignores a 66 prefix here, AMD truncates the target: which one is not known.
	if f.branch != BranchNone && f.branch != BranchTrap && f.branch != BranchSyscall && d.prefix66 && d.w == 0 {
		return d.unsupported("near branch with operand-size prefix")
	}
	if d.opMap == 0 && d.op&0xfe == 0xe0 && d.rep != 0 {
		return d.unsupported("loope or loopne with a REP prefix") // Zen 4 lets the prefix choose the condition
	}
	if err := d.immediate(in, f); err != nil {
		return err
	}
	return d.special(in, f, isMem)
}

// memory decodes ModRM, SIB and displacement, and what EVEX adds to them.
func (d *x86Decoder) memory(in *X86Inst, f *x86Form) error {
	mod, rm := d.modrm>>6, d.modrm&7
	in.base = rm | d.b
	if rm == 4 {
		sib := d.byte()
		in.base = sib&7 | d.b
		in.index, in.scale = sib>>3&7|d.x, sib>>6
		if f.shape == shapeGather {
			in.index |= d.v2
		} else if in.index == rsp {
			in.index = noReg
		}
		if sib&7 == rbp && mod == 0 {
			in.base = noReg
			in.disp = d.signed(4)
		}
	} else if f.shape == shapeGather {
		return d.unsupported("gather without an index vector")
	} else if rm == 5 && mod == 0 {
		in.base = ripBase
		in.disp = d.signed(4)
	}
	// disp8 of EVEX counts memory operands, or elements of a broadcast or gather.
	elem := f.elem
	if elem == elemByW {
		elem = 4 << d.w
	}
	shift := int64(1)
	if d.enc == encEVEX {
		if d.l == 3 {
			return d.unsupported("reserved vector length")
		}
		shift = int64(d.bytes(f.size))
		if d.evexB {
			if !f.bcast {
				return d.unsupported("broadcast bit without a broadcast form")
			}
			in.shape = shapeSplat
			in.size = uint16(elem)
			shift = int64(elem)
		}
		if f.shape == shapeGather || f.shape == shapePack {
			shift = int64(elem)
		}
		in.opMask = d.opMask
	}
	switch mod {
	case 1:
		in.disp = d.signed(1) * shift
	case 2:
		in.disp = d.signed(4)
	}
	in.elem = elem
	if elem != 0 {
		n := d.bytes(f.size) / uint16(elem)
		if f.shape == shapeSplat {
			n = 16 << d.l / uint16(elem)
		}
		in.lanes = uint8(n)
	}
	return nil
}

// registers works out what is written and what addresses depend on.
func (d *x86Decoder) registers(in *X86Inst, f *x86Form, isMem bool) {
	if d.opMap == 0 && d.op == 0x90 && d.b == 0 {
		return // nop and pause, not xchg rax, rax: that would clear the upper half under 32 bits
	}
	w := f.fixed
	byteNumber := func(n uint8, isByte bool) RegSet {
		if isByte && d.rex == 0 && n >= 4 {
			n -= 4 // ah, ch, dh, bh
		}
		return 1 << n
	}
	if f.rg {
		w |= byteNumber(d.modrm>>3&7|d.r, f.byteReg)
	}
	if f.rb && !isMem {
		w |= byteNumber(d.modrm&7|d.b, f.byteRM)
	}
	if f.rv {
		w |= 1 << d.vvvv
	}
	if f.ro {
		w |= byteNumber(d.op&7|d.b, f.byteReg)
	}
	if f.vectorDefault && !(isMem && f.store && !f.load) {
		w |= RegVector
	}
	in.Writes = w
}

func (d *x86Decoder) immediate(in *X86Inst, f *x86Form) error {
	size := d.operandSize()
	switch f.imm {
	case imm8:
		d.signed(1)
	case imm16:
		d.signed(2)
	case imm16and8:
		d.signed(2)
		if level := d.byte(); f.shape == shapeEnter && level&31 != 0 {
			return d.unsupported("nested enter")
		}
	case immZ:
		d.signed(int(min(size, 4)))
	case immV:
		d.signed(int(size))
	case imm32:
		d.signed(4)
	case immMoffs:
		n := 8
		if d.addr32 {
			n = 4
		}
		in.disp = d.signed(n)
		if n == 4 {
			in.disp = int64(uint32(in.disp))
		}
	case immRel8:
		in.rel = d.signed(1)
	case immRelZ:
		in.rel = d.signed(4)
	}
	return nil
}

// special does what only a few shapes need.
func (d *x86Decoder) special(in *X86Inst, f *x86Form, isMem bool) error {
	addr := RegSet(0)
	if isMem && f.shape != shapeGather && in.index != noReg {
		addr |= 1 << in.index
	}
	if isMem && in.base < ripBase {
		addr |= 1 << in.base
	}
	if in.seg != 0 && (isMem || !f.modrm) {
		addr |= RegSegment
	}
	switch f.shape {
	case shapePush, shapePop:
		in.stack = uint8(d.bytes(sizeQ))
		addr |= 1 << rsp
	case shapePushMem, shapePopMem:
		in.stack = uint8(d.bytes(sizeQ))
		in.load, in.store = isMem || f.shape == shapePopMem, isMem || f.shape == shapePushMem
		addr |= 1 << rsp
	case shapeCall, shapeCallMem, shapeReturn:
		in.stack = 8
		in.store = f.shape != shapeReturn
		addr |= 1 << rsp
	case shapeEnter:
		in.stack = uint8(d.bytes(sizeQ))
		addr |= 1 << rsp
	case shapeLeave:
		in.stack = uint8(d.bytes(sizeQ))
		addr |= 1 << rbp
	case shapeMovs, shapeCmps, shapeStos, shapeLods, shapeScas:
		if f.shape != shapeStos && f.shape != shapeScas {
			addr |= 1 << rsi
		}
		if f.shape != shapeLods {
			addr |= 1 << rdi
		}
		if d.rep != 0 {
			in.Rep = true
			in.Writes |= 1 << rcx
			addr |= 1 << rcx
		}
	case shapeXlat:
		addr |= 1<<rax | 1<<rbx
	case shapeMaskMov:
		addr |= 1<<rdi | RegVector
		if in.size == 16 { // an MMX mask is not among the registers we are given
			in.vecMask, in.elem, in.lanes = d.modrm&7|d.b, 1, 16
		}
	case shapeBit:
		if isMem {
			if d.addr32 {
				return d.unsupported("bit string with 32-bit addressing") // no source says where it wraps
			}
			in.bitReg = d.modrm>>3&7 | d.r
			addr |= 1 << in.bitReg
		}
	case shapeMovDir64:
		in.bitReg = d.modrm>>3&7 | d.r
		in.store = true
		addr |= 1 << in.bitReg
	case shapeVMask:
		in.vecMask = d.vvvv
		addr |= RegVector
	case shapeGather:
		in.size = uint16(in.elem)
		index := uint16(4)
		if f.indexQ {
			index = 8
		}
		in.lanes = uint8((16 << d.l) / max(index, uint16(in.elem)))
		if d.enc == encVEX {
			in.vecMask = d.vvvv
			in.Writes |= RegVector
		} else {
			if d.opMask == 0 {
				return d.unsupported("gather or scatter without a mask")
			}
			in.Writes |= RegMask
		}
		if f.load {
			in.Writes |= RegVector
		}
		addr |= RegVector
	}
	if in.opMask != 0 && !in.nf {
		addr |= RegMask
	}
	if in.load || in.store {
		in.AddrRegs = addr
	}
	switch {
	case f.branch == BranchCond && d.opMap == 0 && d.op >= 0xe0:
		in.cond = condLoopNE + d.op - 0xe0
	case f.branch == BranchCond:
		in.cond = d.op & 15
	}
	return nil
}
