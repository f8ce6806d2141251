package interp

// Overlay puts what the burst has stored over a copy of the target's memory at
// addr, so that b is that memory as the burst sees it.
func (m *Machine) Overlay(addr uint64, b []byte) {
	for at := addr &^ pageMask; at < addr+uint64(len(b)); at += pageSize {
		p := m.pages[at/pageSize]
		if p == nil || !p.dirty {
			continue
		}
		if at >= addr {
			copy(b[at-addr:], p.data[:])
		} else {
			copy(b, p.data[addr-at:])
		}
	}
}
