package a64

// What string functions do to every 16 bytes is computed for eight bytes at a time.

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// packed is the handler for operations on bytes that has a faster way, nil if there
// is none.
func packed(w word32, size uint32) handler {
	if size != 0 {
		return nil
	}
	switch w.bits(15, 11)<<1 | w.bit(29) {
	case 0x23:
		return bytesEqual
	case 0x0f:
		return bytesHigherSame
	case 0x0d:
		return bytesHigher
	}
	return nil
}

// fill makes every byte whose high bit is set 0xff, and the others 0.
func fill(high uint64) uint64 {
	high &= highBits
	return high >> 7 * 0xff
}

// notLess has the high bit of each byte where a >= b, unsigned.
func notLess(a, b uint64) uint64 {
	// The low seven bits, with room for the borrow, and then the high ones.
	low := (a | highBits) - (b &^ highBits)
	return a&^b | ^(a^b)&low
}

func bytesEqual(m *Machine, in *inst) {
	a, b := &m.vec.V[in.rn&31], &m.vec.V[in.rm&31]
	equal := func(x uint64) uint64 {
		return fill(^((x&^highBits + ^uint64(highBits)) | x))
	}
	m.setLogic(in, equal(a[0]^b[0]), equal(a[1]^b[1]))
}

func bytesHigherSame(m *Machine, in *inst) {
	a, b := &m.vec.V[in.rn&31], &m.vec.V[in.rm&31]
	m.setLogic(in, fill(notLess(a[0], b[0])), fill(notLess(a[1], b[1])))
}

func bytesHigher(m *Machine, in *inst) {
	a, b := &m.vec.V[in.rn&31], &m.vec.V[in.rm&31]
	m.setLogic(in, fill(^notLess(b[0], a[0])), fill(^notLess(b[1], a[1])))
}

// shiftNarrow is shrn.
func shiftNarrow(m *Machine, in *inst) {
	a, d := m.vec.V[in.rn&31], &m.vec.V[in.rd&31]
	mask := sizeMask(in.size)
	n := 8 << in.size // bits of a narrow lane
	var r uint64
	for half := range 2 {
		for at := 0; at < 64; at += 2 * n {
			r |= a[half] >> (at & 63) & (1<<(2*n) - 1) >> in.imm & mask << ((at/2 + 32*half) & 63)
		}
	}
	if in.q {
		d[1] = r
	} else {
		*d = Vec{r}
	}
}
