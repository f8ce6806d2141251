package interp

import (
	"encoding/binary"
	"testing"
)

// Registers that the CPU lacks are 0, whatever the buffer says is in it: that of a CPU with AVX and without AVX-512, and of one
// with SSE alone.
func TestDecodeWithoutRegisters(t *testing.T) {
	rnd := seeded(t)
	for name, l := range map[string]XSAVELayout{"AVX": {YMM: 576, Total: 832}, "SSE": {Total: 576}} {
		b := make([]byte, l.Total)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		binary.LittleEndian.PutUint64(b[512:], ^uint64(0))
		var v, want Vector
		for i := range v.Z { // what was there before
			v.Z[i] = Vec{1, 2, 3, 4, 5, 6, 7, 8}
		}
		v.K = [8]uint64{1, 2, 3}
		if err := l.Decode(&v, b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range 16 {
			for j := range 2 {
				want.Z[i][j] = binary.LittleEndian.Uint64(b[160+16*i+8*j:])
				if l.YMM != 0 {
					want.Z[i][2+j] = binary.LittleEndian.Uint64(b[l.YMM+16*i+8*j:])
				}
			}
		}
		if v.Z != want.Z || v.K != want.K {
			t.Errorf("%s: z %x k %x, want z %x", name, v.Z, v.K, want.Z)
		}
		if l.YMM == 0 {
			continue
		}
		if err := l.Decode(&v, b[:l.Total-1]); err == nil {
			t.Errorf("%s: a buffer that ends inside ymm15 is no error", name)
		}
	}
}
