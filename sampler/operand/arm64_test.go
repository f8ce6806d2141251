package operand

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

func TestARM64ByHand(t *testing.T) {
	one := func(a uint64, n int) Access { return Access{Addr: a, Size: n, Elements: 1} }
	st := func(a Access) Access { a.Store = true; return a }
	regs := &ARM64Regs{SP: 0x8000, PC: 0x400000, ZVABlock: 64}
	for i := range regs.X {
		regs.X[i] = uint64(i) << 16
	}
	regs.X[2] = 0xffff_fffe           // -2 as a word
	regs.X[9] = 0x002b_0000_0009_0000 // a signature in bits 54:48
	tests := []struct {
		name string
		word uint32
		want []Access
	}{
		{"ldr x0,[x1,#8]", 0xf9400420, []Access{one(0x10008, 8)}},
		{"ldr x0,[x1],#8", 0xf8408420, []Access{one(0x10000, 8)}},
		{"ldr x0,[x1,#8]!", 0xf8408c20, []Access{one(0x10008, 8)}},
		{"ldr x0,[x1,w2,sxtw #3]", 0xf862d820, []Access{one(0x10000-16, 8)}},
		{"stp x29,x30,[sp,#-16]!", 0xa9bf7bfd, []Access{st(one(0x7ff0, 16))}},
		{"ldr x0,0x400010", 0x58000080, []Access{one(0x400010, 8)}},
		{"prfm pldl1keep,[x1]", 0xf9800020, nil},
		{"ldaddal x0,x0,[x1]", 0xf8e00020, []Access{one(0x10000, 8), st(one(0x10000, 8))}},
		{"ldapr x0,[x1]", 0xf8bfc020, []Access{one(0x10000, 8)}},
		{"stlr x0,[x1]", 0xc89ffc20, []Access{st(one(0x10000, 8))}},
		{"ld4 {v0.16b-v3.16b},[x1]", 0x4c400020, []Access{one(0x10000, 64)}},
		{"ld1r {v0.4s},[x1]", 0x4d40c820, []Access{one(0x10000, 4)}},
		{"dc zva,x3", 0xd50b7423, []Access{st(one(0x30000, 64))}},
		{"ldraa x0,[x9,#8]", 0xf8201520, []Access{one(0x90008, 8)}},
	}
	for _, tt := range tests {
		in, err := DecodeARM64(binary.LittleEndian.AppendUint32(nil, tt.word))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got, err := in.Accesses(regs, nil); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %+v, error %v, want %+v", tt.name, got, err, tt.want)
		}
	}
	zva, err := DecodeARM64([]byte{0x23, 0x74, 0x0b, 0xd5})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := zva.Accesses(&ARM64Regs{}, nil); !errors.Is(err, ErrNeedZVABlock) {
		t.Errorf("dc zva without its block size: %+v, error %v", got, err)
	}
	if _, err := DecodeARM64([]byte{1, 2, 3}); !errors.Is(err, ErrTruncated) {
		t.Errorf("three bytes: %v", err)
	}
}

func TestARM64Declines(t *testing.T) {
	for word, why := range map[uint32]string{
		0xa5e0a000:  "sve ld1d",
		0x68c9b181:  "ldpsw with write-back into a loaded register",
		0x08cac4d5:  "ldarb with a register field that must be ones",
		0xd920_0800: "stg",
		0xf83f9000:  "st64b",
		0x19000400:  "memory copy",
	} {
		if in, err := DecodeARM64(binary.LittleEndian.AppendUint32(nil, word)); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%08x (%s): %+v, error %v", word, why, in, err)
		}
	}
}

func TestARM64Branches(t *testing.T) {
	const pc = 0x400000
	tests := []struct {
		name   string
		word   uint32
		nzcv   uint64
		x0     uint64
		branch Branch
		target uint64
		taken  bool
	}{
		{"b.eq", 0x54000040, 1 << 30, 0, BranchCond, pc + 8, true},
		{"b.eq", 0x54000040, 0, 0, BranchCond, pc + 8, false},
		{"b.hi", 0x54000048, 1 << 29, 0, BranchCond, pc + 8, true},
		{"b.le", 0x5400004d, 1 << 31, 0, BranchCond, pc + 8, true},
		{"cbz w0", 0x34000040, 0, 1 << 32, BranchCond, pc + 8, true},
		{"cbz x0", 0xb4000040, 0, 1 << 32, BranchCond, pc + 8, false},
		{"tbnz x0,#32", 0xb7000040, 0, 1 << 32, BranchCond, pc + 8, true},
		{"bl", 0x97ffffff, 0, 0, BranchCall, pc - 4, false},
		{"ret", 0xd65f03c0, 0, 0, BranchReturn, 0, false},
		{"blr x0", 0xd63f0000, 0, 0, BranchCallInd, 0, false},
		{"svc #0", 0xd4000001, 0, 0, BranchSyscall, 0, false},
		{"brk #0", 0xd4200000, 0, 0, BranchTrap, 0, false},
	}
	for _, tt := range tests {
		in, err := DecodeARM64(binary.LittleEndian.AppendUint32(nil, tt.word))
		if err != nil || in.Branch != tt.branch {
			t.Errorf("%s: branch %v, error %v", tt.name, in.Branch, err)
			continue
		}
		regs := &ARM64Regs{NZCV: tt.nzcv}
		regs.X[0] = tt.x0
		if tt.target != 0 && in.Target(pc) != tt.target {
			t.Errorf("%s: target %x, want %x", tt.name, in.Target(pc), tt.target)
		}
		if tt.branch == BranchCond && in.Taken(regs) != tt.taken {
			t.Errorf("%s: taken %v", tt.name, !tt.taken)
		}
	}
}
