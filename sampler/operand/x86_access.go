package operand

import (
	"encoding/binary"
	"math/bits"
)

// X86Regs are a thread's registers as they are before the instruction runs.
type X86Regs struct {
	GPR            [16]uint64 // rax rcx rdx rbx rsp rbp rsi rdi r8..r15
	RIP            uint64     // address of the instruction
	RFLAGS         uint64
	FSBase, GSBase uint64
	Vec            *X86Vectors // nil when not known
}

// X86Vectors are the vector and mask registers, which only gathers, scatters
// and masked moves need.
type X86Vectors struct {
	Z [32][64]byte // zmm0..zmm31, lowest byte first
	K [8]uint64
}

const (
	flagCF = 1 << 0
	flagPF = 1 << 2
	flagZF = 1 << 6
	flagSF = 1 << 7
	flagDF = 1 << 10
	flagOF = 1 << 11
)

// Accesses appends to buf the memory accesses that the instruction will make
// with the given registers, in the order the hardware makes them, and returns
// the extended slice. It appends at most three and does not allocate when buf
// has room for them. The only error is ErrNeedVectors.
func (in *X86Inst) Accesses(r *X86Regs, buf []Access) ([]Access, error) {
	if !in.load && !in.store {
		return buf, nil
	}
	size := int(in.size)
	switch in.shape {
	case shapeModRM:
		if in.opMask == 0 || in.nf || in.elem == 0 {
			return in.both(buf, in.address(r), size, in.part), nil
		}
		return in.masked(r, buf)
	case shapeSplat, shapePack, shapeVMask:
		return in.masked(r, buf)
	case shapePush:
		return append(buf, in.push(r)), nil
	case shapePop, shapeReturn:
		return append(buf, in.pop(r.GPR[rsp])), nil
	case shapePushMem, shapeCallMem:
		if in.load {
			buf = append(buf, load(in.address(r), size))
		}
		return append(buf, in.push(r)), nil
	case shapePopMem:
		buf = append(buf, in.pop(r.GPR[rsp]))
		if in.store {
			// An address based on rsp uses its value after the pop.
			a := in.address(r)
			if in.base == rsp {
				a = in.addressFrom(r, r.GPR[rsp]+uint64(in.stack))
			}
			buf = append(buf, store(a, size))
		}
		return buf, nil
	case shapeCall, shapeEnter:
		return append(buf, in.push(r)), nil
	case shapeLeave:
		return append(buf, in.pop(r.GPR[rbp])), nil
	case shapeMoffs:
		return in.both(buf, in.segment(r, uint64(in.disp)), size, false), nil
	case shapeMovs, shapeCmps, shapeStos, shapeLods, shapeScas:
		return in.stringOp(r, buf), nil
	case shapeXlat:
		return append(buf, load(in.segment(r, in.trim(r.GPR[rbx]+r.GPR[rax]&0xff)), 1)), nil
	case shapeBit:
		return in.bitString(r, buf), nil
	case shapeMaskMov:
		return in.masked(r, buf)
	case shapeGather:
		return in.gather(r, buf)
	case shapeMovDir64:
		buf = append(buf, load(in.address(r), size))
		return append(buf, store(in.trim(r.GPR[in.bitReg]), size)), nil
	}
	panic("operand: shape without accesses")
}

func load(a uint64, size int) Access { return Access{Addr: a, Size: size, Elements: 1} }

func store(a uint64, size int) Access { return Access{Addr: a, Size: size, Store: true, Elements: 1} }

// both appends a load, a store, or first the one and then the other.
func (in *X86Inst) both(buf []Access, a uint64, size int, approx bool) []Access {
	if in.load {
		buf = append(buf, Access{Addr: a, Size: size, Elements: 1, Approx: approx})
	}
	if in.store {
		buf = append(buf, Access{Addr: a, Size: size, Elements: 1, Approx: approx, Store: true})
	}
	return buf
}

func (in *X86Inst) push(r *X86Regs) Access {
	return store(r.GPR[rsp]-uint64(in.stack), int(in.stack))
}

func (in *X86Inst) pop(sp uint64) Access {
	a := load(sp, int(in.stack))
	a.Approx = in.part
	return a
}

func (in *X86Inst) trim(a uint64) uint64 {
	if in.addr32 {
		return uint64(uint32(a))
	}
	return a
}

func (in *X86Inst) segment(r *X86Regs, a uint64) uint64 {
	switch in.seg {
	case 1:
		return a + r.FSBase
	case 2:
		return a + r.GSBase
	}
	return a
}

func (in *X86Inst) baseValue(r *X86Regs) uint64 {
	switch in.base {
	case ripBase:
		return r.RIP + uint64(in.Len)
	case noReg:
		return 0
	}
	return r.GPR[in.base]
}

func (in *X86Inst) address(r *X86Regs) uint64 { return in.addressFrom(r, in.baseValue(r)) }

func (in *X86Inst) addressFrom(r *X86Regs, base uint64) uint64 {
	a := base + uint64(in.disp)
	if in.index != noReg {
		a += r.GPR[in.index] << in.scale
	}
	return in.segment(r, in.trim(a))
}

func (in *X86Inst) stringOp(r *X86Regs, buf []Access) []Access {
	n := uint64(1)
	if in.Rep {
		if n = in.trim(r.GPR[rcx]); n == 0 {
			return buf
		}
	}
	src := Access{Addr: in.segment(r, in.trim(r.GPR[rsi])), Size: int(in.size), Elements: n}
	// A segment prefix never applies to the destination.
	dst := Access{Addr: in.trim(r.GPR[rdi]), Size: int(in.size), Elements: n}
	switch in.shape {
	case shapeMovs:
		dst.Store = true
		return append(buf, src, dst)
	case shapeCmps:
		return append(buf, src, dst)
	case shapeStos:
		dst.Store = true
		return append(buf, dst)
	case shapeLods:
		return append(buf, src)
	}
	return append(buf, dst)
}

// bitString resolves bt, bts, btr and btc with the bit index in a register: the
// index is signed and reaches beyond the operand, in units of its size.
func (in *X86Inst) bitString(r *X86Regs, buf []Access) []Access {
	n := int64(r.GPR[in.bitReg])
	switch in.size {
	case 2:
		n = int64(int16(n))
	case 4:
		n = int64(int32(n))
	}
	units := n >> (bits.Len16(in.size) + 2)
	return in.both(buf, in.addressFrom(r, in.baseValue(r)+uint64(units*int64(in.size))), int(in.size), false)
}

// laneMask is the active lanes of a masked access, bit 0 the first.
func (in *X86Inst) laneMask(v *X86Vectors) uint64 {
	all := ^uint64(0) >> (64 - in.lanes)
	if in.vecMask == noReg {
		if in.opMask == 0 {
			return all
		}
		return v.K[in.opMask] & all
	}
	m := uint64(0)
	for i := range int(in.lanes) {
		m |= uint64(v.Z[in.vecMask][(i+1)*int(in.elem)-1]>>7) << i
	}
	return m
}

// masked resolves a vector operand under a mask: a span of lanes, a span of the
// tuple that all lanes share, or as many elements as lanes are active.
func (in *X86Inst) masked(r *X86Regs, buf []Access) ([]Access, error) {
	a, size := in.address(r), int(in.size)
	if in.shape == shapeMaskMov {
		a = in.segment(r, in.trim(r.GPR[rdi]))
		if in.vecMask == noReg {
			return in.both(buf, a, size, true), nil
		}
	}
	if in.nf || in.opMask == 0 && in.vecMask == noReg {
		return in.both(buf, a, size, false), nil
	}
	if r.Vec == nil {
		return in.both(buf, a, size, true), nil
	}
	m, lanes := in.laneMask(r.Vec), int(in.lanes)
	if m == 0 {
		return buf, nil
	}
	switch in.shape {
	case shapeSplat:
		m, lanes = in.tuple(m)
	case shapePack:
		n := bits.OnesCount64(m)
		return in.both(buf, a, n*int(in.elem), n != lanes), nil
	}
	first, last := bits.TrailingZeros64(m), bits.Len64(m)-1
	span := last - first + 1
	return in.both(buf, a+uint64(first*int(in.elem)), span*int(in.elem), span != lanes || bits.OnesCount64(m) != span), nil
}

// tuple folds the active lanes m, to which a tuple of elements in memory is
// repeated, into those of its elements that a lane needs, and says how many it has.
func (in *X86Inst) tuple(m uint64) (needed uint64, elements int) {
	elements = max(int(in.size)/int(in.elem), 1)
	for ; m != 0; m >>= elements {
		needed |= m & (1<<elements - 1)
	}
	return needed, elements
}

func (in *X86Inst) gather(r *X86Regs, buf []Access) ([]Access, error) {
	if r.Vec == nil {
		return buf, ErrNeedVectors
	}
	m := in.laneMask(r.Vec)
	if m == 0 {
		return buf, nil
	}
	lane := bits.TrailingZeros64(m)
	z := &r.Vec.Z[in.index]
	var index int64
	if in.indexQ {
		index = int64(binary.LittleEndian.Uint64(z[lane*8:]))
	} else {
		index = int64(int32(binary.LittleEndian.Uint32(z[lane*4:])))
	}
	a := in.segment(r, in.trim(in.baseValue(r)+uint64(in.disp)+uint64(index<<in.scale)))
	return append(buf, Access{Addr: a, Size: int(in.elem), Store: in.store, Elements: uint64(bits.OnesCount64(m))}), nil
}

// Taken says whether a conditional branch will be taken.
func (in *X86Inst) Taken(r *X86Regs) bool {
	f := r.RFLAGS
	zero, carry, sign, over := f&flagZF != 0, f&flagCF != 0, f&flagSF != 0, f&flagOF != 0
	var t bool
	switch in.cond >> 1 {
	case 0:
		t = over
	case 1:
		t = carry
	case 2:
		t = zero
	case 3:
		t = carry || zero
	case 4:
		t = sign
	case 5:
		t = f&flagPF != 0
	case 6:
		t = sign != over
	case 7:
		t = zero || sign != over
	default:
		count := in.trim(r.GPR[rcx])
		switch in.cond {
		case condLoopNE:
			return count != 1 && !zero
		case condLoopE:
			return count != 1 && zero
		case condLoop:
			return count != 1
		}
		return count == 0
	}
	return t != (in.cond&1 != 0)
}
