package a64

import (
	"encoding/binary"

	"github.com/rdx-profiler/rdx/sampler/operand"
)

// inst.mode
const (
	modeOffset   = iota // base and offset
	modePost            // the base; the offset is added to it afterwards
	modePre             // base and offset, which becomes the base
	modeRegister        // base and a register, extended and shifted
	modeLiteral         // an address near the instruction
)

// inst.kind of a load: how what was loaded fills the register.
const (
	extendZero = iota
	extendSigned64
	extendSigned32
)

// loadStore decodes the class "loads and stores" (Arm ARM, C4.1.94). Package
// operand knows which of its encodings are instructions.
func (in *inst) loadStore(pc uint64, w word32) handler {
	var code [4]byte
	binary.LittleEndian.PutUint32(code[:], uint32(w))
	op, err := operand.DecodeARM64(code[:])
	if err != nil {
		return nil
	}
	in.rn = w.rn()
	vector := w.is(26)
	if vector {
		in.flags |= usesVector
		in.rd, in.ra = w.rd(), w.ra()
	} else {
		in.rd, in.ra = source(w.rd()), source(w.ra())
		if op.Loads() {
			in.rd, in.ra = target(w.rd()), target(w.ra())
		}
	}
	switch {
	case w.bits(29, 24) == 0b001000:
		return in.exclusives(w)
	case w.bits(29, 25) == 0b00110:
		return in.structures(w)
	case !op.Touches():
		return nop // prefetch
	case w.bits(29, 27) == 0b011 && w.bits(25, 24) == 0:
		in.mode, in.imm = modeLiteral, pc+uint64(w.signed(23, 5)*4)
		opc := uint8(w.bits(31, 30))
		if vector {
			in.size = 2 + opc
			return loadVector
		}
		in.size = 2 + opc&1
		if opc == 2 {
			in.size, in.kind = 2, extendSigned64
		}
		return load
	case w.bits(29, 27) == 0b101:
		return in.pair(w, vector, op.Loads())
	case w.bits(29, 24) == 0b011001: // ldapur, stlur
		in.imm = uint64(w.signed(20, 12))
		if in.single(w, false); op.Loads() {
			return loadOrdered
		}
		return storeOrdered
	case w.is(24):
		in.imm = uint64(w.bits(21, 10)) << scale(w)
		return in.single(w, vector)
	case !w.is(21):
		in.imm = uint64(w.signed(20, 12))
		if w.is(10) {
			in.mode = modePost
			if w.is(11) {
				in.mode = modePre
			}
		}
		return in.single(w, vector)
	case w.bits(11, 10) == 0:
		return in.atomic(w)
	case w.bits(11, 10) == 2:
		in.mode, in.rm, in.op = modeRegister, source(w.rm()), uint8(w.bits(15, 13))
		if w.is(12) {
			in.shift = uint8(scale(w))
		}
		return in.single(w, vector)
	}
	// ldraa, ldrab
	in.imm = uint64((w.signed(22, 22)<<9 | int64(w.bits(20, 12))) * 8)
	in.size = 3
	if w.is(11) {
		in.mode = modePre
	}
	return loadSigned
}

// scale is log2 of the bytes of an access by size, opc and V.
func scale(w word32) uint32 {
	if w.is(26) && w.is(23) {
		return 4
	}
	return w.bits(31, 30)
}

// single has its size and direction in size, opc and V.
func (in *inst) single(w word32, vector bool) handler {
	in.size = uint8(scale(w))
	opc := w.bits(23, 22)
	switch {
	case vector && opc&1 == 1:
		return loadVector
	case vector:
		return storeVector
	case opc == 0:
		return store
	case opc == 2:
		in.kind = extendSigned64
	case opc == 3:
		in.kind = extendSigned32
	}
	if in.kind == extendZero && in.mode == modeOffset {
		return loadPlain
	}
	return load
}

func (in *inst) pair(w word32, vector, isLoad bool) handler {
	opc := uint8(w.bits(31, 30))
	in.size = 2 + opc>>1
	if vector {
		in.size = 2 + opc
	} else if opc == 1 {
		in.kind = extendSigned64
	}
	in.imm = uint64(w.signed(21, 15) << in.size)
	switch w.bits(24, 23) {
	case 1:
		in.mode = modePost
	case 3:
		in.mode = modePre
	}
	switch {
	case vector && isLoad:
		return loadVectorPair
	case vector:
		return storeVectorPair
	case isLoad:
		return loadPair
	}
	return storePair
}

// address is where the access is.
func (m *Machine) address(in *inst) uint64 {
	switch in.mode {
	case modeOffset, modePre:
		return canonical(m.r[in.rn&63] + in.imm)
	case modePost:
		return canonical(m.r[in.rn&63])
	case modeRegister:
		v := m.r[in.rm&63]
		switch in.op {
		case 2:
			v = uint64(uint32(v))
		case 6:
			v = uint64(int64(int32(v)))
		}
		return canonical(m.r[in.rn&63] + v<<(in.shift&63))
	}
	return in.imm
}

// writeBack changes the base, after the access.
func (m *Machine) writeBack(in *inst) {
	if in.mode == modePost || in.mode == modePre {
		m.r[in.rn&63] += in.imm
	}
}

func (m *Machine) loadInt(addr uint64, size uint8) uint64 {
	m.log(addr, 1<<size, false)
	return m.mem.Peek(addr, 1<<size)
}

func (m *Machine) storeInt(addr uint64, size uint8, v uint64) {
	m.log(addr, 1<<size, true)
	m.mem.Poke(addr, 1<<size, v)
}

// extend fills a register with what was loaded.
func extend(v uint64, size, kind uint8) uint64 {
	if kind == extendZero {
		return v
	}
	drop := (64 - 8<<size) & 63
	v = uint64(int64(v<<drop) >> drop)
	if kind == extendSigned32 {
		v &= 1<<32 - 1
	}
	return v
}

func loadPlain(m *Machine, in *inst) {
	addr := canonical(m.r[in.rn&63] + in.imm)
	m.r[in.rd&63] = m.loadInt(addr, in.size)
}

func load(m *Machine, in *inst) {
	v := m.loadInt(m.address(in), in.size)
	m.writeBack(in)
	m.r[in.rd&63] = extend(v, in.size, in.kind)
}

func store(m *Machine, in *inst) {
	m.storeInt(m.address(in), in.size, m.r[in.rd&63])
	m.writeBack(in)
}

func loadSigned(m *Machine, in *inst) {
	base := stripped(m.r[in.rn&63])
	v := m.loadInt(canonical(base+in.imm), 3)
	if in.mode == modePre {
		m.r[in.rn&63] = base + in.imm
	}
	m.r[in.rd&63] = v
}

func loadPair(m *Machine, in *inst) {
	addr := m.address(in)
	n := uint64(1) << in.size
	m.log(addr, 2<<in.size, false)
	a, b := m.mem.Peek(addr, uint8(n)), m.mem.Peek(addr+n, uint8(n))
	m.writeBack(in)
	m.r[in.rd&63], m.r[in.ra&63] = extend(a, in.size, in.kind), extend(b, in.size, in.kind)
}

func storePair(m *Machine, in *inst) {
	addr := m.address(in)
	m.log(addr, 2<<in.size, true)
	var b [16]byte
	if in.size == 3 {
		binary.LittleEndian.PutUint64(b[:], m.r[in.rd&63])
		binary.LittleEndian.PutUint64(b[8:], m.r[in.ra&63])
	} else {
		binary.LittleEndian.PutUint64(b[:], m.r[in.rd&63]&(1<<32-1)|m.r[in.ra&63]<<32)
	}
	m.mem.Write(addr, b[:2<<in.size])
	m.writeBack(in)
}

func (m *Machine) peekVector(addr uint64, size uint8) (v Vec) {
	if size == 4 {
		return Vec{m.mem.Peek(addr, 8), m.mem.Peek(addr+8, 8)}
	}
	return Vec{m.mem.Peek(addr, 1<<size)}
}

func loadVector(m *Machine, in *inst) {
	addr := m.address(in)
	m.log(addr, 1<<in.size, false)
	v := m.peekVector(addr, in.size)
	m.writeBack(in)
	m.vec.V[in.rd&31] = v
}

func storeVector(m *Machine, in *inst) {
	addr := m.address(in)
	m.log(addr, 1<<in.size, true)
	b := m.vec.V[in.rd&31].bytes()
	m.mem.Write(addr, b[:1<<in.size])
	m.writeBack(in)
}

func loadVectorPair(m *Machine, in *inst) {
	addr := m.address(in)
	m.log(addr, 2<<in.size, false)
	a, b := m.peekVector(addr, in.size), m.peekVector(addr+1<<in.size, in.size)
	m.writeBack(in)
	m.vec.V[in.rd&31], m.vec.V[in.ra&31] = a, b
}

func storeVectorPair(m *Machine, in *inst) {
	addr := m.address(in)
	m.log(addr, 2<<in.size, true)
	var both [32]byte
	a, b := m.vec.V[in.rd&31].bytes(), m.vec.V[in.ra&31].bytes()
	copy(both[:], a[:1<<in.size])
	copy(both[1<<in.size:], b[:1<<in.size])
	m.mem.Write(addr, both[:2<<in.size])
	m.writeBack(in)
}

// bytes is a copy of the register as it lies in memory.
func (v *Vec) bytes() (b [16]byte) {
	binary.LittleEndian.PutUint64(b[:], v[0])
	binary.LittleEndian.PutUint64(b[8:], v[1])
	return
}
