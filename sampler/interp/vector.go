package interp

import "unsafe"

// kernel computes the lanes of a vector operation: d of a and b, in.n bytes of
// each. On entry d holds the destination's old value; it never is a or b.
type kernel func(d, a, b *Vec, in *inst)

// vecForm is the part of inst that only vector and x87 instructions use. It does not change once they are decoded.
type vecForm struct {
	kern kernel // what the lanes compute
	nat  *native

	dst     uint8 // destination register
	n       uint8 // vector length in bytes; 16 for scalars
	size    uint8 // of the memory operand in bytes, one element if broadcast
	esz     uint8 // element size in bytes, what the opmask counts
	msz     uint8 // element size of the memory operand
	k       uint8 // opmask register, 0: none
	zeroing bool
	bcast   bool
	legacy  bool // SSE encoding: bits above 128 stay
	aligned bool // a misaligned operand faults
	relaxed bool // unless misalignedSSE is set
	scalar  bool // only element 0 is computed and masked
	sae     bool // exceptions are suppressed
	raise   raiser
	whole   bool // the memory operand is read whatever the opmask
	any     bool // and that only if any bit of it is set

	vsib, vsibWide bool // index is a vector register, of 8-byte elements
}

// noForm is that of all other instructions, and is never written to.
var noForm vecForm

// as is a copy of the instruction with a form of its own to be changed, until the next.
func (m *Machine) as(in *inst) *inst {
	m.other, m.otherForm = *in, *in.vecForm
	m.other.vecForm = &m.otherForm
	return &m.other
}

// Views of a register as elements. The package is little-endian as x86 is.
func (v *Vec) b() *[64]uint8     { return (*[64]uint8)(unsafe.Pointer(v)) }
func (v *Vec) w() *[32]uint16    { return (*[32]uint16)(unsafe.Pointer(v)) }
func (v *Vec) d() *[16]uint32    { return (*[16]uint32)(unsafe.Pointer(v)) }
func (v *Vec) f32() *[16]float32 { return (*[16]float32)(unsafe.Pointer(v)) }

// elem reads element i of size bytes, zero-extended.
func (v *Vec) elem(i int, size uint8) uint64 {
	switch size {
	case 1:
		return uint64(v.b()[i&63])
	case 2:
		return uint64(v.w()[i&31])
	case 4:
		return uint64(v.d()[i&15])
	}
	return v[i&7]
}

func (v *Vec) setElem(i int, size uint8, x uint64) {
	switch size {
	case 1:
		v.b()[i&63] = uint8(x)
	case 2:
		v.w()[i&31] = uint16(x)
	case 4:
		v.d()[i&15] = uint32(x)
	default:
		v[i&7] = x
	}
}

func lowBits(n int) uint64 {
	if n >= 64 {
		return ^uint64(0)
	}
	return 1<<n - 1
}

// lanes is the number of elements that an opmask governs.
func (in *inst) lanes() int {
	if in.scalar {
		return 1
	}
	return int(in.n / in.esz)
}

// active is the opmask with all bits set where there is none, cut to the lanes.
func (m *Machine) active(in *inst) uint64 {
	all := lowBits(in.lanes())
	if in.k != 0 {
		all &= m.vec.K[in.k&7]
	}
	return all
}

// vecSource is the r/m operand, loaded and broadcast if it is memory.
func (m *Machine) vecSource(in *inst) *Vec {
	if !in.mem {
		return &m.vec.Z[in.rm&31]
	}
	a := m.ea(in)
	v := &m.src
	*v = Vec{}
	act := m.active(in)
	if act == 0 && (in.any || !in.whole) {
		return v
	}
	if in.aligned && a%uint64(in.size) != 0 && !(in.relaxed && m.vec.MXCSR&misalignedSSE != 0) {
		fault()
	}
	if in.k != 0 && !in.whole {
		if !in.bcast {
			first, last := span(act)
			lo, hi := first*int(in.msz), (last+1)*int(in.msz)
			m.log(a+uint64(lo), int32(hi-lo), false)
			m.Read(a+uint64(lo), v.b()[lo:hi])
			return v
		}
	}
	m.log(a, int32(in.size), false)
	if !in.bcast {
		m.Read(a, v.b()[:in.size])
		return v
	}
	x := m.Peek(a, in.size)
	for i := range 64 / int(in.size) {
		v.setElem(i, in.size, x)
	}
	return v
}

// vecPut writes the result m.tmp to the destination register.
func (m *Machine) vecPut(in *inst) {
	d := &m.vec.Z[in.dst&31]
	t := &m.tmp
	if in.legacy {
		d[0], d[1] = t[0], t[1]
		return
	}
	if in.k != 0 {
		act := m.vec.K[in.k&7]
		for i := range in.lanes() {
			if act>>i&1 == 0 {
				var old uint64
				if !in.zeroing {
					old = d.elem(i, in.esz)
				}
				t.setElem(i, in.esz, old)
			}
		}
	}
	*d = *t
	for i := (in.n + 7) / 8; i < 8; i++ {
		d[i&7] = 0
	}
}

// vecStore writes v to the memory operand, under the opmask.
func (m *Machine) vecStore(in *inst, v *Vec) {
	a := m.ea(in)
	act := m.active(in)
	if in.aligned && act != 0 && a%uint64(in.size) != 0 {
		fault()
	}
	if in.k == 0 {
		m.log(a, int32(in.size), true)
		m.Write(a, v.b()[:in.size])
		return
	}
	m.maskedStore(a, v, act, in.msz)
}

// maskedStore writes the active elements. It is one access from the first to
// the last of them.
func (m *Machine) maskedStore(a uint64, v *Vec, act uint64, esz uint8) {
	if act == 0 {
		return
	}
	first, last := span(act)
	lo, hi := uint64(first)*uint64(esz), uint64(last+1)*uint64(esz)
	m.log(a+lo, int32(hi-lo), true)
	m.at(a + lo)
	m.at(a + hi - 1)
	for i := first; i <= last; i++ {
		if act>>i&1 != 0 {
			o := i * int(esz)
			m.Write(a+uint64(o), v.b()[o:o+int(esz)])
		}
	}
}

// Operand forms.

// vecRVM: reg = kern(vvvv, rm).
func vecRVM(m *Machine, in *inst) {
	b := m.vecSource(in)
	m.tmp = m.vec.Z[in.dst&31]
	m.track(in, &m.tmp, &m.vec.Z[in.v&31], b)
	in.kern(&m.tmp, &m.vec.Z[in.v&31], b, in)
	m.vecPut(in)
}

// vecRM: reg = kern(rm).
func vecRM(m *Machine, in *inst) {
	b := m.vecSource(in)
	m.tmp = m.vec.Z[in.dst&31]
	m.track(in, &m.tmp, b, b)
	in.kern(&m.tmp, b, b, in)
	m.vecPut(in)
}

// vecMR: rm = kern(reg), where what is stored may be shorter than the register.
func vecMR(m *Machine, in *inst) {
	if !in.mem {
		m.tmp = m.vec.Z[in.dst&31]
		in.kern(&m.tmp, &m.vec.Z[in.reg&31], &m.vec.Z[in.reg&31], in)
		m.vecPut(in)
		return
	}
	in.kern(&m.tmp, &m.vec.Z[in.reg&31], &m.vec.Z[in.reg&31], in)
	m.vecStore(in, &m.tmp)
}

// vecLoad and vecSave are the plain moves.
func vecLoad(m *Machine, in *inst) {
	m.tmp = *m.vecSource(in)
	m.vecPut(in)
}

func vecSave(m *Machine, in *inst) {
	if in.mem {
		m.vecStore(in, &m.vec.Z[in.reg&31])
		return
	}
	m.tmp = m.vec.Z[in.reg&31]
	m.vecPut(in)
}

// vecToMask: k register = kern(vvvv, rm), which gives a bit per element.
func vecToMask(m *Machine, in *inst) {
	b := m.vecSource(in)
	m.tmp = Vec{}
	m.track(in, &m.tmp, &m.vec.Z[in.v&31], b)
	in.kern(&m.tmp, &m.vec.Z[in.v&31], b, in)
	m.vec.K[in.reg&7] = m.tmp[0] & m.active(in)
}

// vecFlags: the kernel's first element becomes the flags.
func vecFlags(m *Machine, in *inst) {
	b := m.vecSource(in)
	m.tmp = Vec{}
	m.track(in, &m.tmp, &m.vec.Z[in.reg&31], b)
	in.kern(&m.tmp, &m.vec.Z[in.reg&31], b, in)
	m.setFlags(m.tmp[0])
}

func vzeroupper(m *Machine, in *inst) {
	keep := 2
	if in.n == 32 {
		keep = 0 // vzeroall
	}
	for i := range 16 {
		for j := keep; j < 8; j++ {
			m.vec.Z[i][j] = 0
		}
	}
}

// misalignedSSE is the bit of MXCSR by which AMD's CPUs let go of the alignment
// that SSE operands need; for Intel's it is a reserved bit.
const misalignedSSE = 1 << 17

func ldmxcsr(m *Machine, in *inst) {
	v := uint32(m.rmOperand(in))
	if v>>16 != 0 && !(misalignment && v>>16 == misalignedSSE>>16) {
		fault()
	}
	m.vec.MXCSR, m.exLost = v, false
	m.vecReady()
}

func fldcw(m *Machine, in *inst) {
	m.noPending()
	m.setControl(uint16(m.load(m.ea(in), 2)))
	m.settle()
}

func fnstcw(m *Machine, in *inst) { m.store(m.ea(in), 2, uint64(m.vec.FCW)) }
