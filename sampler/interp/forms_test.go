package interp

import (
	"testing"
	"unsafe"
)

// A decoded instruction is as large as a line of a cache: a burst reads thousands, most of which are not in one.
func TestInstIsALine(t *testing.T) {
	const line = 64
	if n := unsafe.Sizeof(inst{}); n != line {
		t.Errorf("an instruction takes %d bytes, want %d", n, line)
	}
}

// What is neither a vector nor an x87 instruction shares an empty form, which no decoding changes.
func TestNoForm(t *testing.T) {
	var code [15]byte
	for _, prefix := range [][]byte{nil, {0x66}, {0xf2}, {0xf3}, {0x48}, {0xf0}} {
		for op := range 1 << 16 {
			n := copy(code[:], prefix)
			code[n], code[n+1], code[n+2] = byte(op>>8), byte(op), 0xc1
			var in inst
			_ = decode(&in, 0, code[:])
			if noForm.kern != nil || noForm.nat != nil || noForm.raise != nil || noForm.n != 0 || noForm.size != 0 || noForm.esz != 0 || noForm.legacy {
				t.Fatalf("decoding % x changes the form of all others", code[:n+3])
			}
		}
	}
}
