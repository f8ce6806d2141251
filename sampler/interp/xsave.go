package interp

import (
	"encoding/binary"
	"errors"
)

// xsavePart is a part of the register state in XSAVE areas.
type xsavePart struct {
	size, at uint64 // bytes, and where it lies in the standard format
	aligned  bool   // to 64 bytes in the compacted format
}

// Of this machine's processor: the parts that the system has enabled, XCR0, and
// where they lie. x87 and SSE, parts 0 and 1, lie where they always do.
var (
	xsaveEnabled uint64
	xsaveParts   [8]xsavePart
)

const (
	saveX87, saveSSE, saveAVX = 0, 1, 2
	saveMask                  = 5 // upper halves of zmm0-15 are 6, zmm16-31 7
	xsaveKnown                = 0xe7
	xsaveHeader               = 512
	xsaveExtended             = 576
	compacted                 = 1 << 63
)

var errXSAVE = errors.New("a part of the register state that is not known")

// words calls f for each word of an extended part, in their order in memory.
func (v *Vector) words(part int, f func(w *uint64)) {
	lanes := func(first, from, to int) {
		for i := range 16 {
			for j := from; j < to; j++ {
				f(&v.Z[first+i][j])
			}
		}
	}
	switch part {
	case saveSSE:
		lanes(0, 0, 2)
	case saveAVX:
		lanes(0, 2, 4)
	case saveMask:
		for i := range v.K {
			f(&v.K[i])
		}
	case saveMask + 1:
		lanes(0, 4, 8)
	case saveMask + 2:
		lanes(16, 0, 8)
	}
}

// inUse are the parts that are not as they are at a program's start.
func (v *Vector) inUse() uint64 {
	var parts uint64
	if v.FCW != 0x37f || v.X87.FSW != 0 || v.X87.Valid != 0 || v.X87.R != [8]F80{} {
		parts |= 1 << saveX87
	}
	for part := saveSSE; part <= 7; part++ {
		v.words(part, func(w *uint64) {
			if *w != 0 {
				parts |= 1 << part
			}
		})
	}
	if v.MXCSR != 0x1f80 {
		parts |= 1 << saveSSE
	}
	return parts
}

// place is where a part lies in an area that holds parts.
func place(part int, parts uint64, compact bool) uint64 {
	switch {
	case part == saveX87:
		return 0
	case part == saveSSE:
		return 160
	case !compact:
		return xsaveParts[part].at
	}
	at := uint64(xsaveExtended)
	for i := saveAVX; ; i++ {
		if parts>>i&1 == 0 {
			continue
		}
		if xsaveParts[i].aligned {
			at = (at + 63) &^ 63
		}
		if i == part {
			return at
		}
		at += xsaveParts[i].size
	}
}

// saveArea is the operand of an instruction that saves or restores the state, and the
// parts that it is asked for.
func (m *Machine) saveArea(in *inst) (a, parts uint64) {
	a = m.ea(in)
	parts = m.r[RAX]&0xffffffff | m.r[RDX]<<32
	if parts &= xsaveEnabled; parts&^xsaveKnown != 0 || xsaveEnabled == 0 {
		panic(Halt{Cause: Unsupported, Err: errXSAVE})
	}
	if a%64 != 0 {
		fault()
	}
	return a, parts
}

// put and get move n = len(b) bytes, as one access.
func (m *Machine) put(a uint64, b []byte) {
	m.log(a, int32(len(b)), true)
	m.Write(a, b)
}

func (m *Machine) get(a uint64, b []byte) {
	m.log(a, int32(len(b)), false)
	m.Read(a, b)
}

// putPart and getPart move a part. MXCSR is apart.
func (m *Machine) putPart(part int, a uint64) {
	var b [1024]byte
	n := 0
	if part == saveX87 {
		var x [512]byte
		m.vec.X87.put(&x, m.vec.FCW)
		m.put(a, x[:24])
		m.put(a+32, x[32:160])
		return
	}
	m.vec.words(part, func(w *uint64) {
		binary.LittleEndian.PutUint64(b[n:], *w)
		n += 8
	})
	m.put(a, b[:n])
}

func (m *Machine) getPart(part int, a uint64, v *Vector) {
	var b [1024]byte
	if part == saveX87 {
		var x [512]byte
		m.get(a, x[:24])
		m.get(a+32, x[32:160])
		for i := range uint64(8) { // of 10 bytes the rest is reserved
			clear(x[32+16*i+10 : 48+16*i])
		}
		v.FCW = binary.LittleEndian.Uint16(x[:])&0x1f3f | 0x40
		v.X87.take(&x)
		return
	}
	n := 0
	v.words(part, func(*uint64) { n += 8 })
	m.get(a, b[:n])
	n = 0
	v.words(part, func(w *uint64) {
		*w = binary.LittleEndian.Uint64(b[n:])
		n += 8
	})
}

// xsave is xsave, xsaveopt and, with op 1, xsavec. Which parts count as in use
// differs between processors; a restore gives the same.
func xsave(m *Machine, in *inst) {
	a, parts := m.saveArea(in)
	le := binary.LittleEndian
	var header [16]byte
	saved := parts
	compact := in.op == 1
	if compact || in.op == 2 {
		saved &= m.vec.inUse()
	}
	n := uint64(xsaveExtended)
	for part := saveAVX; part <= 7; part++ {
		if saved>>part&1 != 0 {
			n = max(n, place(part, parts, compact)+xsaveParts[part].size)
		}
	}
	for at := a; at < a+n; at += pageSize { // nothing is stored if part of it can't be
		m.at(at)
	}
	m.at(a + n - 1)
	if compact {
		le.PutUint64(header[:], saved)
		le.PutUint64(header[8:], parts|compacted)
		m.put(a+xsaveHeader, header[:])
	} else {
		old := m.load(a+xsaveHeader, 8)
		m.store(a+xsaveHeader, 8, old&^parts|saved&m.vec.inUse())
	}
	if compact && saved>>saveSSE&1 != 0 || !compact && parts&(1<<saveSSE|1<<saveAVX) != 0 {
		m.putMXCSR(a)
	}
	for part := range 8 {
		if saved>>part&1 != 0 {
			m.putPart(part, a+place(part, parts, compact))
		}
	}
}

func (m *Machine) putMXCSR(a uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], m.vec.MXCSR)
	binary.LittleEndian.PutUint32(b[4:], mxcsrBits())
	m.put(a+24, b[:])
}

// mxcsrBits are those that MXCSR has.
func mxcsrBits() uint32 {
	if misalignment {
		return 0xffff | misalignedSSE
	}
	return 0xffff
}

func xrstor(m *Machine, in *inst) {
	a, parts := m.saveArea(in)
	le := binary.LittleEndian
	var header [64]byte
	m.get(a+xsaveHeader, header[:])
	saved, format := le.Uint64(header[:]), le.Uint64(header[8:])
	compact := format&compacted != 0
	if saved&^xsaveEnabled != 0 || format&^compacted&^xsaveEnabled != 0 || !compact && format != 0 || compact && saved&^format != 0 || header != [64]byte(append(append([]byte{}, header[:16]...), make([]byte, 48)...)) {
		fault()
	}
	if format&^compacted&^xsaveKnown != 0 {
		panic(Halt{Cause: Unsupported, Err: errXSAVE})
	}
	v := m.vec
	if compact && parts&^saved>>saveSSE&1 != 0 && v.MXCSR != 0x1f80 {
		panic(Halt{Cause: Unsupported, Err: errXSAVE}) // processors differ in what becomes of MXCSR
	}
	if !compact && parts&(1<<saveSSE|1<<saveAVX) != 0 || compact && parts&saved>>saveSSE&1 != 0 {
		v.MXCSR = uint32(m.load(a+24, 4))
		if v.MXCSR&^mxcsrBits() != 0 {
			fault()
		}
	}
	for part := range 8 {
		switch {
		case parts>>part&1 == 0:
		case saved>>part&1 != 0:
			m.getPart(part, a+place(part, format, compact), &v)
		case part == saveX87:
			v.FCW, v.X87 = 0x37f, X87{}
		default:
			v.words(part, func(w *uint64) { *w = 0 })
		}
	}
	m.vec, m.exLost = v, false
	m.vecReady()
	m.settle()
}

func fxsave(m *Machine, in *inst) {
	a := m.ea(in)
	if a%16 != 0 {
		fault()
	}
	m.at(a)
	m.at(a + 415)
	m.putPart(saveX87, a)
	m.putMXCSR(a)
	m.putPart(saveSSE, a+160)
}

func fxrstor(m *Machine, in *inst) {
	a := m.ea(in)
	if a%16 != 0 {
		fault()
	}
	v := m.vec
	if v.MXCSR = uint32(m.load(a+24, 4)); v.MXCSR&^mxcsrBits() != 0 {
		fault()
	}
	m.getPart(saveX87, a, &v)
	m.getPart(saveSSE, a+160, &v)
	m.vec, m.exLost = v, false
	m.vecReady()
	m.settle()
}

// xgetbv reads XCR0, which is the same for all threads.
func xgetbv(m *Machine, _ *inst) {
	if uint32(m.r[RCX]) != 0 || xsaveEnabled == 0 {
		panic(Halt{Cause: Unsupported})
	}
	m.r[RAX], m.r[RDX] = xsaveEnabled&0xffffffff, xsaveEnabled>>32
}
