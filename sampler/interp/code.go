package interp

// fetch returns the instruction at rip, and behind it those that were decoded after it.
func (m *Machine) fetch(rip uint64) []inst {
	c := m.code.Last
	if c == nil || c.Num != rip/pageSize {
		c = m.code.Page(&m.Pages, rip)
	}
	if run := c.From(rip % pageSize); run != nil {
		return run
	}
	return m.decodeAt(c, rip)
}

func (m *Machine) decodeAt(c *CodePage[inst], rip uint64) []inst {
	const longest = 15
	off := int(rip % pageSize)
	if off+longest <= pageSize {
		in := c.Add(uint64(off))
		decode(in, rip, c.Bytes[off:off+longest])
		return c.From(uint64(off))
	}
	b := m.window[:copy(m.window[:], c.Bytes[off:])]
	in := &m.single[0]
	*in = inst{}
	if decode(in, rip, b) != errShort {
		*c.Add(uint64(off)) = *in
		return c.From(uint64(off))
	}
	// An instruction that reaches into the next page is not kept: it would
	// have to be dropped with either page.
	n := len(b)
	b = m.window[:longest]
	copy(b[n:], m.at(rip + uint64(n)).data[:])
	*in = inst{}
	decode(in, rip, b)
	return m.single[:]
}
