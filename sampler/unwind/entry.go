package unwind

import "fmt"

// cie is a common information entry: what the entries of several functions
// share.
type cie struct {
	codeAlign  uint64
	dataAlign  int64
	ra         uint8 // register of the return address
	encoding   uint8 // of its functions' addresses
	augmented  bool  // its functions have augmentation data
	signal     bool  // its functions are signal trampolines
	initial    []byte
	wordFormat bool // 64-bit DWARF
}

// fde is the entry of one function, or of a part of it.
type fde struct {
	*cie
	start, end uint64 // addresses of the file
	program    []byte
	addr       uint64 // of program
}

// entry splits off the entry at the cursor and leaves the cursor behind it. id
// is the CIE's pointer as it stands, idAt the address of that. A body of nil
// is the end mark.
func entry(c *cursor) (body *cursor, id, idAt uint64, long bool) {
	length := uint64(c.u32())
	if length == 0 {
		return nil, 0, 0, false
	}
	if length == 0xffffffff {
		length, long = c.u64(), true
	}
	at := c.addr + uint64(c.pos)
	body = &cursor{b: c.take(length), addr: at}
	if long {
		return body, body.u64(), at, true
	}
	return body, uint64(body.u32()), at, false
}

// parseCIE reads a CIE's body behind its id.
func parseCIE(c *cursor, long bool) *cie {
	e := &cie{encoding: encAbs, wordFormat: long}
	version := c.u8()
	if version != 1 && version != 3 && version != 4 {
		panic(malformed(fmt.Sprintf("version %d", version)))
	}
	augmentation := c.str()
	if version == 4 {
		if size, segment := c.u8(), c.u8(); size != 8 || segment != 0 {
			panic(malformed(fmt.Sprintf("addresses of %d bytes, segments of %d", size, segment)))
		}
	}
	e.codeAlign = c.uleb()
	e.dataAlign = c.sleb()
	ra := uint64(0)
	if version == 1 {
		ra = uint64(c.u8())
	} else {
		ra = c.uleb()
	}
	if ra >= numRegs {
		panic(malformed(fmt.Sprintf("return address in register %d", ra)))
	}
	e.ra = uint8(ra)
	if augmentation != "" {
		e.augment(c, augmentation)
	}
	e.initial = c.b[c.pos:]
	return e
}

func (e *cie) augment(c *cursor, augmentation string) {
	if augmentation[0] != 'z' {
		panic(malformed(fmt.Sprintf("augmentation %q", augmentation)))
	}
	e.augmented = true
	n := c.uleb()
	at := c.addr + uint64(c.pos)
	a := &cursor{b: c.take(n), addr: at}
	for _, letter := range augmentation[1:] {
		switch letter {
		case 'R':
			e.encoding = a.u8()
		case 'P':
			a.pointer(a.u8(), 0)
		case 'L':
			a.u8()
		case 'S':
			e.signal = true
		case 'B', 'G': // arm64: signed with key B, tagged stack
		default:
			return // the length says where the rest ends
		}
	}
}

// parseFDE reads an FDE's body behind its id.
func parseFDE(c *cursor, e *cie) *fde {
	f := &fde{cie: e}
	f.start = c.pointer(e.encoding, 0)
	f.end = f.start + c.pointer(e.encoding&encFormat, 0)
	if e.augmented {
		c.take(c.uleb())
	}
	f.addr = c.addr + uint64(c.pos)
	f.program = c.b[c.pos:]
	return f
}
