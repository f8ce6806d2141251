package interp

// Peek reads the 8 bytes at addr as the burst sees them: the target's memory
// under the burst's own stores. It is no access of the program. ok is false
// if they cannot be read.
func (m *Machine) Peek(addr uint64) (v uint64, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, halted := r.(halt); !halted {
				panic(r)
			}
			v, ok = 0, false
		}
	}()
	return m.peek(addr, 8), true
}
