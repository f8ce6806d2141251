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
