package sampler

import (
	"errors"
	"math/bits"

	"github.com/rdx-profiler/rdx/sampler/operand"
)

// a64Lookahead is how many instructions without a memory access are looked at
// before a sample is given up.
const a64Lookahead = 256

// a64Follower goes from where a thread stands to its next access. What the
// instructions before it do to the registers is followed for plain integer
// arithmetic, enough for loop counters and addresses; a register that anything
// else writes is unknown from then on, and an access or branch that depends on
// it is declined, never guessed.
type a64Follower struct {
	operand.ARM64Regs
	unknown  operand.RegSet
	accesses []operand.Access
}

// follow decodes from f.PC on; code reads one instruction.
func (f *a64Follower) follow(code func(pc uint64) ([]byte, error), pick func(n int) int) (Located, error) {
	f.unknown = 0
	for range a64Lookahead {
		b, err := code(f.PC)
		if err != nil {
			return Located{}, &Declined{Reason: "code not readable"}
		}
		in, err := operand.DecodeARM64(b)
		var unsupported *operand.UnsupportedError
		switch {
		case errors.As(err, &unsupported):
			return Located{}, &Declined{Reason: "instruction not supported", Op: unsupported.Name}
		case err != nil:
			return Located{}, &Declined{Reason: "code not readable"}
		case in.Touches():
			return f.located(&in, pick)
		}
		next := f.PC + 4
		switch in.Branch {
		case operand.BranchNone:
			f.execute(&in, uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24)
		case operand.BranchJump:
			next = in.Target(f.PC)
		case operand.BranchCall:
			f.set(30, next, true)
			next = in.Target(f.PC)
		case operand.BranchCond:
			if in.CondRegs()&f.unknown != 0 {
				return Located{}, &Declined{Reason: "branch not known yet"}
			}
			if in.Taken(&f.ARM64Regs) {
				next = in.Target(f.PC)
			}
		default:
			return Located{}, &Declined{Reason: "no access before " + in.Branch.String()}
		}
		f.PC = next
	}
	return Located{}, &Declined{Reason: "no access before end of look-ahead"}
}

func (f *a64Follower) located(in *operand.ARM64Inst, pick func(n int) int) (Located, error) {
	if in.AddrRegs&f.unknown != 0 {
		return Located{}, &Declined{Reason: "address not known yet"}
	}
	var err error
	f.accesses, err = in.Accesses(&f.ARM64Regs, f.accesses[:0])
	if err != nil {
		return Located{}, &Declined{Reason: "instruction not supported", Op: "dc zva"}
	}
	a := f.accesses[pick(len(f.accesses))]
	// The top byte is the program's own (TBI); the kernel wants the address
	// without it.
	addr := uint64(int64(a.Addr<<8) >> 8)
	return Located{Addr: addr, Size: a.Size, Store: a.Store, PC: f.PC, Next: f.PC}, nil
}

// get and set see register 31 as SP or as zero, as the instruction does; get
// is false if the value is unknown.
func (f *a64Follower) get(n uint32, sp bool) (uint64, bool) {
	switch {
	case n == 31 && sp:
		return f.SP, f.unknown>>31&1 == 0
	case n == 31:
		return 0, true
	}
	return f.X[n], f.unknown>>n&1 == 0
}

func (f *a64Follower) set(n uint32, v uint64, sp bool) {
	switch {
	case n == 31 && sp:
		f.SP = v
	case n == 31:
		return
	default:
		f.X[n] = v
	}
	f.unknown &^= 1 << n
}

// execute does what a plain integer instruction does; of any other, the
// registers it writes become unknown.
func (f *a64Follower) execute(in *operand.ARM64Inst, w uint32) {
	was := f.unknown
	f.unknown |= in.Writes
	wide := w>>31 == 1
	rd, rn, rm := w&31, w>>5&31, w>>16&31
	known := f.unknown
	f.unknown = was
	done := false
	switch {
	case w>>23&0x3f == 0b100010: // add, sub (immediate)
		imm := uint64(w >> 10 & 0xfff)
		if w>>22&1 == 1 {
			imm <<= 12
		}
		if a, ok := f.get(rn, true); ok {
			done = f.add(w, rd, a, imm, wide, true)
		}
	case w>>24&0x1f == 0b01011 && w>>21&1 == 0: // add, sub (shifted register)
		a, ok1 := f.get(rn, false)
		b, ok2 := f.get(rm, false)
		if ok1 && ok2 {
			done = f.add(w, rd, a, a64Shift(b, w>>22&3, w>>10&63, wide), wide, false)
		}
	case w>>24&0x1f == 0b01011: // add, sub (extended register)
		a, ok1 := f.get(rn, true)
		b, ok2 := f.get(rm, false)
		if ok1 && ok2 {
			done = f.add(w, rd, a, a64Extend(b, w>>13&7)<<(w>>10&7), wide, true)
		}
	case w>>24&0x1f == 0b01010: // and, orr, eor, ands (shifted register)
		a, ok1 := f.get(rn, false)
		b, ok2 := f.get(rm, false)
		if ok1 && ok2 {
			b = a64Shift(b, w>>22&3, w>>10&63, wide)
			if w>>21&1 == 1 {
				b = ^b
			}
			done = f.logic(w>>29&3, rd, a, b, wide, false)
		}
	case w>>23&0x3f == 0b100100: // and, orr, eor, ands (immediate)
		if a, ok := f.get(rn, false); ok {
			done = f.logic(w>>29&3, rd, a, a64Bitmask(w>>22&1, w>>16&63, w>>10&63), wide, w>>29&3 != 3)
		}
	case w>>23&0x3f == 0b100101: // movn, movz, movk
		shift := w >> 21 & 3 * 16
		v := uint64(w>>5&0xffff) << shift
		old, ok := f.get(rd, false)
		switch w >> 29 & 3 {
		case 0:
			v, ok = ^v, true
		case 2:
			ok = true
		default:
			v |= old &^ (0xffff << shift)
		}
		if ok {
			f.set(rd, a64Width(v, wide), false)
			done = true
		}
	case w>>24&0x1f == 0b10000: // adr, adrp
		imm := int64(int32(w<<8)>>13)<<2 | int64(w>>29&3)
		if w>>31 == 1 {
			f.set(rd, f.PC&^0xfff+uint64(imm<<12), false)
		} else {
			f.set(rd, f.PC+uint64(imm), false)
		}
		done = true
	case w>>23&0x3f == 0b100110 && w>>29&3 != 1: // sbfm, ubfm: shifts, extensions
		if a, ok := f.get(rn, false); ok {
			f.set(rd, a64Bitfield(a, w>>16&63, w>>10&63, wide, w>>29&3 == 0), false)
			done = true
		}
	}
	if !done {
		f.unknown = known
	}
}

// add is add, adds, sub or subs as w says.
func (f *a64Follower) add(w, rd uint32, a, b uint64, wide, sp bool) bool {
	carry := uint64(0)
	if w>>30&1 == 1 {
		b, carry = ^b, 1
	}
	a, b = a64Width(a, wide), a64Width(b, wide)
	sum, out := bits.Add64(a, b, carry)
	top := 63
	if !wide {
		top, out = 31, sum>>32&1
		sum = a64Width(sum, false)
	}
	if w>>29&1 == 1 {
		overflow := (a ^ sum) & (b ^ sum) >> top & 1
		f.flags(sum, top, out, overflow)
		sp = false
	}
	f.set(rd, sum, sp)
	return true
}

func (f *a64Follower) logic(op, rd uint32, a, b uint64, wide, sp bool) bool {
	v := a & b
	switch op {
	case 1:
		v = a | b
	case 2:
		v = a ^ b
	}
	v = a64Width(v, wide)
	if op == 3 {
		top := 31
		if wide {
			top = 63
		}
		f.flags(v, top, 0, 0)
	}
	f.set(rd, v, sp)
	return true
}

// flags sets NZCV after a result whose highest bit is top.
func (f *a64Follower) flags(v uint64, top int, carry, overflow uint64) {
	zero := uint64(0)
	if v == 0 {
		zero = 1
	}
	f.NZCV = v>>top&1<<31 | zero<<30 | carry<<29 | overflow<<28
	f.unknown &^= operand.RegFlags
}

func a64Width(v uint64, wide bool) uint64 {
	if wide {
		return v
	}
	return uint64(uint32(v))
}

// a64Shift is lsl, lsr, asr or ror.
func a64Shift(v uint64, kind, n uint32, wide bool) uint64 {
	if wide {
		switch kind {
		case 0:
			return v << n
		case 1:
			return v >> n
		case 2:
			return uint64(int64(v) >> n)
		}
		return bits.RotateLeft64(v, -int(n))
	}
	x := uint32(v)
	switch kind {
	case 0:
		x <<= n
	case 1:
		x >>= n
	case 2:
		x = uint32(int32(x) >> n)
	default:
		x = bits.RotateLeft32(x, -int(n))
	}
	return uint64(x)
}

// a64Extend is uxtb to uxtx and sxtb to sxtx.
func a64Extend(v uint64, kind uint32) uint64 {
	drop := 64 - 8<<(kind&3)
	if kind < 4 {
		return v << drop >> drop
	}
	return uint64(int64(v<<drop) >> drop)
}

// a64Bitmask is DecodeBitMasks of the architecture manual: a run of ones,
// rotated, repeated over elements of 2 to 64 bits.
func a64Bitmask(n, immr, imms uint32) uint64 {
	length := bits.Len32(n<<6|^imms&0x3f) - 1
	if length < 1 {
		return 0 // reserved; such an instruction traps
	}
	size := uint32(1) << length
	ones, rotate := imms&(size-1)+1, immr&(size-1)
	element := uint64(1)<<ones - 1
	if ones == 64 {
		element = ^uint64(0)
	}
	mask := ^uint64(0) >> (64 - size)
	element = (element>>rotate | element<<(size-rotate)) & mask
	for ; size < 64; size *= 2 {
		element |= element << size
	}
	return element
}

// a64Bitfield is sbfm or ubfm.
func a64Bitfield(v uint64, immr, imms uint32, wide, signed bool) uint64 {
	width := uint32(64)
	if !wide {
		width, v = 32, uint64(uint32(v))
	}
	var shifted uint64
	var length, low uint32 // of the field, and where it goes
	if imms >= immr {
		length, low = imms-immr+1, 0
		shifted = v >> immr
	} else {
		length, low = imms+1, width-immr
		shifted = v
	}
	field := shifted << (64 - length)
	if signed {
		field = uint64(int64(field) >> (64 - length))
	} else {
		field >>= 64 - length
	}
	return a64Width(field<<low, wide)
}
