package a64

import (
	"bytes"
	"encoding/binary"
)

const (
	pageSize = 4096

	// maxCodePages bounds the decoded pages kept between bursts; beyond it all
	// are dropped and decoding starts anew.
	maxCodePages = 4096
)

// codePage is a page's decoded instructions and the bytes they came from.
type codePage struct {
	num   uint64
	burst uint64 // the last burst in which bytes was seen to be current
	bytes [pageSize]byte
	index [pageSize / 4]uint16 // 1 + index into insts by word, 0: not decoded
	insts []inst
}

func (c *codePage) reset(b *[pageSize]byte) {
	c.bytes = *b
	c.index = [pageSize / 4]uint16{}
	c.insts = c.insts[:0]
}

// codeAt returns the decoded page of address pc, checked against the burst's
// copy of the page.
func (m *Machine) codeAt(pc uint64) *codePage {
	num := pc / pageSize
	c := m.code[num]
	if c != nil && c.burst == m.burst {
		return c
	}
	b := m.mem.Code(pc)
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

// fetch returns the instruction at pc.
func (m *Machine) fetch(pc uint64) *inst {
	c := m.cur
	if c == nil || c.num != pc/pageSize {
		c = m.codeAt(pc)
		m.cur = c
	}
	word := pc % pageSize / 4
	if c.index[word] == 0 {
		c.insts = append(c.insts, inst{})
		decode(&c.insts[len(c.insts)-1], pc, word32(binary.LittleEndian.Uint32(c.bytes[word*4:])))
		c.index[word] = uint16(len(c.insts))
	}
	return &c.insts[c.index[word]-1]
}
