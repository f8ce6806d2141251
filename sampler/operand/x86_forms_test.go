// Needs: objdump, llvm-config with g++.

package operand

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// x86Forms yields one encoding of each combination of prefix, map, opcode, W,
// length, broadcast, mask and a choice of ModRM: everything the tables hold and
// everything they should not.
func x86Forms(yield func(code []byte)) {
	tails := [][]byte{
		{0x43, 0x22, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97},             // [rbx+0x22]
		{0x84, 0x8b, 0x78, 0x56, 0x34, 0x12, 0x93, 0x94, 0x95, 0x96, 0x97}, // [rbx+rcx*4+0x12345678]
		{0x05, 0x78, 0x56, 0x34, 0x12, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96}, // [rip+0x12345678]
		{0xc3, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98},             // register
	}
	emit := func(head []byte, tail []byte, reg int) {
		code := append(append([]byte{}, head...), tail...)
		code[len(head)] |= byte(reg << 3)
		yield(code)
	}
	each := func(head []byte, tails [][]byte) {
		for _, tail := range tails {
			for reg := range 8 {
				emit(head, tail, reg)
			}
		}
	}
	// Under 67 (address size), LOCK and REX.B no new opcodes appear: ordinary code has them.
	for _, prefix := range [][]byte{{}, {0x66}, {0xf3}, {0xf2}, {0x48}, {0x66, 0x48}, {0xf3, 0x48}, {0xf2, 0x48}, {0x66, 0xf2}, {0x67}, {0xf0}, {0x64}, {0x41}} {
		for _, esc := range [][]byte{{}, {0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}} {
			for op := range 256 {
				if len(esc) == 0 && (op == 0x0f || op == 0x62 || op == 0xc4 || op == 0xc5 || isX86Prefix(byte(op))) || len(esc) == 1 && (op == 0x38 || op == 0x3a) {
					continue
				}
				each(append(append(append([]byte{}, prefix...), esc...), byte(op)), tails)
			}
		}
	}
	for op := range 256 {
		for pp := range 4 {
			for m := 1; m <= 3; m++ {
				for wl := range 8 { // W, L, and vvvv used or not
					each([]byte{0xc4, byte(0xe0 | m), byte(wl>>1&1<<7 | 0x38 | wl>>2<<6 | wl&1<<2 | pp), byte(op)}, tails)
				}
			}
			for _, m := range []int{1, 2, 3, 5, 6} {
				for w := range 4 { // W, and vvvv used or not
					for p2 := range 16 { // L'L, b, mask k1 or none
						head := []byte{0x62, byte(0xf0 | m), byte(w&1<<7 | w>>1<<6 | 0x38 | 4 | pp), byte(p2>>2<<5 | p2>>1&1<<4 | 8 | p2&1), byte(op)}
						for _, tail := range tails {
							emit(head, tail, 1)
							emit(head, tail, 4)
						}
					}
				}
			}
		}
	}
}

func isX86Prefix(c byte) bool {
	return c&0xf0 == 0x40 || bytes.IndexByte([]byte{0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65}, c) >= 0
}

// slot is the distance of two forms in the file given to objdump; between them
// stand a run of prefixes and a nop, on which a disassembler that went astray
// comes back into step.
const slot = 32

func TestX86GeneratedForms(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	exe := buildLLVMOracle(t)
	var image bytes.Buffer
	var claimed, declined [][]byte
	n := 0
	x86Forms(func(code []byte) {
		n++
		if os.Getenv("RDX_LONG") == "" && n%7 != 0 { // coprime to the loops' lengths
			return
		}
		in, err := DecodeX86(code)
		switch {
		case errors.Is(err, ErrUnsupported):
			// LLVM takes the reserved vector length 3 for 2, and 0f 01 and others behind any prefix.
			if !(code[0] == 0x62 && code[3]&0x60 == 0x60 && code[5] < 0xc0) && code[0] != 0xf0 {
				declined = append(declined, code)
			}
			return
		case err != nil:
			t.Errorf("%x: %v", code, err)
			return
		}
		code = code[:in.Len]
		if code[len(code)-1] == 0x9b { // objdump joins fwait with what follows
			return
		}
		claimed = append(claimed, code)
		image.Write(code)
		for range slot - 1 - len(code) {
			image.WriteByte(0x2e)
		}
		image.WriteByte(0x90)
	})
	path := filepath.Join(t.TempDir(), "forms.bin")
	if err := os.WriteFile(path, image.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	diff := newX86Diff(seed)
	unknown := map[string]bool{}
	objdump(t, func(l disasmLine) {
		if l.addr%slot != 0 {
			return
		}
		code := claimed[l.addr/slot]
		if strings.Contains(l.text, "(bad)") {
			unknown[string(code)] = true
		} else if !bytes.Equal(l.code, code) {
			diff.bad.add("length: "+mnemonic(l.text), "%x: length %d, objdump %x %s", code, len(code), l.code, l.text)
		} else {
			diff.line(l)
		}
	}, "objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-w", "-M", "intel", "--insn-width=15", path)
	diff.directions(t, exe)

	// Claimed by us alone: LLVM must know what objdump does not.
	var alone [][]byte
	for c := range unknown {
		alone = append(alone, []byte(c))
	}
	// An unused vvvv field must be 1111; the tables do not say where it is unused, since the
	// CPU faults on such an encoding before it accesses anything. Everything else counts.
	both, unusedV := tally{}, 0
	for i, info := range askLLVM(t, exe, "x86_64", x86LLVMFeatures, alone) {
		if info.len != len(alone[i]) {
			c := alone[i]
			if c[0] == 0x62 && c[2]&0x78 != 0x78 || c[0] == 0xc4 && c[2]&0x78 != 0x78 {
				unusedV++
				continue
			}
			both[formName(c)]++
		}
	}
	// Declined by us, known to LLVM: what is missing, by name.
	missing := tally{}
	for _, info := range askLLVM(t, exe, "x86_64", x86LLVMFeatures, declined) {
		if info.len > 0 {
			missing[info.name]++
		}
	}
	diff.finish(t)
	t.Logf("forms: %d claimed, %d declined; claimed and known to neither oracle: %d with vvvv where it may be unused, %d others:%v", len(claimed), len(declined), unusedV, both.total(), both)
	t.Logf("forms: declined but known to LLVM: %d:%v", missing.total(), missing)
}

// formName labels an encoding by its opcode bytes.
func formName(code []byte) string {
	d := x86Decoder{code: code}
	d.prefixes()
	d.modrm = d.byte()
	return d.unsupported("").(*UnsupportedError).Name
}
