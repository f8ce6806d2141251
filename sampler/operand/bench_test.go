package operand

import "testing"

var benchCodes = []string{"488b4708", "62f17458585001", "f00fc107", "c5fd6f4720", "e819000000", "4889e5", "660f6f442410"}

func BenchmarkX86Decode(b *testing.B) {
	var codes [][]byte
	for _, s := range benchCodes {
		codes = append(codes, unhex(b, s))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := DecodeX86(codes[i%len(codes)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkX86Accesses(b *testing.B) {
	var insts []X86Inst
	for _, s := range benchCodes {
		in, err := DecodeX86(unhex(b, s))
		if err != nil {
			b.Fatal(err)
		}
		insts = append(insts, in)
	}
	regs := testRegs()
	var buf [4]Access
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := insts[i%len(insts)].Accesses(regs, buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkARM64DecodeAndAccesses(b *testing.B) {
	code := []byte{0x20, 0x68, 0x62, 0xf8} // ldr x0, [x1, x2]
	regs := &ARM64Regs{}
	var buf [4]Access
	b.ReportAllocs()
	for b.Loop() {
		in, err := DecodeARM64(code)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := in.Accesses(regs, buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
