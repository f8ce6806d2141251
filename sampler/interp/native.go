package interp

import (
	"errors"
	"fmt"
)

// nativeUnit is the set of registers that a native instruction works on.
type nativeUnit uint8

const (
	unitSSE nativeUnit = iota
	unitAVX
	unitAVX512
	unitX87
)

// native is a vector instruction as this processor runs it for the interpreter:
// the same one, with register 0 as modrm.reg, 1 as vvvv, 2 as modrm.rm, k1 as its
// opmask, and its memory operand at rdx; and a return.
type native struct {
	code    [16]byte
	entry   *vecEntry
	run     func(*Machine, *inst)
	unit    nativeUnit
	sae     bool    // it suppresses all exceptions
	reduces bool    // it raises no underflow, however small its results
	at      uintptr // where it lies among the machine's stubs
	epoch   uint32  // of the stubs in which it lies there
}

// nativeFrame is what a native instruction finds in the registers and leaves in
// them. The assembly knows where its fields lie.
type nativeFrame struct {
	z     [3]Vec
	mem   Vec
	k     [2]uint64
	ax    uint64 // general register as modrm.reg
	dx    uint64 // general register as modrm.rm, else the address of mem
	flags uint64
	mxcsr uint32
	host  uint32 // MXCSR of the interpreter
	code  uintptr
	ill   uint64 // not 0: the processor does not have the instruction
	x87   [512]byte
}

var (
	errIllegal  = errors.New("illegal instruction on this processor")
	errUnmasked = errors.New("floating-point exception that is not masked")
)

// native is the form of the instruction being decoded that runs natively. op is
// its opcode and e its row.
func (d *decoder) native(e *vecEntry, op byte) *native {
	n := &native{entry: e, run: vecNative}
	b := n.code[:0]
	w := byte(0)
	if d.wbit {
		w = 1
	}
	v := byte(0)
	if e.v {
		v = 1
	}
	switch {
	case d.evex:
		n.unit = unitAVX512
		p2 := 1<<3 | d.ll<<5
		if d.z {
			p2 |= 1 << 7
		}
		if d.bc {
			p2 |= 1 << 4
		}
		if d.aaa != 0 {
			p2 |= 1
		}
		b = append(b, 0x62, 0xf0|d.opmap, w<<7|(^v&15)<<3|1<<2|d.pp, p2)
	case d.vex:
		n.unit = unitAVX
		b = append(b, 0xc4, 0xe0|d.opmap, w<<7|(^v&15)<<3|d.ll<<2|d.pp)
	default:
		b = append(b, [4][]byte{{}, {0x66}, {0xf3}, {0xf2}}[d.pp]...)
		if d.wbit {
			b = append(b, 0x48)
		}
		b = append(b, [4][]byte{1: {0x0f}, 2: {0x0f, 0x38}, 3: {0x0f, 0x3a}}[d.opmap]...)
	}
	modrm := byte(0xc2)
	if d.in.mem {
		modrm = 0x02
	}
	if e.group >= 0 {
		modrm |= byte(e.group) << 3
	}
	b = append(b, op, modrm)
	if e.imm {
		b = append(b, byte(d.in.imm))
	}
	_ = append(b, 0xc3) // ret
	return n
}

// vecNative runs an instruction natively: with the thread's MXCSR but all
// exceptions masked, which shows by the flags what would have been raised.
func vecNative(m *Machine, in *inst) {
	n, e := in.nat, in.nat.entry
	f := m.frame()
	f.k[1] = m.vec.K[in.k&7]
	if e.v {
		f.z[1] = m.vec.Z[in.v&31]
	}
	switch {
	case e.store:
		f.z[0], f.z[2] = m.vec.Z[in.reg&31], m.vec.Z[in.rm&31]
	default:
		f.z[0] = m.vec.Z[in.dst&31]
		m.nativeSource(in, f)
	}
	if in.mem {
		f.dx = f.address()
	}
	raised := m.runNative(n, f)
	m.raise(raised)
	switch {
	case e.store && in.mem:
		m.src = f.mem
		m.vecStore(in, &m.src)
	case e.store:
		m.nativePut(in, &f.z[2])
	case e.regGPR:
		m.r[in.reg&15] = f.ax
	case e.toMask && !in.legacy && n.unit == unitAVX512:
		m.vec.K[in.reg&7] = f.k[0]
	case e.setsFlags:
		m.setFlags(f.flags & arithFlags)
	default:
		m.nativePut(in, &f.z[0])
	}
	m.vec.MXCSR |= raised
}

// lanes computes d of b, as the instruction's kernel or natively.
func (m *Machine) lanes(in *inst, d, b *Vec) {
	if in.nat == nil || !m.nativeOK() {
		in.kern(d, b, b, in)
		return
	}
	f := m.frame()
	f.z[0], f.z[2] = *d, *b
	raised := m.runNative(in.nat, f)
	m.raise(raised)
	*d = f.z[0]
	m.vec.MXCSR |= raised
}

// nativeSource is the r/m operand, logged as an access if it is memory.
func (m *Machine) nativeSource(in *inst, f *nativeFrame) {
	switch {
	case in.nat.entry.gpr && in.mem:
		f.mem = Vec{m.rmOperand(in)}
	case in.nat.entry.gpr:
		f.dx = m.r[in.rm&15]
	case in.mem:
		f.mem = *m.vecSource(in)
	default:
		f.z[2] = m.vec.Z[in.rm&31]
	}
}

// nativePut is the destination register: r is as long as the unit's registers.
func (m *Machine) nativePut(in *inst, r *Vec) {
	d := &m.vec.Z[in.dst&31]
	switch in.nat.unit {
	case unitSSE:
		d[0], d[1] = r[0], r[1]
	case unitAVX:
		*d = Vec{r[0], r[1], r[2], r[3]}
	default:
		*d = *r
	}
}

// raise ends the burst if one of these exceptions is not masked: the processor
// raises it instead of completing the instruction.
func (m *Machine) raise(exceptions uint32) {
	if open := exceptions &^ (m.vec.MXCSR >> 7); open != 0 {
		panic(Halt{Cause: Fault, Err: fmt.Errorf("%w: %s", errUnmasked, exceptionNames(open))})
	}
}

func exceptionNames(flags uint32) string {
	names := [...]string{"invalid", "denormal", "division by zero", "overflow", "underflow", "inexact"}
	s := ""
	for i, name := range names {
		if flags>>i&1 != 0 {
			if s != "" {
				s += ", "
			}
			s += name
		}
	}
	return s
}
