package interp

// fetch returns the instruction at rip.
func (m *Machine) fetch(rip uint64) *inst {
	c := m.code.Last
	if c == nil || c.Num != rip/pageSize {
		c = m.code.Page(&m.Pages, rip)
	}
	if in := c.At(rip % pageSize); in != nil {
		return in
	}
	return m.decodeAt(c, rip)
}

func (m *Machine) decodeAt(c *CodePage[inst], rip uint64) *inst {
	const longest = 15
	off := int(rip % pageSize)
	if off+longest <= pageSize {
		in := c.Add(uint64(off))
		decode(in, rip, c.Bytes[off:off+longest])
		return in
	}
	// An instruction that may reach into the next page is not kept: it would
	// have to be dropped with either page.
	b := m.window[:copy(m.window[:], c.Bytes[off:])]
	in := &m.single
	*in = inst{}
	if decode(in, rip, b) != errShort {
		return in
	}
	n := len(b)
	b = m.window[:longest]
	copy(b[n:], m.at(rip + uint64(n)).data[:])
	*in = inst{}
	decode(in, rip, b)
	return in
}
