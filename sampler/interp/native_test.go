// Needs amd64 and memory that can be made executable.

//go:build linux && amd64

package interp

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// Modes can be loaded into MXCSR, but for reserved bits.
func TestLoadMXCSR(t *testing.T) {
	misaligned := Fault
	if misalignment {
		misaligned = InstructionLimit
	}
	for mxcsr, want := range map[uint32]Cause{0x1f80: InstructionLimit, 0xffff: InstructionLimit, 0x21f80: misaligned, 0x11f80: Fault, 0x31f80: Fault, 0x41f80: Fault} {
		r, mem := target(t, "0fae13") // ldmxcsr [rbx]
		binary.LittleEndian.PutUint32(mem[dataBase][:], mxcsr)
		m := New()
		m.Start(r, mem)
		if end := m.Run(Limit{Accesses: 9, Instructions: 1}); end.Cause != want {
			t.Errorf("ldmxcsr of %#x: %+v, want %v", mxcsr, end, want)
		}
	}
}

// one runs one instruction with an MXCSR on xmm0 and xmm1.
func one(t *testing.T, m *Machine, hexcode string, mxcsr uint32, a, b uint64) (*Regs, End) {
	r, mem := target(t, hexcode)
	r.Vector.MXCSR = mxcsr
	r.Vector.Z[0][0], r.Vector.Z[1][0] = a, b
	m.Start(r, mem)
	end := m.Run(Limit{Accesses: 9, Instructions: 1})
	m.Regs(r)
	return r, end
}

// The thread's rounding, flushing and denormals count, and flags are its own.
func TestModes(t *testing.T) {
	const (
		third    = 0x3fd5555555555555
		one64    = 0x3ff0000000000000
		three    = 0x4008000000000000
		tiny     = 0x0010000000000000 // the smallest normal number
		half     = 0x3fe0000000000000
		denormal = 0x0008000000000000
	)
	for _, c := range []struct {
		name, code  string
		mxcsr       uint32
		a, b        uint64
		want, after uint64
	}{
		{"to nearest", "f20f5ec1", 0x1f80, one64, three, third, 0x1fa0},
		{"up", "f20f5ec1", 0x5f80, one64, three, third + 1, 0x5fa0},
		{"down", "f20f5ec1", 0x3f80, one64, three, third, 0x3fa0},
		{"denormal result", "f20f59c1", 0x1f80, tiny, half, denormal, 0x1f80},
		{"flushed to zero", "f20f59c1", 0x9f80, tiny, half, 0, 0x9fb0},
		{"denormal operand", "f20f59c1", 0x1f80, denormal, one64, denormal, 0x1f82},
		{"denormal operand taken for zero", "f20f59c1", 0x1fc0, denormal, one64, 0, 0x1fc0},
	} {
		r, end := one(t, New(), c.code, c.mxcsr, c.a, c.b)
		if end.Cause != InstructionLimit || r.Vector.Z[0][0] != c.want || uint64(r.Vector.MXCSR) != c.after {
			t.Errorf("%s: %+v, %#x, MXCSR %#x, want %#x and %#x", c.name, end, r.Vector.Z[0][0], r.Vector.MXCSR, c.want, c.after)
		}
		// Where instructions can't be run natively, other modes are said to be unsupported.
		r, end = one(t, withoutNative(), c.code, c.mxcsr, c.a, c.b)
		if normal := c.mxcsr == 0x1f80; normal && (end.Cause != InstructionLimit || r.Vector.Z[0][0] != c.want) ||
			!normal && (end.Cause != Unsupported || end.Op == "" || end.Err == nil) {
			t.Errorf("%s, not natively: %+v, %#x", c.name, end, r.Vector.Z[0][0])
		}
	}
}

// An exception that is not masked ends the burst before the instruction, and says which it is.
func TestUnmasked(t *testing.T) {
	const one64, tiny, half, big = 0x3ff0000000000000, 0x0010000000000000, 0x3fe0000000000000, 0x7fe0000000000000
	for name, c := range map[string]struct {
		code string
		a, b uint64
		bit  uint32
	}{
		"invalid":          {"f20f5ec1", 0, 0, 0},
		"denormal":         {"f20f58c1", one64, tiny / 2, 1},
		"division by zero": {"f20f5ec1", one64, 0, 2},
		"overflow":         {"f20f59c1", big, big, 3},
		"underflow":        {"f20f59c1", tiny, half, 4}, // though the result is exact
		"inexact":          {"f20f5ec1", one64, 0x4008000000000000, 5},
	} {
		mxcsr := uint32(0x1f80 &^ (1 << (7 + c.bit)))
		r, end := one(t, New(), c.code, mxcsr, c.a, c.b)
		if end.Cause != Fault || !errors.Is(end.Err, errUnmasked) || !strings.HasSuffix(end.Err.Error(), ": "+name) ||
			r.RIP != codeBase || r.Vector.Z[0][0] != c.a || r.Vector.MXCSR != mxcsr {
			t.Errorf("%s: %+v, %#x, %#x", name, end, r.Vector.Z[0][0], r.Vector.MXCSR)
		}
		if _, end = one(t, New(), c.code, mxcsr, one64, one64); end.Cause != InstructionLimit {
			t.Errorf("%s is not masked and not raised: %+v", name, end)
		}
	}
}

// What this processor lacks, and any encoding that it refuses, faults in the
// target and must not in rdx.
func TestIllegal(t *testing.T) {
	m := New()
	m.nativeOK()
	for range 3 {
		n := &native{code: [16]byte{0x0f, 0x0b, 0xc3}}
		err := func() (err error) {
			defer func() { err = recover().(Halt).Err }()
			m.runNative(n, m.frame())
			return nil
		}()
		if !errors.Is(err, errIllegal) {
			t.Fatalf("ud2: %v", err)
		}
	}
	if _, end := one(t, m, "f20f58c1", 0x1f80, 0, 0); end.Cause != InstructionLimit {
		t.Errorf("after an illegal instruction: %+v", end)
	}
}

// The stubs' memory is filled anew when it is full, and never writable and executable at once.
func TestStubsWrap(t *testing.T) {
	m := New()
	for round := range 2 {
		for imm := range 2 * stubsSize / 16 / 256 {
			for low := range 256 {
				n := &native{unit: unitSSE, code: [16]byte{0xb8, byte(low), byte(imm), byte(round), 0, 0xc3}} // mov eax, imm
				f := m.frame()
				m.runNative(n, f)
				if f.ax != uint64(low|imm<<8|round<<16) {
					t.Fatalf("%d %d %d: %#x", round, imm, low, f.ax)
				}
			}
		}
	}
	if m.stubs.epoch < 2 {
		t.Errorf("epoch %d", m.stubs.epoch)
	}
	n := &native{unit: unitSSE, code: [16]byte{0xb8, 1, 0, 0, 0, 0xc3}}
	n.at, n.epoch = 1, m.stubs.epoch-1
	f := m.frame()
	if m.runNative(n, f); f.ax != 1 {
		t.Errorf("of an earlier epoch: %#x", f.ax)
	}
}
