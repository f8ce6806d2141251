// Needs amd64.

//go:build linux && amd64

package interp

import (
	"math"
	"math/bits"
	"testing"
)

// byMaker runs code as on a processor of one maker and of the other. Which is right TestOpcodes asks this machine's.
func byMaker(t *testing.T, hexcode string, vector func(*Vector), check func(t *testing.T, end End, r *Regs)) {
	t.Helper()
	defer func(was bool) { amd = was }(amd)
	for name, is := range map[string]bool{"AMD": true, "Intel": false} {
		t.Run(name, func(t *testing.T) {
			amd = is
			r, mem := target(t, hexcode)
			if vector != nil {
				vector(&r.Vector)
			}
			r.GPR[8] = 1
			m := withoutNative()
			m.Start(r, mem)
			end := m.Run(Limit{Accesses: 9, Instructions: 1})
			m.Regs(r)
			check(t, end, r)
		})
	}
}

func TestPauseWithREX(t *testing.T) {
	byMaker(t, "f34190", nil, func(t *testing.T, end End, r *Regs) {
		if swapped := r.GPR[RAX] != 0; end.Cause != InstructionLimit || swapped != amd {
			t.Errorf("%+v, r8 %#x", end, r.GPR[8])
		}
	})
}

func TestMisalignedSHA(t *testing.T) {
	byMaker(t, "0f38c84304", nil, func(t *testing.T, end End, r *Regs) { // sha1nexte xmm0, [rbx+4]
		want := Fault
		if amd {
			want = InstructionLimit
		}
		if end.Cause != want {
			t.Errorf("%+v, want %v", end, want)
		}
	})
}

// Which NaN becomes the sum of a dot product was measured: for Intel on a Xeon with AMX, for AMD on Zen 4.
func TestDotProductOfNaNs(t *testing.T) {
	intel := map[int][4]int{ // by which products are NaNs
		0b0001: {0, 0, 0, 0}, 0b0011: {1, 0, 1, 0}, 0b0101: {0, 0, 2, 2}, 0b0110: {1, 1, 2, 2}, 0b1011: {1, 0, 3, 3}, 0b1110: {1, 1, 3, 2}, 0b1111: {1, 0, 3, 2},
	}
	for nans, want := range intel {
		const ones = 0x3f8000003f800000
		vector := func(v *Vector) {
			v.Z[1] = [8]uint64{ones, ones}
			for i := range 4 {
				x := uint64(math.Float32bits(1))
				if nans>>i&1 != 0 {
					x = 0x7fc00000 + uint64(i)
				}
				v.Z[0][i/2] |= x << (i % 2 * 32)
			}
		}
		byMaker(t, "660f3a40c1ff", vector, func(t *testing.T, end End, r *Regs) { // dpps xmm0, xmm1, 0xff
			want := want
			if first := bits.TrailingZeros(uint(nans)); amd {
				want = [4]int{first, first, first, first}
			}
			for i := range 4 {
				if got := r.Vector.Z[0][i/2] >> (i % 2 * 32) & 0xffffffff; end.Cause != InstructionLimit || got != 0x7fc00000+uint64(want[i]) {
					t.Errorf("NaNs %04b: %+v, element %d: %#x, want that of %d", nans, end, i, got, want[i])
				}
			}
		})
	}
	byMaker(t, "660f3a41c133", func(v *Vector) { // dppd
		v.Z[0] = [8]uint64{0x7ff8000000000000, 0x7ff8000000000001}
		v.Z[1] = [8]uint64{math.Float64bits(1), math.Float64bits(1)}
	}, func(t *testing.T, end End, r *Regs) {
		want := uint64(0x7ff8000000000001)
		if amd {
			want--
		}
		if got := r.Vector.Z[0]; end.Cause != InstructionLimit || got[0] != 0x7ff8000000000000 || got[1] != want {
			t.Errorf("%+v, %#x", end, got)
		}
	})
}

// Where there are transactions string functions ask whether one is open.
func TestXTest(t *testing.T) {
	defer func(was bool) { transactions = was }(transactions)
	for _, has := range []bool{true, false} {
		transactions = has
		r, mem := target(t, "0f01d6")
		r.Flags |= FlagCF | FlagOF
		m := New()
		m.Start(r, mem)
		end := m.Run(Limit{Accesses: 9, Instructions: 1})
		m.Regs(r)
		if has && (end.Cause != InstructionLimit || r.Flags&arithFlags != FlagZF || r.RIP != codeBase+3) || !has && end.Cause != Unsupported {
			t.Errorf("%+v, flags %#x, at %#x", end, r.Flags, r.RIP)
		}
	}
}
