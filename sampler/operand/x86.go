package operand

import (
	"encoding/binary"
	"fmt"
)

// RegSet is a set of registers. Bits 0 to 31 are the general registers in
// encoding order (x86-64: rax rcx rdx rbx rsp rbp rsi rdi r8..r15; arm64: x0..x30, sp).
type RegSet uint64

// Register groups that are tracked as a whole.
const (
	RegFlags   RegSet = 1 << (32 + iota) // RFLAGS, NZCV
	RegVector                            // any vector, SIMD or MMX register
	RegMask                              // any AVX-512 mask register
	RegSegment                           // FS or GS base, TPIDR
)

// x86-64 general registers, by encoding.
const (
	rax = iota
	rcx
	rdx
	rbx
	rsp
	rbp
	rsi
	rdi
)

const (
	noReg   = 0xff
	ripBase = 0x10
	// maxX86Len is the architecture's limit; longer encodings fault.
	maxX86Len = 15
)

// X86Inst is a decoded instruction of 64-bit mode. It is a plain value,
// independent of register contents, and can be cached by its code bytes.
type X86Inst struct {
	Len      uint8  // bytes
	Branch   Branch // how it can leave straight-line flow
	Rep      bool   // a string instruction with a REP prefix: Len bytes are run once per element
	Writes   RegSet // registers it may write
	AddrRegs RegSet // registers its addresses (and active lanes) depend on

	shape       x86Shape
	load, store bool
	base, index uint8 // register number, ripBase or noReg; index is a vector register for gathers
	scale       uint8 // shift
	seg         uint8 // 0 none, 1 fs, 2 gs
	addr32      bool
	stack       uint8 // bytes pushed or popped
	size        uint16
	cond        uint8 // condition code, or condLoop...
	bitReg      uint8 // bt: the bit index; movdir64b: the destination address
	opMask      uint8 // EVEX mask register, 0 none
	vecMask     uint8 // VEX mask vector, noReg
	elem        uint8 // bytes of a lane under mask
	lanes       uint8 // number of lanes under mask
	nf          bool  // EVEX mask does not suppress the access
	part        bool  // the CPU may touch only part of the operand
	indexQ      bool
	disp        int64
	rel         int64
}

// Conditions of loop and jrcxz follow the sixteen of jcc.
const (
	condLoopNE = 16 + iota
	condLoopE
	condLoop
	condRCXZ
)

// Touches reports whether the instruction can access memory at all.
func (in *X86Inst) Touches() bool { return in.load || in.store }

// Loads and Stores report the directions of the accesses, whatever the registers.
func (in *X86Inst) Loads() bool { return in.load }

// Stores reports whether some access is a store.
func (in *X86Inst) Stores() bool { return in.store }

// Target is the address a direct branch at ip goes to when taken.
func (in *X86Inst) Target(ip uint64) uint64 { return ip + uint64(in.Len) + uint64(in.rel) }

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

// DecodeX86 decodes the first instruction of code, as 64-bit mode would.
// It does not check every reserved field: some encodings that the CPU refuses
// (#UD, so without any access) decode, such as VEX.vvvv set where it is unused.
// Fifteen bytes are always enough. The error is ErrTruncated or an
// *UnsupportedError.
func DecodeX86(code []byte) (X86Inst, error) {
	var in X86Inst
	d := x86Decoder{code: code[:min(len(code), maxX86Len)]}
	err := d.decode(&in)
	if d.truncated {
		if len(code) >= maxX86Len {
			return X86Inst{}, &UnsupportedError{"overlong", "more than 15 bytes"}
		}
		return X86Inst{}, ErrTruncated
	}
	if err != nil {
		return X86Inst{}, err
	}
	in.Len = uint8(d.pos)
	return in, nil
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

// prefixes consumes everything before ModRM: legacy prefixes, REX, VEX or EVEX, opcode.
func (d *x86Decoder) prefixes() error {
	d.enc, d.pp = encLegacy, prefixNone
	for {
		c := d.byte()
		switch c {
		case 0x66:
			d.prefix66, d.rex = true, 0
			continue
		case 0x67:
			d.addr32, d.rex = true, 0
			continue
		case 0xf0:
			d.lock, d.rex = true, 0
			continue
		case 0xf2, 0xf3:
			d.rep, d.rex = c, 0
			continue
		case 0x26, 0x2e, 0x36, 0x3e:
			// ES, CS, SS and DS have base 0 and do not undo an earlier FS or GS:
			// the last FS or GS prefix counts in 64-bit mode.
			d.rex = 0
			continue
		case 0x64:
			d.seg, d.rex = 1, 0
			continue
		case 0x65:
			d.seg, d.rex = 2, 0
			continue
		}
		if c&0xf0 == 0x40 {
			d.rex = c
			continue
		}
		if d.truncated {
			return nil
		}
		d.op = c
		break
	}
	switch d.op {
	case 0xc5:
		return d.vex2()
	case 0xc4:
		return d.vex3()
	case 0x62:
		return d.evex()
	case 0xd5:
		return d.unsupported("REX2 (APX)")
	case 0x8f:
		if d.pos < len(d.code) && d.code[d.pos]&0x1f >= 8 {
			return d.unsupported("XOP")
		}
	}
	d.w = d.rex >> 3 & 1
	d.r, d.x, d.b = d.rex<<1&8, d.rex<<2&8, d.rex<<3&8
	if d.op == 0x0f {
		d.opMap, d.op = 1, d.byte()
		switch d.op {
		case 0x38:
			d.opMap, d.op = 2, d.byte()
		case 0x3a:
			d.opMap, d.op = 3, d.byte()
		}
	}
	switch {
	case d.rep == 0xf3:
		d.pp = prefixF3
	case d.rep == 0xf2:
		d.pp = prefixF2
	case d.prefix66:
		d.pp = prefix66
	}
	return nil
}

func (d *x86Decoder) checkVectorPrefix() error {
	if d.rex != 0 || d.prefix66 || d.rep != 0 || d.lock {
		return d.unsupported("legacy prefix before a vector prefix")
	}
	return nil
}

func (d *x86Decoder) vex2() error {
	if err := d.checkVectorPrefix(); err != nil {
		return err
	}
	p := d.byte()
	d.enc, d.opMap = encVEX, 1
	d.r = ^p >> 4 & 8
	d.vectorBits(p)
	d.op = d.byte()
	return nil
}

func (d *x86Decoder) vex3() error {
	if err := d.checkVectorPrefix(); err != nil {
		return err
	}
	p0, p1 := d.byte(), d.byte()
	d.enc, d.opMap = encVEX, p0&31
	d.r, d.x, d.b = ^p0>>4&8, ^p0>>3&8, ^p0>>2&8
	d.w = p1 >> 7
	d.vectorBits(p1)
	d.op = d.byte()
	if d.opMap < 1 || d.opMap > 3 {
		return d.unsupported("VEX opcode map")
	}
	return nil
}

// vectorBits takes vvvv, L and pp from where both VEX forms have them.
func (d *x86Decoder) vectorBits(p uint8) {
	d.vvvv = ^p >> 3 & 15
	d.l = p >> 2 & 1
	d.pp = [4]uint8{prefixNone, prefix66, prefixF3, prefixF2}[p&3]
}

func (d *x86Decoder) evex() error {
	if err := d.checkVectorPrefix(); err != nil {
		return err
	}
	p0, p1, p2 := d.byte(), d.byte(), d.byte()
	d.op = d.byte()
	d.enc, d.opMap = encEVEX, p0&7
	if p0&8 != 0 || p1&4 == 0 || d.opMap == 0 || d.opMap == 4 || d.opMap == 7 {
		d.opMap = 0
		return d.unsupported("EVEX opcode map, or APX")
	}
	d.r, d.x, d.b = ^p0>>4&8, ^p0>>3&8, ^p0>>2&8
	d.r2, d.v2 = ^p0&16, ^p2<<1&16
	d.vectorBits(p1)
	d.w = p1 >> 7
	d.l = p2 >> 5 & 3
	d.evexB = p2&16 != 0
	d.opMask = p2 & 7
	return nil
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
		} else if d.opMask == 0 {
			return d.unsupported("gather or scatter without a mask")
		}
		in.Writes |= RegMask
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
