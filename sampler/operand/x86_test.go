package operand

import (
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// testRegs gives every register another value, so that a mixed-up register shows.
func testRegs() *X86Regs {
	r := &X86Regs{RIP: 0x400000, FSBase: 0x7f0000000000, GSBase: 0x6f0000000000}
	for i := range r.GPR {
		r.GPR[i] = uint64(i+1) << 20
	}
	return r
}

func TestX86ByHand(t *testing.T) {
	const k = 1 << 20
	one := func(a uint64, n int) Access { return Access{Addr: a, Size: n, Elements: 1} }
	st := func(a Access) Access { a.Store = true; return a }
	tests := []struct {
		name, code string
		want       []Access
	}{
		{"mov rax,[rdi+8]", "48 8b 47 08", []Access{one(8*k+8, 8)}},
		{"mov [rsp-8],al", "88 44 24 f8", []Access{st(one(5*k-8, 1))}},
		{"lea", "48 8d 47 08", nil},
		{"endbr64", "f3 0f 1e fa", nil},
		{"nop [rax+rax]", "66 0f 1f 44 00 00", nil},
		{"prefetcht0", "0f 18 08", nil},
		{"push rbx", "53", []Access{st(one(5*k-8, 8))}},
		{"push [rsp+8]", "ff 74 24 08", []Access{one(5*k+8, 8), st(one(5*k-8, 8))}},
		{"pop [rsp+8]", "8f 44 24 08", []Access{one(5*k, 8), st(one(5*k+16, 8))}},
		{"call [rip+0x10]", "ff 15 10 00 00 00", []Access{one(0x400016, 8), st(one(5*k-8, 8))}},
		{"call rax", "ff d0", []Access{st(one(5*k-8, 8))}},
		{"ret", "c3", []Access{one(5*k, 8)}},
		{"leave", "c9", []Access{one(6*k, 8)}},
		{"enter 16,0", "c8 10 00 00", []Access{st(one(5*k-8, 8))}},
		{"lock xadd [rdi],eax", "f0 0f c1 07", []Access{one(8*k, 4), st(one(8*k, 4))}},
		{"fs:0x28", "64 48 8b 04 25 28 00 00 00", []Access{one(0x7f0000000028, 8)}},
		{"bt [rdi],rax", "48 0f a3 07", []Access{one(8*k+(k>>6)*8, 8)}},
		{"rep movsb", "f3 a4", []Access{{Addr: 7 * k, Size: 1, Elements: 2 * k}, {Addr: 8 * k, Size: 1, Elements: 2 * k, Store: true}}},
		{"vzeroupper", "c5 f8 77", nil},
		{"vaddps zmm,[rax+64]", "62 f1 74 48 58 50 01", []Access{one(k+64, 64)}},
		{"vaddps zmm,[rax+4]{1to16}", "62 f1 74 58 58 50 01", []Access{one(k+4, 4)}},
		{"movddup xmm,[rax]", "f2 0f 12 00", []Access{one(k, 8)}},
		{"vmovddup ymm,[rax]", "c5 ff 12 00", []Access{{Addr: k, Size: 32, Elements: 1, Approx: true}}},
		{"vmovddup ymm,[rax] by EVEX", "62 f1 ff 28 12 00", []Access{one(k, 32)}},
		{"movabs al,[...]", "a0 88 77 66 55 44 33 22 11", []Access{one(0x1122334455667788, 1)}},
		{"movabs32", "67 a0 88 77 66 f5", []Access{one(0xf5667788, 1)}},
		{"fstp tbyte [rdi]", "db 3f", []Access{st(one(8*k, 10))}},
	}
	for _, tt := range tests {
		code := unhex(t, tt.code)
		in, err := DecodeX86(code)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got, err := in.Accesses(testRegs(), nil)
		if err != nil || int(in.Len) != len(code) || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: length %d of %d, accesses %+v, want %+v, error %v", tt.name, in.Len, len(code), got, tt.want, err)
		}
		for n := range len(code) {
			if _, err := DecodeX86(code[:n]); !errors.Is(err, ErrTruncated) {
				t.Errorf("%s cut to %d bytes: error %v, want ErrTruncated", tt.name, n, err)
			}
		}
	}
}

// TestX86Declines holds encodings that must not decode, each with its reason.
func TestX86Declines(t *testing.T) {
	for code, why := range map[string]string{
		"66e9dd00":                         "jmp with 66: AMD takes a 16-bit target, Intel 32",
		"f248e15b":                         "loope with repne: Zen 4 tests the other condition",
		"670fb35322":                       "bit string with 32-bit addressing",
		"6648d97322":                       "fnstenv with 66 and REX.W",
		"62f1bc185d4b22":                   "vminps with EVEX.W1",
		"62f17c78584b22":                   "vector length 3 and a memory operand",
		"62f14d58104b22":                   "broadcast bit on a move",
		"62f27d48900c11":                   "gather without a mask",
		"0fae27":                           "xsave",
		"f0890f":                           "LOCK on a plain store",
		"f3c5f85807":                       "prefix before VEX",
		"8fe97881c0":                       "XOP",
		"d5004889":                         "REX2",
		"c8100001":                         "nested enter",
		"6e":                               "outs",
		"66666666666666666666666666666690": "sixteen bytes",
	} {
		if in, err := DecodeX86(unhex(t, code)); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s (%s): %+v, error %v", code, why, in, err)
		}
	}
}

// TestX86Masks checks the lanes that a mask leaves, and what is said without it.
func TestX86Masks(t *testing.T) {
	const rax = 1 << 20
	vec := &X86Vectors{}
	vec.K[1] = 0b0110
	vec.K[2] = 0
	vec.K[3] = 0b1001
	vec.K[4] = 0b0110_0011_0110_0101
	vec.K[5] = 0b0000_0100_0000_0010
	vec.Z[5][7] = 0x80  // second dword
	vec.Z[5][11] = 0x80 // third
	for i, index := range []byte{10, 20, 30, 40} {
		vec.Z[6][4*i] = index
	}
	tests := []struct {
		name, code string
		want, none Access // with the registers, and without; Size 0: no access, ErrNeedVectors
	}{
		{"vmovups xmm0{k1},[rax]", "62f17c091000", Access{Addr: rax + 4, Size: 8, Elements: 1, Approx: true}, Access{Addr: rax, Size: 16, Elements: 1, Approx: true}},
		{"vmovups [rax]{k1},xmm0", "62f17c091100", Access{Addr: rax + 4, Size: 8, Elements: 1, Approx: true, Store: true}, Access{Addr: rax, Size: 16, Elements: 1, Approx: true, Store: true}},
		{"vmovups xmm0{k2},[rax]", "62f17c0a1000", Access{}, Access{Addr: rax, Size: 16, Elements: 1, Approx: true}},
		{"vmovups xmm0{k3},[rax]", "62f17c0b1000", Access{Addr: rax, Size: 16, Elements: 1, Approx: true}, Access{Addr: rax, Size: 16, Elements: 1, Approx: true}},
		{"vaddps xmm0{k1},xmm0,[rax]{1to4}", "62f17c195800", Access{Addr: rax, Size: 4, Elements: 1}, Access{Addr: rax, Size: 4, Elements: 1, Approx: true}},
		{"vbroadcastf32x8 zmm0{k4},[rax]", "62f27d4c1b00", Access{Addr: rax, Size: 28, Elements: 1, Approx: true}, Access{Addr: rax, Size: 32, Elements: 1, Approx: true}},
		{"vbroadcastf32x8 zmm0{k5},[rax]", "62f27d4d1b00", Access{Addr: rax + 4, Size: 8, Elements: 1, Approx: true}, Access{Addr: rax, Size: 32, Elements: 1, Approx: true}},
		{"vbroadcasti32x2 ymm0{k4},[rax]", "62f27d2c5900", Access{Addr: rax, Size: 8, Elements: 1}, Access{Addr: rax, Size: 8, Elements: 1, Approx: true}},
		{"vpcompressd [rax]{k1},xmm0", "62f27d098b00", Access{Addr: rax, Size: 8, Elements: 1, Approx: true, Store: true}, Access{Addr: rax, Size: 16, Elements: 1, Approx: true, Store: true}},
		{"vpmaskmovd xmm0,xmm5,[rax]", "c4e2518c00", Access{Addr: rax + 4, Size: 8, Elements: 1, Approx: true}, Access{Addr: rax, Size: 16, Elements: 1, Approx: true}},
		{"vpgatherdd xmm0,[rax+xmm6*4],xmm5", "c4e251900 4b0", Access{Addr: rax + 80, Size: 4, Elements: 2}, Access{}},
		{"vpgatherdd xmm0{k3},[rax+xmm6*4]", "62f27d0b9004b0", Access{Addr: rax + 40, Size: 4, Elements: 2}, Access{}},
		{"vpscatterdd [rax+xmm6*4]{k1},xmm0", "62f27d09a004b0", Access{Addr: rax + 80, Size: 4, Elements: 2, Store: true}, Access{}},
	}
	for _, tt := range tests {
		in, err := DecodeX86(unhex(t, tt.code))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		regs := testRegs()
		for _, known := range []bool{true, false} {
			want, wantErr := tt.none, error(nil)
			if known {
				regs.Vec, want = vec, tt.want
			} else if regs.Vec = nil; want.Size == 0 {
				wantErr = ErrNeedVectors
			}
			got, err := in.Accesses(regs, nil)
			if err != wantErr || len(got) > 1 || len(got) == 1 && got[0] != want || len(got) == 0 && want.Size != 0 {
				t.Errorf("%s, registers known %v: %+v, error %v, want %+v, error %v", tt.name, known, got, err, want, wantErr)
			}
		}
	}
}

func TestX86WrittenRegisters(t *testing.T) {
	tests := []struct {
		name, code string
		want       RegSet
	}{
		{"nop", "90", 0},
		{"pause", "f390", 0},
		{"xchg r8,rax", "4990", 1<<8 | 1<<rax},
		{"mov ah,[rdi]", "8a27", 1 << rax},
		{"mov spl,[rdi]", "408a27", 1 << rsp},
		{"syscall", "0f05", 1<<rax | 1<<rcx | 1<<11},
		{"rep movsb", "f3a4", 1<<rcx | 1<<rsi | 1<<rdi},
		{"vpgatherdd xmm0,[rax+xmm6*4],xmm5", "c4e2519004b0", RegVector},
		{"vpcmpeqd k1,zmm0,[rax]", "62f17d487608", RegMask},
		{"wrfsbase rax", "f3480faed0", RegSegment},
		{"lsl eax,ecx", "0f03c1", 1<<rax | RegFlags},
	}
	for _, tt := range tests {
		in, err := DecodeX86(unhex(t, tt.code))
		if err != nil || in.Writes != tt.want {
			t.Errorf("%s: writes %#x, want %#x, error %v", tt.name, in.Writes, tt.want, err)
		}
	}
}

func TestX86Branches(t *testing.T) {
	tests := []struct {
		code   string
		flags  uint64
		rcx    uint64
		branch Branch
		target uint64
		taken  bool
	}{
		{"7402", flagZF, 0, BranchCond, 0x400004, true},
		{"7402", 0, 0, BranchCond, 0x400004, false},
		{"7f02", flagSF, 0, BranchCond, 0x400004, false},
		{"7f02", flagSF | flagOF, 0, BranchCond, 0x400004, true},
		{"0f8600010000", flagCF, 0, BranchCond, 0x400106, true},
		{"e2fe", 0, 1, BranchCond, 0x400000, false},
		{"e2fe", 0, 0, BranchCond, 0x400000, true},
		{"67e2fe", 0, 1 << 32, BranchCond, 0x400001, true},
		{"e302", 0, 0, BranchCond, 0x400004, true},
		{"ebfe", 0, 0, BranchJump, 0x400000, false},
		{"e8fbffffff", 0, 0, BranchCall, 0x400000, false},
		{"ffe0", 0, 0, BranchIndirect, 0, false},
		{"ff10", 0, 0, BranchCallInd, 0, false},
		{"c3", 0, 0, BranchReturn, 0, false},
		{"0f05", 0, 0, BranchSyscall, 0, false},
		{"cc", 0, 0, BranchTrap, 0, false},
	}
	for _, tt := range tests {
		in, err := DecodeX86(unhex(t, tt.code))
		if err != nil || in.Branch != tt.branch {
			t.Errorf("%s: branch %v, error %v", tt.code, in.Branch, err)
			continue
		}
		regs := testRegs()
		regs.RFLAGS, regs.GPR[rcx] = tt.flags, tt.rcx
		if tt.target != 0 && in.Target(regs.RIP) != tt.target {
			t.Errorf("%s: target %x, want %x", tt.code, in.Target(regs.RIP), tt.target)
		}
		if tt.branch == BranchCond && in.Taken(regs) != tt.taken {
			t.Errorf("%s with flags %x rcx %x: taken %v", tt.code, tt.flags, tt.rcx, !tt.taken)
		}
	}
}
