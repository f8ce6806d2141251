// Needs: qemu-user.
package a64

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/sampler/interp"
)

const (
	formBase = 0x400000 // of one segment that can be read, written and run
	formCode = formBase + 0x1000
	formData = formBase + 0x10000
	formSize = 0x20000
)

// formProgram writes an arm64 program that does nothing but have memory.
func formProgram(t testing.TB) string {
	t.Helper()
	le := binary.LittleEndian
	b := []byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	b = le.AppendUint16(b, 2)   // ET_EXEC
	b = le.AppendUint16(b, 183) // EM_AARCH64
	b = le.AppendUint32(b, 1)
	for _, v := range []uint64{formBase + 0x100, 64, 0} { // entry, program headers, sections
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{64, 56, 1, 64, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, 1) // PT_LOAD
	b = le.AppendUint32(b, 7)
	for _, v := range []uint64{0, formBase, formBase, formSize, formSize, 4096} {
		b = le.AppendUint64(b, v)
	}
	b = append(b, make([]byte, formSize-len(b))...)
	le.PutUint32(b[0x100:], 0x14000000) // b .
	name := filepath.Join(t.TempDir(), "forms")
	if err := os.WriteFile(name, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// interesting are operands at the edges.
func interesting(rnd *rand.Rand) uint64 {
	switch rnd.IntN(8) {
	case 0:
		return uint64(rnd.IntN(3)) - 1
	case 1:
		return 1<<63 - uint64(rnd.IntN(2))
	case 2:
		return 1<<31 - uint64(rnd.IntN(2))
	case 3:
		return uint64(rnd.IntN(256)) - 128
	case 4:
		return rnd.Uint64() >> rnd.IntN(64)
	}
	return rnd.Uint64()
}

var floats64 = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 1.5, 2.5, -2.5, math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64,
	0x1p-1022, 0x1p31, -0x1p31, 0x1p32, 0x1p63, -0x1p63, 0x1p64, 0x1p-149, 0x1p-126, 0x1p128, math.MaxFloat32, 1e-300, 1e300, 3.7, 12345678.9}

// interestingVec has lanes at the edges, of integers or of floating point.
func interestingVec(rnd *rand.Rand) (v Vec) {
	kind := rnd.IntN(7)
	for i := range v {
		half := func(f func() uint64) uint64 { return f()&(1<<32-1) | f()<<32 }
		switch kind {
		case 0:
			v[i] = math.Float64bits(floats64[rnd.IntN(len(floats64))])
		case 1:
			v[i] = half(func() uint64 { return uint64(math.Float32bits(float32(floats64[rnd.IntN(len(floats64))]))) })
		case 2: // NaNs among numbers, signalling ones and with signs
			v[i] = []uint64{0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001, 0xfff4000000000000, 0x3ff0000000000000, rnd.Uint64()}[rnd.IntN(6)]
		case 3:
			v[i] = half(func() uint64 {
				return []uint64{0x7fc00000, 0xffc00001, 0x7f800001, 0xffa00000, 0x3f800000, uint64(rnd.Uint32())}[rnd.IntN(6)]
			})
		case 4: // of like size
			v[i] = math.Float64bits(rnd.NormFloat64() * 1000)
		case 5:
			v[i] = half(func() uint64 { return uint64(math.Float32bits(float32(rnd.NormFloat64()))) })
		default:
			for at := 0; at < 64; at += 8 {
				v[i] |= uint64([]uint8{0, 0xff, 0x80, 0x7f, 1, uint8(rnd.Uint32())}[rnd.IntN(6)]) << at
			}
		}
	}
	return v
}

// signs says whether a word makes or checks a signature, of which only the strip
// is known.
func signs(w word32) bool {
	return w.bits(30, 21) == 0b1011010110 && w.rm() == 1 && w.bits(15, 10) < 16
}

// form is a class of encodings: random bits under fixed ones.
type form struct {
	name         string
	mask, value  uint32
	memory, only bool // only: one instruction at a time
}

var forms = []form{
	{name: "immediate", mask: 0x1c000000, value: 0x10000000},
	{name: "register", mask: 0x0e000000, value: 0x0a000000},
	{name: "register mixed", mask: 0x1f200000, value: 0x1a000000},
	{name: "two sources", mask: 0x7fe0c000, value: 0x1ac00000},
	{name: "one source", mask: 0x7fff8000, value: 0x5ac00000},
	{name: "strip", mask: 0xfffff800, value: 0xdac14000},
	{name: "multiply", mask: 0x7f000000, value: 0x1b000000},
	{name: "flags", mask: 0xffffc000, value: 0x3a000000},
	{name: "rotate flags", mask: 0xffe07c10, value: 0xba000400},
	{name: "convert flags", mask: 0xffffff1f, value: 0xd500401f},
	{name: "system register", mask: 0xfffffc00, value: 0xd51b4000},
	{name: "scalar float", mask: 0x7f200000, value: 0x1e200000},
	{name: "scalar float of integers", mask: 0x7f20fc00, value: 0x1e200000},
	{name: "scalar float fixed", mask: 0x7f200000, value: 0x1e000000},
	{name: "multiply and add", mask: 0xff000000, value: 0x1f000000},
	{name: "vector", mask: 0x9f200400, value: 0x0e200400},
	{name: "vector different", mask: 0x9f200c00, value: 0x0e200000},
	{name: "vector one", mask: 0x9f3e0c00, value: 0x0e200800},
	{name: "vector across", mask: 0x9f3e0c00, value: 0x0e300800},
	{name: "vector copy", mask: 0x9fe08400, value: 0x0e000400},
	{name: "vector permute", mask: 0xbf208c00, value: 0x0e000800},
	{name: "vector extract", mask: 0xbfe08400, value: 0x2e000000},
	{name: "vector table", mask: 0xbfe08c00, value: 0x0e000000},
	{name: "vector immediate", mask: 0x9ff80400, value: 0x0f000400},
	{name: "vector shift", mask: 0x9f800400, value: 0x0f000400},
	{name: "vector by lane", mask: 0x9f000400, value: 0x0f000000},
	{name: "vector dot", mask: 0x9fe0fc00, value: 0x0e809400},
	{name: "scalar vector", mask: 0xdf200400, value: 0x5e200400},
	{name: "scalar vector different", mask: 0xdf200c00, value: 0x5e200000},
	{name: "scalar vector one", mask: 0xdf3e0c00, value: 0x5e200800},
	{name: "scalar vector pair", mask: 0xdf3e0c00, value: 0x5e300800},
	{name: "scalar vector shift", mask: 0xdf800400, value: 0x5f000400},
	{name: "scalar vector by lane", mask: 0xdf000400, value: 0x5f000000},
	{name: "scalar vector copy", mask: 0xffe0fc00, value: 0x5e000400},
	{name: "AES", mask: 0xffff0c00, value: 0x4e280800},
	{name: "hash of three", mask: 0xffe08c00, value: 0x5e000000},
	{name: "hash of two", mask: 0xffff0c00, value: 0x5e280800},
	{name: "SHA-3", mask: 0xff000000, value: 0xce000000},
	{name: "branch if", mask: 0xffffffd0, value: 0x54000040, only: true},
	{name: "compare and branch", mask: 0x7effffc0, value: 0x34000040, only: true},
	{name: "test and branch", mask: 0x7e07ffc0, value: 0x36000040, only: true},
	{name: "load", mask: 0x3b000000, value: 0x39000000, memory: true},
	{name: "load unscaled", mask: 0x3b200000, value: 0x38000000, memory: true},
	{name: "load by register", mask: 0x3b200c00, value: 0x38200800, memory: true},
	{name: "load pair", mask: 0x3a000000, value: 0x28000000, memory: true},
	{name: "load literal", mask: 0x3b0fffc0, value: 0x18000000, memory: true},
	{name: "atomic", mask: 0x3f200c00, value: 0x38200000, memory: true},
	{name: "ordered", mask: 0x3f000000, value: 0x08000000, memory: true},
	{name: "ordered unscaled", mask: 0x3f200c00, value: 0x19000000, memory: true},
	{name: "structures", mask: 0xbf200000, value: 0x0c000000, memory: true},
	{name: "structure", mask: 0xbf000000, value: 0x0d000000, memory: true},
	{name: "zero", mask: 0xffffffe0, value: 0xd50b7420, memory: true},
}

// supported says whether the interpreter runs w.
func supported(pc uint64, w word32) bool {
	var in inst
	decode(&in, pc, w)
	fn := reflect.ValueOf(in.fn).Pointer()
	return fn != reflect.ValueOf(unsupported).Pointer() && fn != reflect.ValueOf(fault).Pointer()
}

// TestForms runs random instructions of each class on random registers. What the
// interpreter runs must be what QEMU runs, too: an encoding that is not an
// instruction is a disagreement.
func TestForms(t *testing.T) {
	rnd := seeded(t)
	each := 150 * time.Millisecond
	if long() {
		each = 3 * time.Second
	}
	program := formProgram(t)
	w := &walk{stub: startStub(t, "max,sve=off", "/", program), t: t, m: New(), unsupported: map[string]int{}}
	w.openMemory(program, formBase)
	for _, f := range forms {
		w.disagreed = 0
		compared := w.compared
		seen := map[string]int{}
		tried, known := 0, 0
		// Some are compared however little of the time the machine has to spare.
		for deadline, runs := time.Now().Add(each), 0; (time.Now().Before(deadline) || w.compared == compared && runs < 1000) && w.disagreed < 3; runs++ {
			length := 16
			if f.memory || f.only {
				length = 1
			}
			var words []word32
			for n := 0; len(words) < length; n++ {
				if n == 1<<20 {
					t.Fatalf("%s: the interpreter knows none of %d encodings", f.name, n)
				}
				word := word32(rnd.Uint32()&^f.mask | f.value)
				tried++
				if signs(word) || !supported(formCode, word) {
					continue
				}
				known++
				words = append(words, word)
			}
			w.form(rnd, &f, words, seen)
			if w.dead {
				t.Fatalf("%s: QEMU has ended", f.name)
			}
		}
		names := slices.Sorted(maps.Keys(seen))
		t.Logf("%-26s %5d compared, %3.0f %% of the encodings: %s", f.name, w.compared-compared, 100*float64(known)/float64(max(tried, 1)), strings.Join(names, " "))
		if w.compared == compared {
			t.Errorf("%s: nothing was compared", f.name)
		}
	}
}

// form compares a run of instructions on random registers and memory.
func (w *walk) form(rnd *rand.Rand, f *form, words []word32, seen map[string]int) {
	code := make([]byte, 0, 4*len(words)+8)
	for _, word := range words {
		code = binary.LittleEndian.AppendUint32(code, uint32(word))
	}
	code = append(code, 0x1f, 0x20, 0x03, 0xd5, 0x1f, 0x20, 0x03, 0xd5) // nop
	w.write(formCode, code)
	var r Regs
	for i := range r.X {
		r.X[i] = interesting(rnd)
	}
	for i := range r.Vector.V {
		r.Vector.V[i] = interestingVec(rnd)
	}
	r.PC, r.SP, r.NZCV = formCode, formData+0x4000, uint64(rnd.IntN(16))<<flagShift
	if f.memory {
		word := words[0]
		if m := word.rm(); m < 31 {
			r.X[m] = uint64(rnd.IntN(256)) - 128
		}
		at := formData + 0x6000 + uint64(rnd.IntN(512))*16
		if rnd.IntN(2) == 0 && !inLine(word) {
			at += uint64(rnd.IntN(16))
		}
		at |= uint64(rnd.IntN(256)) << 56 // the program's own
		if n := word.rn(); n < 31 {
			r.X[n] = at
		} else {
			r.SP = at &^ 15
		}
		if f.name == "zero" && word.rd() < 31 {
			r.X[word.rd()] = at
		}
		b := make([]byte, 512)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		w.write(canonical(at)&^15-256, b)
	}
	w.setAll(&r)
	if !w.all(&w.native) {
		w.t.Fatal("QEMU has ended")
	}
	start := w.native
	start.DCZID = 4
	w.m.Start(&start, w.stub)
	steps, end, _ := w.interpret(len(words))
	for i := range steps {
		seen[mnemonic(steps[i].word)]++
	}
	if len(steps) < len(words) && !f.memory && end.Cause != interp.Unsupported {
		w.t.Errorf("%s %08x: %v %v", f.name, uint32(words[len(steps)]), end, fmt.Sprint(end.Err))
	}
	w.compare(steps)
}

// inLine says whether an access must be aligned.
func inLine(w word32) bool {
	return w.bits(29, 24) == 0b001000 || w.bits(29, 24) == 0b111000 && w.is(21)
}
