// Needs: nothing.
package sampler

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/sampler/operand"
)

// program serves instruction words from address 0x10000 on.
func program(words ...uint32) func(pc uint64) ([]byte, error) {
	return func(pc uint64) ([]byte, error) {
		i := int(pc-0x10000) / 4
		if pc < 0x10000 || i >= len(words) {
			return nil, errors.New("no code there")
		}
		return binary.LittleEndian.AppendUint32(nil, words[i]), nil
	}
}

func first(int) int { return 0 }

// Words as GNU as writes them.
func TestA64Follow(t *testing.T) {
	for _, tc := range []struct {
		name  string
		words []uint32
		addr  uint64
		pc    uint64 // offset of the access
		why   string
	}{
		{"at the access", []uint32{0xf9400020}, 0x2000, 0, ""}, // ldr x0, [x1]
		// add x1, x1, #8; ldr x0, [x1]
		{"add immediate", []uint32{0x91002021, 0xf9400020}, 0x2008, 4, ""},
		// The end of a counted loop: add x2, x2, #1; cmp x1, x2; b.gt .-8; with
		// ldr x4, [x0, x2, lsl #3] at the branch's target.
		{"loop", []uint32{0x14000002, 0xf8627804, 0x91000442, 0xeb02003f, 0x54ffffac}, 0x1000 + 3*8, 4, ""},
		// cmp x1, x2 with x2 reaching x1: the branch is not taken; ldr x0, [x1]
		{"loop ends", []uint32{0xeb01003f, 0x540000ac, 0xf9400020}, 0x2000, 8, ""},
		// mul x1, x1, x2; ldr x0, [x1]
		{"address unknown", []uint32{0x9b027c21, 0xf9400020}, 0, 0, "address not known"},
		// mul x5, x1, x2; cbz x5, .+8
		{"branch unknown", []uint32{0x9b027c25, 0xb4000045}, 0, 0, "branch not known"},
		// mul x1, x1, x2; mov x1, #0x3000; ldr x0, [x1]
		{"known again", []uint32{0x9b027c21, 0xd2860001, 0xf9400020}, 0x3000, 8, ""},
		// bl .+8; udf; stp x29, x30, [sp, #-16]!
		{"call", []uint32{0x94000002, 0, 0xa9bf7bfd}, 0x8000 - 16, 8, ""},
		{"syscall", []uint32{0xd4000001}, 0, 0, "syscall"},
		{"return", []uint32{0xd65f03c0}, 0, 0, "return"},
		{"end of code", []uint32{0xd503201f}, 0, 0, "code not readable"},      // nop
		{"endless", []uint32{0x14000000}, 0, 0, "end of look-ahead"},          // b .
		{"sve", []uint32{0x04e0e3e0}, 0, 0, "instruction not supported: "},    // cntd
		{"tagged pointer", []uint32{0xf9400060}, 0x0000_1234_5678, 0, ""},     // ldr x0, [x3]
		{"stack", []uint32{0xd10083ff, 0xf90003e0}, 0x8000 - 0x20, 4, ""},     // sub sp, sp, #32; str x0, [sp]
		{"adrp", []uint32{0xb0000001, 0xf9400020}, 0x11000, 4, ""},            // adrp x1, .+1 page
		{"and mask", []uint32{0x92402021, 0xf9400020}, 0x2000 & 0x1ff, 4, ""}, // and x1, x1, #0x1ff
		{"lsl", []uint32{0xd37df041, 0xf9400020}, 2 << 3, 4, ""},              // lsl x1, x2, #3
		{"sxtw", []uint32{0x93407c81, 0xf9400020}, ^uint64(0), 4, ""},         // sxtw x1, w4
	} {
		t.Run(tc.name, func(t *testing.T) {
			var f a64Follower
			f.ARM64Regs = operand.ARM64Regs{PC: 0x10000, SP: 0x8000}
			f.X[0], f.X[1], f.X[2], f.X[3], f.X[4] = 0x1000, 0x2000, 2, 0xab00_0000_1234_5678, 0xffff_ffff
			if tc.name == "loop" {
				f.X[1], f.X[2] = 100, 2
				f.PC = 0x10008 // behind the load, at the add
			}
			got, err := f.follow(program(tc.words...), first)
			if tc.why != "" {
				if err == nil || !strings.Contains(err.Error(), tc.why) {
					t.Errorf("%+v, %v, want %q", got, err, tc.why)
				}
				return
			}
			if err != nil || got.Addr != tc.addr || got.PC != 0x10000+tc.pc || got.Next != got.PC {
				t.Errorf("%+v, %v, want address %#x at +%d", got, err, tc.addr, tc.pc)
			}
		})
	}
}

// Flags against their definition, for random operands.
func TestA64Flags(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 10_000 {
		a, b := r.Uint64()>>r.IntN(64), r.Uint64()>>r.IntN(64)
		if r.IntN(8) == 0 {
			b = a
		}
		var f a64Follower
		f.X[1], f.X[2] = a, b
		in := operand.ARM64Inst{}
		f.execute(&in, 0xeb02003f) // cmp x1, x2
		n, z, c, v := f.NZCV>>31&1 == 1, f.NZCV>>30&1 == 1, f.NZCV>>29&1 == 1, f.NZCV>>28&1 == 1
		if z != (a == b) || c != (a >= b) || (n != v) != (int64(a) < int64(b)) {
			t.Fatalf("cmp %#x, %#x: n %v z %v c %v v %v", a, b, n, z, c, v)
		}
		f.execute(&in, 0x6b02003f) // cmp w1, w2
		n, z, c, v = f.NZCV>>31&1 == 1, f.NZCV>>30&1 == 1, f.NZCV>>29&1 == 1, f.NZCV>>28&1 == 1
		if z != (uint32(a) == uint32(b)) || c != (uint32(a) >= uint32(b)) || (n != v) != (int32(a) < int32(b)) {
			t.Fatalf("cmp w %#x, %#x: n %v z %v c %v v %v", a, b, n, z, c, v)
		}
	}
}

// Immediates of and, orr, eor, as the manual lists them.
func TestA64Bitmask(t *testing.T) {
	for _, tc := range []struct {
		n, immr, imms uint32
		want          uint64
	}{
		{1, 0, 8, 0x1ff},
		{1, 0, 62, 0x7fffffffffffffff},
		{1, 1, 0, 0x8000000000000000},
		{0, 0, 0b111100, 0x5555555555555555},
		{0, 1, 0b111100, 0xaaaaaaaaaaaaaaaa},
		{0, 0, 0b110000, 0x0101010101010101},
		{0, 0, 0b000111, 0x000000ff000000ff},
		{0, 4, 0b100111, 0xf00ff00ff00ff00f},
	} {
		if got := a64Bitmask(tc.n, tc.immr, tc.imms); got != tc.want {
			t.Errorf("%d %d %#b = %#x, want %#x", tc.n, tc.immr, tc.imms, got, tc.want)
		}
	}
}

func FuzzA64Follow(f *testing.F) {
	f.Add(uint32(0x91002021), uint32(0xf9400020), uint64(1))
	f.Fuzz(func(t *testing.T, a, b uint32, reg uint64) {
		var fo a64Follower
		fo.PC = 0x10000
		for i := range fo.X {
			fo.X[i] = reg * uint64(i)
		}
		got, err := fo.follow(program(a, b, 0xf9400020), first)
		if err == nil && got.Size == 0 {
			t.Errorf("an access of no bytes: %+v", got)
		}
	})
}
