package interp

// kernel computes the lanes of a vector operation: d of a and b.
type kernel func(d, a, b *Vec, in *inst)

// vecForm is the part of inst that only vector instructions use.
type vecForm struct{ vsib, vsibWide bool }

func (d *decoder) vector(op byte) {}

func ldmxcsr(m *Machine, in *inst) {
	v := uint32(m.rmOperand(in))
	if v>>16 != 0 {
		fault()
	}
	m.vec.MXCSR = v
	m.vecReady()
}
