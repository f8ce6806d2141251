package interp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

func cpuid(leaf, sub uint32) (a, b, c, d uint32)

// XSAVELayout is where the vector registers lie in the buffer that
// PTRACE_GETREGSET gives for NT_X86_XSTATE, in bytes; 0 where the CPU has no
// such part. It differs between CPU models.
type XSAVELayout struct {
	YMM   int // upper half of ymm0-15
	Mask  int // k0-7
	ZMM   int // upper half of zmm0-15
	Hi16  int // zmm16-31
	Total int // size of the buffer
}

// ReadXSAVELayout asks this machine's CPU. Parts that the operating system has
// not enabled are in the layout too, but their bit in XSTATE_BV stays clear.
func ReadXSAVELayout() XSAVELayout {
	max, _, _, _ := cpuid(0, 0)
	if max < 0xd {
		return XSAVELayout{Total: 512 + 64}
	}
	offset := func(part uint32) int {
		size, at, _, _ := cpuid(0xd, part)
		if size == 0 {
			return 0
		}
		return int(at)
	}
	_, _, total, _ := cpuid(0xd, 0)
	return XSAVELayout{YMM: offset(2), Mask: offset(5), ZMM: offset(6), Hi16: offset(7), Total: int(total)}
}

// Decode fills v from an XSAVE buffer in the standard format.
func (l XSAVELayout) Decode(v *Vector, b []byte) error {
	const header = 512
	if len(b) < header+64 {
		return fmt.Errorf("decode xsave: %d bytes, need at least %d", len(b), header+64)
	}
	le := binary.LittleEndian
	present := le.Uint64(b[header:])
	has := func(part uint, at, size int) (bool, error) {
		if at == 0 || present>>part&1 == 0 {
			return false, nil
		}
		if at+size > len(b) {
			return false, errors.New("decode xsave: buffer ends inside the vector registers")
		}
		return true, nil
	}
	*v = Vector{MXCSR: le.Uint32(b[24:]), FCW: le.Uint16(b)}
	v.X87.FSW, v.X87.Valid = le.Uint16(b[2:]), b[4]
	for i := range uint8(8) { // they lie from the top of the stack on
		v.X87.R[v.X87.at(i)] = F80{le.Uint64(b[32+16*int(i):]), le.Uint16(b[40+16*int(i):])}
	}
	if present>>1&1 != 0 {
		for i := range 16 {
			v.Z[i][0] = le.Uint64(b[160+16*i:])
			v.Z[i][1] = le.Uint64(b[168+16*i:])
		}
	}
	// lanes copies the n words of each of 16 registers to word w upwards.
	lanes := func(first, w, n, at int) {
		for i := range 16 {
			for j := range n {
				v.Z[first+i][w+j] = le.Uint64(b[at+8*(i*n+j):])
			}
		}
	}
	for _, p := range [...]struct {
		part                  uint
		at, size, first, w, n int
	}{{2, l.YMM, 256, 0, 2, 2}, {6, l.ZMM, 512, 0, 4, 4}, {7, l.Hi16, 1024, 16, 0, 8}} {
		if ok, err := has(p.part, p.at, p.size); err != nil {
			return err
		} else if ok {
			lanes(p.first, p.w, p.n, p.at)
		}
	}
	ok, err := has(5, l.Mask, 64)
	if err != nil {
		return err
	}
	if ok {
		for i := range 8 {
			v.K[i] = le.Uint64(b[l.Mask+8*i:])
		}
	}
	return nil
}
