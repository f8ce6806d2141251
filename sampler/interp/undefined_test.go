package interp

import (
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// undefined lists, by mnemonic, the flags that the manuals leave undefined and
// that are therefore not compared.
var undefinedByName = map[string]uint64{
	"AND": FlagAF, "OR": FlagAF, "XOR": FlagAF, "TEST": FlagAF, "ANDN": FlagAF | FlagPF,
	"MUL":  FlagSF | FlagZF | FlagAF | FlagPF,
	"IMUL": FlagSF | FlagZF | FlagAF | FlagPF,
	"DIV":  arithFlags, "IDIV": arithFlags,
	"BSF": arithFlags &^ FlagZF, "BSR": arithFlags &^ FlagZF,
	"BT": arithFlags &^ (FlagCF | FlagZF), "BTS": arithFlags &^ (FlagCF | FlagZF),
	"BTR": arithFlags &^ (FlagCF | FlagZF), "BTC": arithFlags &^ (FlagCF | FlagZF),
	"TZCNT": arithFlags &^ (FlagCF | FlagZF), "LZCNT": arithFlags &^ (FlagCF | FlagZF),
	"BZHI": FlagAF | FlagPF, "BEXTR": FlagAF | FlagSF | FlagPF,
	"BLSR": FlagAF | FlagPF, "BLSI": FlagAF | FlagPF, "BLSMSK": FlagAF | FlagPF,
}

// undefinedFlags is the set of flags not to compare after the instruction that
// code starts with, given cl before it.
func undefinedFlags(code []byte, cl uint64) uint64 {
	in, err := x86asm.Decode(code, 64)
	if err != nil || in.Op == 0 {
		// The undocumented sal, /6 of the shifts, is shl, /4.
		i := 0
		for i < 8 && (isPrefix(code[i]) || code[i]&0xf0 == 0x40) {
			i++
		}
		shift := code[i]&0xfe == 0xc0 || code[i]&0xfc == 0xd0
		if !shift || code[i+1]>>3&7 != 6 {
			return 0
		}
		c := append([]byte{}, code...)
		c[i+1] &^= 2 << 3
		return undefinedFlags(c, cl)
	}
	name := in.Op.String()
	u := undefinedByName[name]
	count := func(arg int) (n, size uint64) {
		size = uint64(in.DataSize)
		switch a := in.Args[0].(type) {
		case x86asm.Reg:
			switch {
			case a <= x86asm.R15B:
				size = 8
			case a <= x86asm.R15W:
				size = 16
			case a <= x86asm.R15L:
				size = 32
			default:
				size = 64
			}
		case x86asm.Mem:
			size = 8 * uint64(in.MemBytes)
		}
		n = cl
		if i, ok := in.Args[arg].(x86asm.Imm); ok {
			n = uint64(i)
		}
		if size == 64 {
			return n & 63, size
		}
		return n & 31, size
	}
	switch {
	case strings.HasPrefix(name, "RO") && len(name) == 3, strings.HasPrefix(name, "RC") && len(name) == 3:
		if n, _ := count(1); n > 1 {
			u |= FlagOF
		}
	case name == "SHL" || name == "SHR" || name == "SAR":
		n, size := count(1)
		if n > 0 {
			u |= FlagAF
		}
		if n > 1 {
			u |= FlagOF
		}
		if n >= size && name != "SAR" {
			u |= FlagCF
		}
	case name == "SHLD" || name == "SHRD":
		n, _ := count(2)
		if n > 0 {
			u |= FlagAF
		}
		if n > 1 {
			u |= FlagOF
		}
	}
	return u
}
