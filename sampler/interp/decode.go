package interp

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

var errShort = errors.New("instruction is cut off")

// decoder reads one instruction.
type decoder struct {
	in  *inst
	b   []byte
	pos int
	rip uint64

	short    bool // ran out of bytes
	has66    bool
	opsize   bool // 66 that makes operands 16 bits, that is without REX.W
	rep      uint8
	lock     bool
	lockable bool  // allowed with a lock prefix if the operand is memory
	rex      uint8 // 0 if absent
	op       uint8 // where it is of one byte
	ripRel   bool

	r, x, base uint8 // extensions of modrm.reg, index and base, as bits 3 (and 4)

	vex, evex bool
	wbit      bool
	pp        uint8 // 0 none, 1 66, 2 f3, 3 f2
	opmap     uint8 // 1 0f, 2 0f38, 3 0f3a
	vvvv      uint8
	ll        uint8 // vector length 0-3
	aaa       uint8 // opmask
	z, bc     bool  // EVEX.z, EVEX.b
	vsib      bool  // the index is a vector register
	noSIB     bool  // but there is none
}

// decode fills in with the instruction that b starts with. What is not
// supported gets a handler that ends the burst. The only error is errShort: b
// ends inside the instruction.
func decode(in *inst, rip uint64, b []byte) error {
	d := decoder{in: in, b: b, rip: rip}
	in.at, in.base, in.index, in.vecForm = rip, noReg, noReg, &noForm
	d.instruction()
	if d.short {
		in.refuse() // longer than 15 bytes, unless the caller has more
		return errShort
	}
	in.next = rip + uint64(d.pos)
	if d.ripRel {
		in.disp += in.next
	}
	if d.lock {
		in.flags |= isLocked
		if in.fn != nil && !(d.lockable && in.mem) {
			in.refuse()
		}
	}
	if in.fn == nil {
		in.fn = unsupported
	}
	if in.flags == 0 && in.seg == segNone && !in.addr32 && d.opmap == 0 && !d.vex {
		if fn := d.form(d.op); fn != nil {
			in.fn = fn
		}
	}
	return nil
}

func unsupported(*Machine, *inst) { panic(Halt{Cause: Unsupported}) }

func undefined(*Machine, *inst) { fault() }

// refuse has an instruction fault, as the CPU does, also where it would be run natively.
func (in *inst) refuse() {
	if in.fn = undefined; in.nat != nil {
		in.nat = nil
	}
}

func (d *decoder) byte() byte {
	if d.pos >= len(d.b) {
		d.short = true
		return 0
	}
	d.pos++
	return d.b[d.pos-1]
}

// peek is the next byte, which stays unread.
func (d *decoder) peek() byte {
	if d.pos >= len(d.b) {
		d.short = true
		return 0
	}
	return d.b[d.pos]
}

// signed reads an n-byte little-endian integer, sign-extended.
func (d *decoder) signed(n uint8) uint64 {
	var v uint64
	for i := uint8(0); i < n; i++ {
		v |= uint64(d.byte()) << (8 * i)
	}
	s := 64 - 8*uint(n)
	return uint64(int64(v<<s) >> s)
}

func (d *decoder) instruction() {
	for {
		b := d.byte()
		switch b {
		case 0x66:
			d.has66 = true
		case 0x67:
			d.in.addr32 = true
		case 0xf2, 0xf3:
			d.rep = b
		case 0xf0:
			d.lock = true
		case 0x64:
			d.in.seg = segFS
		case 0x65:
			d.in.seg = segGS
		case 0x2e, 0x36, 0x3e, 0x26:
		default:
			if b&0xf0 == 0x40 {
				d.rex = b
				// Only directly before the opcode does REX count.
				if n := d.peek(); isPrefix(n) || n&0xf0 == 0x40 {
					d.rex = 0
					continue
				}
				b = d.byte()
			}
			d.opcode(b)
			return
		}
		if d.short {
			return
		}
	}
}

func isPrefix(b byte) bool {
	switch b {
	case 0x66, 0x67, 0xf2, 0xf3, 0xf0, 0x64, 0x65, 0x2e, 0x36, 0x3e, 0x26:
		return true
	}
	return false
}

// opcode dispatches on the opcode map.
func (d *decoder) opcode(b byte) {
	d.wbit = d.rex&8 != 0
	d.r = d.rex >> 2 & 1 << 3
	d.x = d.rex >> 1 & 1 << 3
	d.base = d.rex & 1 << 3
	d.in.rep = d.rep
	d.opsize = d.has66 && !d.wbit
	switch {
	case d.wbit:
		d.in.w = 8
	case d.opsize:
		d.in.w = 2
	default:
		d.in.w = 4
	}
	switch b {
	case 0x0f:
		d.escape()
	case 0xc4, 0xc5:
		d.vexPrefix(b)
	case 0x62:
		d.evexPrefix()
	default:
		d.op = b
		d.oneByte(b)
	}
}

// escape decodes after 0f, which starts all legacy two- and three-byte opcodes.
func (d *decoder) escape() {
	switch {
	case d.rep == 0xf3:
		d.pp = 2
	case d.rep == 0xf2:
		d.pp = 3
	case d.has66:
		d.pp = 1
	}
	b := d.byte()
	switch b {
	case 0x38:
		d.opmap = 2
		b = d.byte()
		if !d.threeByte38(b) {
			d.vector(b)
		}
	case 0x3a:
		d.opmap = 3
		d.vector(d.byte())
	default:
		d.opmap = 1
		if !d.twoByte(b) {
			d.vector(b)
		}
	}
}

func (d *decoder) vexPrefix(b byte) {
	if d.rex != 0 || d.has66 || d.rep != 0 || d.lock {
		d.in.refuse()
		return
	}
	d.vex = true
	p := d.byte()
	d.r = ^p >> 7 & 1 << 3
	d.opmap = 1
	if b == 0xc4 {
		d.x = ^p >> 6 & 1 << 3
		d.base = ^p >> 5 & 1 << 3
		d.opmap = p & 31
		p = d.byte()
		d.wbit = p&0x80 != 0
	}
	d.vvvv = ^p >> 3 & 15
	d.ll = p >> 2 & 1
	d.pp = p & 3
	op := d.byte()
	if !d.vexInteger(op) {
		d.vector(op)
	}
}

func (d *decoder) evexPrefix() {
	if d.rex != 0 || d.has66 || d.rep != 0 || d.lock {
		d.in.refuse()
		return
	}
	d.vex, d.evex = true, true
	p0, p1, p2 := d.byte(), d.byte(), d.byte()
	if p0&8 != 0 || p1&4 == 0 {
		d.in.refuse()
		return
	}
	d.r = ^p0>>7&1<<3 | ^p0>>4&1<<4
	d.x = ^p0 >> 6 & 1 << 3
	d.base = ^p0 >> 5 & 1 << 3
	d.opmap = p0 & 7
	d.wbit = p1&0x80 != 0
	d.vvvv = ^p1>>3&15 | ^p2>>3&1<<4
	d.pp = p1 & 3
	d.z = p2&0x80 != 0
	d.ll = p2 >> 5 & 3
	d.bc = p2&0x10 != 0
	d.aaa = p2 & 7
	d.vector(d.byte())
}

// modRM reads modrm, SIB and displacement; disp8 counts units of n bytes.
func (d *decoder) modRM(n int64) {
	in := d.in
	b := d.byte()
	in.reg = b>>3&7 | d.r
	mod, rm := b>>6, b&7
	if mod == 3 {
		in.rm = rm | d.base
		if d.evex {
			in.rm |= d.x << 1
		}
		return
	}
	in.mem = true
	in.base = rm | d.base
	if d.vsib && rm != 4 {
		d.noSIB = true
	}
	if rm == 4 {
		sib := d.byte()
		in.scale = sib >> 6
		in.index = sib>>3&7 | d.x
		if d.vsib {
			in.index |= d.vvvv & 16
		} else if in.index == RSP {
			in.index = noReg
		}
		in.base = sib&7 | d.base
		rm = sib & 7
		if rm == 5 && mod == 0 {
			in.base = noReg
			in.disp = d.signed(4)
			return
		}
	} else if rm == 5 && mod == 0 {
		in.base = noReg
		in.disp = d.signed(4)
		d.ripRel = true
		return
	}
	switch mod {
	case 1:
		in.disp = d.signed(1) * uint64(n)
	case 2:
		in.disp = d.signed(4)
	}
}

// reg8 maps an encoded byte register: without REX, 4-7 are the high bytes.
func (d *decoder) reg8(r uint8) uint8 {
	if d.rex == 0 && r >= 4 && r < 8 {
		return r - 4 + highByte
	}
	return r
}

// operands reads modrm for operands of the current size, or of one byte.
func (d *decoder) operands(bytes bool) {
	d.modRM(1)
	if bytes {
		d.in.w = 1
		d.in.reg = d.reg8(d.in.reg)
		if !d.in.mem {
			d.in.rm = d.reg8(d.in.rm)
		}
	}
}

// immZ reads an immediate of the operand size, of at most 4 bytes.
func (d *decoder) immZ() {
	d.in.imm = d.signed(min(d.in.w, 4))
}

// imm8 reads a sign-extended byte.
func (d *decoder) imm8() { d.in.imm = d.signed(1) }

// nameAt names the instruction at rip for the count of what is not supported:
// its mnemonic, or its first bytes if that is not known.
func (m *Machine) nameAt(rip uint64) string {
	b := m.window[:0]
	for i := uint64(0); i < 15; i++ {
		if i > 0 && (rip+i)%pageSize == 0 && m.pages[(rip+i)/pageSize] == nil {
			break
		}
		b = append(b, m.at(rip + i).data[(rip+i)%pageSize])
	}
	return mnemonic(b)
}

func mnemonic(b []byte) string {
	in, err := x86asm.Decode(b, 64)
	if err != nil || in.Op == 0 {
		return fmt.Sprintf("% x", b[:min(len(b), 6)])
	}
	return strings.ToLower(in.Op.String())
}
