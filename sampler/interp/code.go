package interp

import "bytes"

// maxCodePages bounds the decoded pages kept between bursts; beyond it all are
// dropped and decoding starts anew.
const maxCodePages = 4096

// codePage is a page's decoded instructions and the bytes they came from.
type codePage struct {
	num   uint64
	burst uint64 // the last burst in which bytes was seen to be current
	bytes [pageSize]byte
	index [pageSize]uint16 // 1 + index into insts by offset, 0: not decoded
	insts []inst
}

func (c *codePage) reset(b *[pageSize]byte) {
	c.bytes = *b
	c.index = [pageSize]uint16{}
	c.insts = c.insts[:0]
}

// codeAt returns the decoded page of address rip, checked against the burst's
// copy of the page.
func (m *Machine) codeAt(rip uint64) *codePage {
	num := rip / pageSize
	c := m.code[num]
	if c != nil && c.burst == m.burst {
		return c
	}
	b := m.Code(rip)
	if c == nil {
		if len(m.code) >= maxCodePages {
			clear(m.code)
		}
		c = &codePage{num: num}
		c.reset(b)
		m.code[num] = c
	} else if !bytes.Equal(c.bytes[:], b[:]) {
		c.reset(b)
	}
	c.burst = m.burst
	return c
}

// codeWritten drops what was decoded from a page that the burst itself wrote.
func (m *Machine) codeWritten(num uint64) {
	if c := m.code[num]; c != nil {
		c.burst = 0
	}
	m.cur = nil
}

// fetch returns the instruction at rip.
func (m *Machine) fetch(rip uint64) *inst {
	c := m.cur
	if c == nil || c.num != rip/pageSize {
		c = m.codeAt(rip)
		m.cur = c
	}
	if i := c.index[rip%pageSize]; i != 0 {
		return &c.insts[i-1]
	}
	return m.decodeAt(c, rip)
}

func (m *Machine) decodeAt(c *codePage, rip uint64) *inst {
	const longest = 15
	off := int(rip % pageSize)
	if off+longest <= pageSize {
		c.insts = append(c.insts, inst{})
		in := &c.insts[len(c.insts)-1]
		decode(in, rip, c.bytes[off:off+longest])
		c.index[off] = uint16(len(c.insts))
		return in
	}
	// An instruction that may reach into the next page is not kept: it would
	// have to be dropped with either page.
	b := m.window[:copy(m.window[:], c.bytes[off:])]
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
