package interp

import "bytes"

// maxCodePages bounds the decoded pages kept between bursts; beyond it all are
// dropped and decoding starts anew.
const maxCodePages = 4096

// CodePage is a page's decoded instructions, of type I, and the bytes they came
// from.
type CodePage[I any] struct {
	Bytes [pageSize]byte
	Num   uint64           // address / 4096
	burst uint64           // the last burst in which Bytes was seen to be current
	same  *[pageSize]byte  // lasting, and known to be what Bytes are; nil: none
	index [pageSize]uint16 // 1 + index into insts by offset, 0: not decoded
	insts []I
}

func (c *CodePage[I]) reset(b *[pageSize]byte) {
	c.Bytes = *b
	c.index = [pageSize]uint16{}
	c.insts = c.insts[:0]
}

// At returns the instruction decoded at an offset, nil if none was.
func (c *CodePage[I]) At(offset uint64) *I {
	if i := c.index[offset]; i != 0 {
		return &c.insts[i-1]
	}
	return nil
}

// From returns the instruction decoded at an offset and those that were decoded
// after it, which mostly follow it; nil if none was.
func (c *CodePage[I]) From(offset uint64) []I {
	if i := c.index[offset]; i != 0 {
		return c.insts[i-1:]
	}
	return nil
}

// Add returns room for the instruction at an offset, to be decoded into.
func (c *CodePage[I]) Add(offset uint64) *I {
	var none I
	c.insts = append(c.insts, none)
	c.index[offset] = uint16(len(c.insts))
	return &c.insts[len(c.insts)-1]
}

// CodeCache keeps decoded code between bursts. In each burst a page is compared
// with the burst's copy of it before its code is used.
type CodeCache[I any] struct {
	pages map[uint64]*CodePage[I]
	Last  *CodePage[I] // that Page returned last; nil if it must be looked up again
	burst uint64
	// recent are pages that were seen to be current in this burst, by the last bits of their number: a map takes
	// several times as long.
	recent [recentPages]*CodePage[I]
}

const recentPages = 64

// NewCodeCache returns an empty one.
func NewCodeCache[I any]() CodeCache[I] { return CodeCache[I]{pages: make(map[uint64]*CodePage[I])} }

// Start begins a burst.
func (cc *CodeCache[I]) Start() {
	cc.burst++
	cc.Last = nil
}

// Undone is to be called when the burst's stores have been taken back.
func (cc *CodeCache[I]) Undone() { cc.Last = nil }

// Written drops what was decoded from a page, by its address / 4096, that the
// burst itself has changed.
func (cc *CodeCache[I]) Written(num uint64) {
	if c := cc.pages[num]; c != nil {
		c.burst = 0
	}
	cc.Last = nil
}

// Page returns the decoded page of address addr. Whoever runs code looks at Last
// first: the call is too dear for every instruction.
func (cc *CodeCache[I]) Page(mem *Pages, addr uint64) *CodePage[I] {
	num := addr / pageSize
	if c := cc.recent[num%recentPages]; c != nil && c.Num == num && c.burst == cc.burst {
		cc.Last = c
		return c
	}
	c := cc.pages[num]
	if c != nil && c.burst == cc.burst {
		cc.Last, cc.recent[num%recentPages] = c, c
		return c
	}
	b, lasting := mem.Code(addr)
	if c == nil {
		if len(cc.pages) >= maxCodePages {
			clear(cc.pages)
			clear(cc.recent[:])
		}
		c = &CodePage[I]{Num: num}
		c.reset(b)
		cc.pages[num] = c
	} else if !(lasting && c.same == b) && !bytes.Equal(c.Bytes[:], b[:]) {
		c.reset(b)
	}
	if c.same = nil; lasting {
		c.same = b
	}
	c.burst, cc.Last, cc.recent[num%recentPages] = cc.burst, c, c
	return c
}
