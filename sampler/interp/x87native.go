package interp

import (
	"encoding/binary"
	"errors"
)

var errPending = errors.New("x87 exception that is not masked")

// x87Operand is how many bytes a memory form reads or, if negative, writes, by the
// opcode's low bits and modrm.reg; 0 for those that x87Native does not run.
var x87Operand = [8][8]int{
	{4, 4, 4, 4, 4, 4, 4, 4},
	{4, 0, -4, -4, 0, 0, 0, 0},
	{4, 4, 4, 4, 4, 4, 4, 4},
	{4, -4, -4, -4, 0, 10, 0, -10},
	{8, 8, 8, 8, 8, 8, 8, 8},
	{8, -8, -8, -8, 0, 0, 0, 0},
	{2, 2, 2, 2, 2, 2, 2, 2},
	{2, -2, -2, -2, 10, 8, -10, -8},
}

// x87Natives are the register forms that only run natively, by their second byte
// after d9: the transcendental functions, whose last bits differ between processors.
var x87Natives = map[byte]bool{0xf0: true, 0xf1: true, 0xf2: true, 0xf3: true, 0xf9: true, 0xfb: true, 0xfe: true, 0xff: true}

// x87Native builds the native form of an x87 instruction, with its memory operand at
// rdx.
func (d *decoder) x87Native(op, modrm byte) *native {
	if modrm < 0xc0 {
		modrm = modrm&0x38 | 2
	}
	n := &native{run: x87Native, unit: unitX87}
	copy(n.code[:], []byte{op, modrm, 0xc3})
	return n
}

// x87Native runs an x87 instruction natively on the thread's whole x87 state, so
// that an exception that is not masked is left pending as the processor leaves it.
func x87Native(m *Machine, in *inst) {
	m.noPending()
	f := m.frame()
	f.flags = m.flags & arithFlags
	f.dx = f.address()
	size, a := 0, uint64(0)
	if in.mem {
		size, a = x87Operand[in.op][in.reg], m.ea(in)
		n := max(size, -size)
		m.log(a, int32(n), size < 0)
		m.Read(a, f.mem.b()[:n]) // what is stored to as well: the store may not be made
	}
	m.vec.X87.put(&f.x87, m.vec.FCW)
	m.runNative(in.nat, f)
	if size < 0 {
		m.Write(a, f.mem.b()[:-size])
	}
	m.vec.X87.take(&f.x87)
	m.setFlags(f.flags & arithFlags)
}

// noPending faults, as all but a few x87 and MMX instructions do, if an exception
// is pending.
func (m *Machine) noPending() {
	if w := m.vec.X87.FSW; w&x87Summary != 0 || w&^m.vec.FCW&x87Masks != 0 {
		panic(Halt{Cause: Fault, Err: errPending})
	}
}

// put stores the state where fxrstor reads it.
func (x *X87) put(b *[512]byte, fcw uint16) {
	le := binary.LittleEndian
	le.PutUint16(b[0:], fcw)
	le.PutUint16(b[2:], x.FSW)
	b[4] = x.Valid
	for i := range uint8(8) {
		r := x.R[x.at(i)]
		le.PutUint64(b[32+16*int(i):], r.M)
		le.PutUint64(b[40+16*int(i):], uint64(r.SE))
	}
}

// take is the reverse, after fxsave.
func (x *X87) take(b *[512]byte) {
	le := binary.LittleEndian
	x.FSW, x.Valid = le.Uint16(b[2:]), b[4]
	for i := range uint8(8) {
		x.R[x.at(i)] = F80{le.Uint64(b[32+16*int(i):]), le.Uint16(b[40+16*int(i):])}
	}
}

// settle sets what follows from exceptions and masks: whether one is pending.
func (m *Machine) settle() {
	const busy = 1 << 15
	x := &m.vec.X87
	x.FSW &^= busy | x87Summary
	if x.FSW&^m.vec.FCW&x87Masks != 0 {
		x.FSW |= busy | x87Summary
	}
}

// Environment and state. Where the last instruction and its operand were is not
// kept: zeros are stored for it.

const envSize, x87StateSize = 28, 28 + 80

// environment is what fnstenv stores, in its 32-bit form.
func (m *Machine) environment(b []byte) {
	le := binary.LittleEndian
	x := &m.vec.X87
	tags := uint32(0)
	for i, r := range x.R {
		tag := uint32(3) // empty
		if x.Valid>>i&1 != 0 {
			switch {
			case r.SE&0x7fff == 0 && r.M == 0:
				tag = 1
			case r.SE&0x7fff == 0, r.SE&0x7fff == 0x7fff, r.M>>63 == 0:
				tag = 2
			default:
				tag = 0
			}
		}
		tags |= tag << (2 * i)
	}
	const reserved = 0xffff0000
	for i, v := range []uint32{uint32(m.vec.FCW) | reserved, uint32(x.FSW) | reserved, tags | reserved, 0, 0, 0, reserved} {
		le.PutUint32(b[4*i:], v)
	}
}

func (m *Machine) setEnvironment(b []byte) {
	le := binary.LittleEndian
	x := &m.vec.X87
	m.setControl(le.Uint16(b))
	x.FSW, x.Valid = le.Uint16(b[4:]), 0
	for i := range 8 {
		if le.Uint16(b[8:])>>(2*i)&3 != 3 {
			x.Valid |= 1 << i
		}
	}
	m.settle()
}

func (m *Machine) setControl(v uint16) {
	const reserved = 0x40
	m.vec.FCW = v&0x1f3f | reserved
}

func fnstenv(m *Machine, in *inst) {
	var b [envSize]byte
	m.environment(b[:])
	a := m.ea(in)
	m.log(a, envSize, true)
	m.Write(a, b[:])
	m.vec.FCW |= x87Masks
	m.settle()
}

func fldenv(m *Machine, in *inst) {
	m.noPending()
	var b [envSize]byte
	a := m.ea(in)
	m.log(a, envSize, false)
	m.Read(a, b[:])
	m.setEnvironment(b[:])
}

func fnsave(m *Machine, in *inst) {
	var b [x87StateSize]byte
	m.environment(b[:])
	for i := range uint8(8) {
		r := m.vec.X87.R[m.vec.X87.at(i)]
		binary.LittleEndian.PutUint64(b[envSize+10*int(i):], r.M)
		binary.LittleEndian.PutUint16(b[envSize+10*int(i)+8:], r.SE)
	}
	a := m.ea(in)
	m.log(a, x87StateSize, true)
	m.Write(a, b[:])
	fninit(m, in)
}

func frstor(m *Machine, in *inst) {
	m.noPending()
	var b [x87StateSize]byte
	a := m.ea(in)
	m.log(a, x87StateSize, false)
	m.Read(a, b[:])
	m.setEnvironment(b[:])
	for i := range uint8(8) {
		m.vec.X87.R[m.vec.X87.at(i)] = F80{binary.LittleEndian.Uint64(b[envSize+10*int(i):]), binary.LittleEndian.Uint16(b[envSize+10*int(i)+8:])}
	}
}

func ffreep(m *Machine, in *inst) {
	ffree(m, in)
	m.vec.X87.pop()
}
