package unwind

import (
	"encoding/binary"
	"fmt"
)

// malformed is what parsing panics with inside the package.
type malformed string

func (m malformed) Error() string { return "malformed call frame information: " + string(m) }

// recoverMalformed is to be deferred: it turns the panic into an error.
func recoverMalformed(err *error) {
	if r := recover(); r != nil {
		m, ok := r.(malformed)
		if !ok {
			panic(r)
		}
		*err = m
	}
}

// cursor reads bytes that lie at address addr of the file. Reading past the
// end panics with malformed.
type cursor struct {
	b    []byte
	pos  int
	addr uint64
}

func (c *cursor) done() bool { return c.pos >= len(c.b) }

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)-c.pos) {
		panic(malformed(fmt.Sprintf("%d bytes wanted, %d left", n, len(c.b)-c.pos)))
	}
	b := c.b[c.pos : c.pos+int(n)]
	c.pos += int(n)
	return b
}

func (c *cursor) u8() uint8   { return c.take(1)[0] }
func (c *cursor) u16() uint16 { return binary.LittleEndian.Uint16(c.take(2)) }
func (c *cursor) u32() uint32 { return binary.LittleEndian.Uint32(c.take(4)) }
func (c *cursor) u64() uint64 { return binary.LittleEndian.Uint64(c.take(8)) }

func (c *cursor) uleb() uint64 {
	var v uint64
	for shift := 0; ; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if b < 0x80 {
			return v
		}
	}
}

func (c *cursor) sleb() int64 {
	var v int64
	for shift := 0; ; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= int64(b&0x7f) << shift
		}
		if b < 0x80 {
			if b&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
}

func (c *cursor) str() string {
	start := c.pos
	for c.u8() != 0 {
	}
	return string(c.b[start : c.pos-1])
}

// Pointer encodings, DW_EH_PE_* of the Linux Standard Base.
const (
	encAbs, encULEB, encU2, encU4, encU8 = 0x00, 0x01, 0x02, 0x03, 0x04
	encSLEB, encS2, encS4, encS8         = 0x09, 0x0a, 0x0b, 0x0c
	encFormat, encBase                   = 0x0f, 0x70
	encPCRel, encDataRel                 = 0x10, 0x30
	encOmit                              = 0xff
)

// pointer reads an encoded pointer; data is what encDataRel is relative to.
// An indirect one is returned as the address of the pointer: code ranges are
// never indirect.
func (c *cursor) pointer(enc uint8, data uint64) uint64 {
	if enc == encOmit {
		return 0
	}
	at := c.addr + uint64(c.pos)
	var v uint64
	switch enc & encFormat {
	case encAbs, encU8, encS8:
		v = c.u64()
	case encULEB:
		v = c.uleb()
	case encU2:
		v = uint64(c.u16())
	case encU4:
		v = uint64(c.u32())
	case encSLEB:
		v = uint64(c.sleb())
	case encS2:
		v = uint64(int16(c.u16()))
	case encS4:
		v = uint64(int32(c.u32()))
	default:
		panic(malformed(fmt.Sprintf("pointer encoding %#x", enc)))
	}
	switch enc & encBase {
	case encAbs:
	case encPCRel:
		v += at
	case encDataRel:
		v += data
	default:
		panic(malformed(fmt.Sprintf("pointer encoding %#x", enc)))
	}
	return v
}
