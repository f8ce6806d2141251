package unwind

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// entries builds an .eh_frame at 0x2000: one CIE and a function for each
// program, 0x100 bytes long each from 0x1000 on.
func entries(ra byte, codeAlign byte, initial []byte, programs ...[]byte) []byte {
	var b []byte
	entry := func(body []byte) {
		for len(body)%8 != 4 {
			body = append(body, 0) // nop
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
		b = append(b, body...)
	}
	cie := []byte{0, 0, 0, 0, 1, 'z', 'R', 0, codeAlign, 0x78, ra, 1, encU8}
	entry(append(cie, initial...))
	for i, p := range programs {
		fde := binary.LittleEndian.AppendUint32(nil, uint32(len(b)+4))
		fde = binary.LittleEndian.AppendUint64(fde, uint64(0x1000+0x100*i))
		fde = binary.LittleEndian.AppendUint64(fde, 0x100)
		fde = append(fde, 0)
		entry(append(fde, p...))
	}
	return b
}

func stackOf(base uint64, words ...uint64) Stack {
	s := Stack{Base: base}
	for _, w := range words {
		s.Data = binary.LittleEndian.AppendUint64(s.Data, w)
	}
	return s
}

func walkerOf(t *testing.T, arch *Arch, frames []byte) *Walker {
	t.Helper()
	table, err := NewTable(bytes.NewReader(elfWith(arch, frames)), arch)
	if err != nil {
		t.Fatal(err)
	}
	return NewWalker(arch, func(pc uint64) Code {
		switch {
		case pc >= 0x1000 && pc < 0x2000:
			return Code{Table: table, PC: pc, Known: true}
		case pc >= 0x9000 && pc < 0xa000: // generated code
			return Code{Known: true}
		}
		return Code{}
	})
}

// arm64: a leaf with its return address in x30, a function that has saved and
// signed it, and one that is marked as outermost.
func TestWalkARM64(t *testing.T) {
	frames := entries(30, 4, []byte{0x0c, 31, 0}, // CFA sp+0
		nil, // 0x1000: leaf
		[]byte{
			0x2d,     // negate_ra_state
			0x41,     // at +4:
			0x0e, 32, // CFA sp+32
			0x80 | 29, 4, // x29 at CFA-32
			0x80 | 30, 3, // x30 at CFA-24
		}, // 0x1100
		[]byte{0x07, 30}, // 0x1200: x30 undefined
	)
	w := walkerOf(t, ARM64, frames)
	s := &Snapshot{Stack: stackOf(0x7000, 0x7777, 0xab5c<<48|0x1210, 0, 0)}
	s.Regs.PC = 0x1008
	s.Regs.R[30], s.Regs.R[31] = 0x1110, 0x7000
	got, end := w.Walk(s)
	want := []Frame{{0x1008, 0x7000}, {0x1110, 0x7020}, {0x1210, 0x7020}}
	if end != Outermost || !slices.Equal(got, want) {
		t.Errorf("%x, %v; want %x", got, end, want)
	}
	// The same leaf again above a frame: its return address is not known.
	s.Regs.R[30] = 0x1010
	if got, end := w.Walk(s); end != BadInfo || len(got) != 2 {
		t.Errorf("a leaf as caller: %x, %v", got, end)
	}
}

// Generated code has frame pointers, and is called by code that has none.
func TestWalkFramePointers(t *testing.T) {
	frames := entries(16, 1, []byte{0x0c, 7, 8, 0x90, 1}, // CFA rsp+8, return address at CFA-8
		[]byte{0x0e, 24},                // 0x1000: CFA rsp+24
		[]byte{0x07, 16},                // 0x1100: outermost
		[]byte{0x0e, 16, 0x86, 2, 0x0a}, // 0x1200: rbp at CFA-16
	)
	for _, c := range []struct {
		name  string
		pc    uint64
		rbp   uint64
		stack []uint64
		pcs   []uint64
		end   End
	}{
		{"mixed", 0x9010, 0x7008, []uint64{5, 0x7020, 0x9020, 5, 0x7777, 0x1010, 5, 5, 0x1110}, []uint64{0x9010, 0x9020, 0x1010, 0x1110}, Outermost},
		{"zero ends", 0x9010, 0x7008, []uint64{5, 0x7018, 0x9020, 0, 0, 0x9030}, []uint64{0x9010, 0x9020, 0}, Outermost},
		{"not a frame pointer", 0x9010, 0x7008, []uint64{5, 0x7020, 0x5555}, []uint64{0x9010}, NoInfo},
		{"odd", 0x9010, 0x7009, []uint64{5, 0x7020, 0x9020}, []uint64{0x9010}, NoInfo},
		{"below", 0x9010, 0x6ff8, []uint64{5, 0x7020, 0x9020}, []uint64{0x9010}, NoInfo},
		{"beyond the copy", 0x9010, 0x8000, []uint64{5}, []uint64{0x9010}, NotCopied},
		{"unknown code", 0xb000, 0, []uint64{5}, []uint64{0xb000}, UnknownCode},
		{"copy too short", 0x1010, 0, []uint64{5}, []uint64{0x1010}, NotCopied},
		{"null return address", 0x1010, 0, []uint64{5, 5, 0}, []uint64{0x1010}, Outermost},
		{"frame pointer lost", 0x1010, 0, []uint64{5, 5, 0x9010, 1}, []uint64{0x1010, 0x9010}, NoInfo},
	} {
		s := &Snapshot{Stack: stackOf(0x7000, c.stack...)}
		s.Regs.PC, s.Regs.R[7], s.Regs.R[6] = c.pc, 0x7000, c.rbp
		frames, end := walkerOf(t, AMD64, frames).Walk(s)
		var pcs []uint64
		for _, f := range frames {
			pcs = append(pcs, f.PC)
		}
		if c.name == "zero ends" {
			pcs = append(pcs, 0)
		}
		if end != c.end || !slices.Equal(pcs, c.pcs) {
			t.Errorf("%s: %x, %v; want %x, %v", c.name, pcs, end, c.pcs, c.end)
		}
	}
}

// A stack of functions that call themselves is cut at MaxFrames.
func TestWalkTooDeep(t *testing.T) {
	frames := entries(16, 1, []byte{0x0c, 7, 8, 0x90, 1}, nil)
	s := &Snapshot{Stack: stackOf(0x7000, slices.Repeat([]uint64{0x1010}, 2*MaxFrames)...)}
	s.Regs.PC, s.Regs.R[7] = 0x1010, 0x7000
	if got, end := walkerOf(t, AMD64, frames).Walk(s); len(got) != MaxFrames || end != TooDeep {
		t.Errorf("%d frames, %v", len(got), end)
	}
}

func BenchmarkWalk(b *testing.B) {
	frames := entries(16, 1, []byte{0x0c, 7, 8, 0x90, 1}, []byte{0x0e, 64, 0x86, 2, 0x83, 3}, []byte{0x07, 16})
	table, err := NewTable(bytes.NewReader(elfWith(AMD64, frames)), AMD64)
	if err != nil {
		b.Fatal(err)
	}
	w := NewWalker(AMD64, func(pc uint64) Code { return Code{Table: table, PC: pc, Known: true} })
	var words []uint64
	for range 20 {
		words = append(words, 0, 0, 0, 0, 0, 0, 0, 0x1010)
	}
	words[len(words)-1] = 0x1110
	s := &Snapshot{Stack: stackOf(0x7000, words...)}
	s.Regs.PC, s.Regs.R[7] = 0x1010, 0x7000
	for b.Loop() {
		if got, end := w.Walk(s); end != Outermost {
			b.Fatalf("%d frames, %v", len(got), end)
		}
	}
}

// Wherever a copy is split in two, each of its addresses reads as if it were one.
func TestStackInTwo(t *testing.T) {
	var b [40]byte
	for i := range b {
		b[i] = byte(i + 1)
	}
	whole := Stack{Base: 0x1000, Data: b[:]}
	for cut := range len(b) + 1 {
		two := Stack{Base: 0x1000, Data: b[:cut], Above: b[cut:]}
		for addr := whole.Base - 9; addr < whole.Base+uint64(len(b))+9; addr++ {
			want, wantOK := whole.Load(addr)
			if wantOK != (addr >= whole.Base && addr+8 <= whole.Base+uint64(len(b))) {
				t.Fatalf("whole, at %#x: %v", addr, wantOK)
			}
			if got, ok := two.Load(addr); got != want || ok != wantOK {
				t.Errorf("cut after %d, at %#x: %#x, %v, want %#x, %v", cut, addr, got, ok, want, wantOK)
			}
		}
	}
}
