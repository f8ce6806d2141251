package a64

import "encoding/binary"

const pageSize = 4096

// fetch returns the instruction at pc.
func (m *Machine) fetch(pc uint64) *inst {
	c := m.code.Last
	if c == nil || c.Num != pc/pageSize {
		c = m.code.Page(&m.mem, pc)
	}
	off := pc % pageSize &^ 3
	if in := c.At(off); in != nil {
		return in
	}
	in := c.Add(off)
	decode(in, pc, word32(binary.LittleEndian.Uint32(c.Bytes[off:])))
	return in
}
