package ahead

import (
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/proc"
)

// made is a space with three mappings, a heap and a stack.
func made() *space {
	s := new(space)
	s.add(proc.Mapping{Start: 0x10000, Limit: 0x20000, Name: []byte("/bin/prog")})
	s.add(proc.Mapping{Start: 0x20000, Limit: 0x30000, Name: []byte("[heap]")})
	s.add(proc.Mapping{Start: 0x100000, Limit: 0x110000})
	s.add(proc.Mapping{Start: 0x114000, Limit: 0x120000, Name: []byte("/lib/ld.so")})
	s.add(proc.Mapping{Start: 0x800000, Limit: 0x900000, Name: []byte("[stack]")})
	s.add(proc.Mapping{Start: 0xf00000, Limit: 0xf01000, Name: []byte("[vdso]")})
	return s
}

// Memory is mapped in the highest gap that it fits into, and what is unmapped makes
// one; what is new is zero.
func TestSpaceMaps(t *testing.T) {
	s, m := made(), newMachine()
	for _, c := range []struct{ size, at uint64 }{
		{0x4001, 0xfb000},  // of five pages, the gap of four is too small
		{0x2000, 0x112000}, // above it
		{0x2000, 0x110000},
		{0x1000, 0xfa000},
	} {
		if at, ok := s.mapAnywhere(m, c.size); !ok || at != c.at {
			t.Errorf("%#x bytes at %#x, %v; want %#x", c.size, at, ok, c.at)
		}
	}
	if want := []extent{{0x10000, 0x30000}, {0xfa000, 0x120000}}; !slices.Equal(s.mapped, want) {
		t.Errorf("%#x, want %#x", s.mapped, want)
	}
	s.unmap(0x100000, 0x800)
	s.unmap(0x11f000, 0x1000)
	if want := []extent{{0x10000, 0x30000}, {0xfa000, 0x100000}, {0x101000, 0x11f000}}; !slices.Equal(s.mapped, want) {
		t.Errorf("%#x, want %#x", s.mapped, want)
	}
	if at, ok := s.mapAnywhere(m, 1); !ok || at != 0x100000 {
		t.Errorf("at %#x, %v; want what was unmapped", at, ok)
	}
	if !s.isFresh(0x100fff) || s.isFresh(0x101000) {
		t.Error("new memory is not told from old")
	}
	if _, ok := s.mapAnywhere(m, hugePage); ok {
		t.Error("a large page's place was guessed")
	}
}

func TestSpaceBreak(t *testing.T) {
	s, m := made(), newMachine()
	for _, c := range []struct {
		to, result uint64
		ok         bool
	}{
		{0, 0x30000, true},
		{0x34000, 0x34000, true},
		{0x28000, 0x28000, true},
		{0, 0x28000, true},
		{0x2a000, 0x2a000, true},
		{0x1000, 0, false},
	} {
		if got, ok := s.setBreak(m, c.to); got != c.result || ok != c.ok {
			t.Errorf("brk(%#x): %#x, %v", c.to, got, ok)
		}
	}
	for addr, want := range map[uint64]bool{0x27fff: false, 0x28000: true, 0x29fff: true, 0x33fff: true, 0x34000: false} {
		if s.isFresh(addr) != want {
			t.Errorf("%#x is new: %v", addr, !want)
		}
	}
	if _, ok := new(space).setBreak(m, 0); ok {
		t.Error("a break without a heap")
	}
}
