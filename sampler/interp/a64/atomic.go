package a64

// exclusives decodes load-exclusive, store-exclusive, compare and swap, and loads
// and stores that acquire and release: in one thread the order is the program's.
func (in *inst) exclusives(w word32) handler {
	in.size = uint8(w.bits(31, 30))
	isLoad, other, pairs := w.is(22), w.is(23), w.is(21)
	in.rm = w.rm()
	switch {
	case other && !pairs: // ldar, stlr
		if isLoad {
			return loadOrdered
		}
		in.rd = source(w.rd())
		return storeOrdered
	case !other && (!pairs || w.is(31)):
		in.q = pairs
		if pairs {
			in.size = 2 + uint8(w.bit(30))
		}
		if isLoad {
			return loadExclusive
		}
		in.flags |= isLocked
		in.rd, in.ra, in.rm = source(w.rd()), source(w.ra()), target(w.rm())
		return storeExclusive
	}
	in.flags |= isLocked
	if other {
		in.rd = source(w.rd())
		return compareSwap
	}
	in.size = 2 + uint8(w.bit(30))
	in.rd, in.rm = w.rd(), w.rm()
	return compareSwapPair
}

// aligned is the address of an atomic or ordered access, which must be a multiple of
// its bytes for all CPUs to make it.
func (m *Machine) aligned(in *inst, bytes uint64) uint64 {
	addr := canonical(m.r[in.rn&63] + in.imm)
	if addr&(bytes-1) != 0 {
		unsupported(m, in)
	}
	return addr
}

func loadOrdered(m *Machine, in *inst) {
	v := m.loadInt(m.aligned(in, 1<<in.size), in.size)
	m.r[in.rd&63] = extend(v, in.size, in.kind)
}

func storeOrdered(m *Machine, in *inst) {
	m.storeInt(m.aligned(in, 1<<in.size), in.size, m.r[in.rd&63])
}

// exclusiveBytes is the size of an exclusive access.
func (in *inst) exclusiveBytes() uint64 {
	n := uint64(1) << in.size
	if in.q {
		n *= 2
	}
	return n
}

func loadExclusive(m *Machine, in *inst) {
	n := in.exclusiveBytes()
	addr := m.aligned(in, n)
	m.log(addr, int(n), false)
	half := uint8(1) << in.size
	a, b := m.mem.Peek(addr, half), uint64(0)
	if in.q {
		b = m.mem.Peek(addr+uint64(half), half)
	}
	m.exclusive, m.exclusiveSize = addr, uint8(n)
	m.r[in.rd&63] = a
	if in.q {
		m.r[in.ra&63] = b
	}
}

// storeExclusive stores if the last load-exclusive was of the same. A burst that
// begins between the two fails to, as the thread will: stopping it has cleared
// its monitor.
func storeExclusive(m *Machine, in *inst) {
	n := in.exclusiveBytes()
	addr := m.aligned(in, n)
	if m.exclusiveSize == 0 {
		m.r[in.rm&63] = 1
		return
	}
	if m.exclusive != addr || m.exclusiveSize != uint8(n) {
		unsupported(m, in) // depends on the CPU
	}
	m.log(addr, int(n), true)
	half := uint8(1) << in.size
	m.mem.Poke(addr, half, m.r[in.rd&63])
	if in.q {
		m.mem.Poke(addr+uint64(half), half, m.r[in.ra&63])
	}
	m.exclusiveSize = 0
	m.r[in.rm&63] = 0
}

// compareSwap stores only where it finds what it is to compare with.
func compareSwap(m *Machine, in *inst) {
	addr := m.aligned(in, 1<<in.size)
	old := m.loadInt(addr, in.size)
	var want uint64
	if in.rm != 31 {
		want = m.r[in.rm&63]
	}
	if old == want&sizeMask(in.size) {
		m.storeInt(addr, in.size, m.r[in.rd&63])
	}
	m.r[target(in.rm)&63] = old
}

func compareSwapPair(m *Machine, in *inst) {
	n := uint64(1) << in.size
	addr := m.aligned(in, 2*n)
	mask := sizeMask(in.size)
	m.log(addr, int(2*n), false)
	a, b := m.mem.Peek(addr, uint8(n)), m.mem.Peek(addr+n, uint8(n))
	if a == m.r[in.rm&63]&mask && b == m.r[source(in.rm+1)&63]&mask {
		m.log(addr, int(2*n), true)
		m.mem.Poke(addr, uint8(n), m.r[in.rd&63])
		m.mem.Poke(addr+n, uint8(n), m.r[source(in.rd+1)&63])
	}
	m.r[in.rm&63], m.r[target(in.rm+1)&63] = a, b
}

// atomic decodes ldadd to ldumin, swp and ldapr.
func (in *inst) atomic(w word32) handler {
	in.size = uint8(w.bits(31, 30))
	in.rm, in.op = source(w.rm()), uint8(w.bits(15, 12))
	if in.op == 12 {
		return loadOrdered // ldapr
	}
	in.flags |= isLocked
	return atomicModify
}

func atomicModify(m *Machine, in *inst) {
	addr := m.aligned(in, 1<<in.size)
	old := m.loadInt(addr, in.size)
	v := m.r[in.rm&63]
	drop := (64 - 8<<in.size) & 63
	a, b := old<<drop, v<<drop // for comparing
	switch in.op {
	case 0:
		v = old + v
	case 1:
		v = old &^ v
	case 2:
		v = old ^ v
	case 3:
		v = old | v
	case 4:
		if int64(a) > int64(b) {
			v = old
		}
	case 5:
		if int64(a) < int64(b) {
			v = old
		}
	case 6:
		if a > b {
			v = old
		}
	case 7:
		if a < b {
			v = old
		}
	}
	m.storeInt(addr, in.size, v)
	m.r[in.rd&63] = old
}

// sizeMask is the mask of 1<<size bytes.
func sizeMask(size uint8) uint64 { return ^uint64(0) >> ((64 - 8<<size) & 63) }
