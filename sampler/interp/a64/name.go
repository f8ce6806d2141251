package a64

import (
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/arch/arm64/arm64asm"
)

// nameAt names the instruction at pc for the count of what is not supported: its
// mnemonic, or the class it is in and the bits 31 to 21, which pick the instruction
// in nearly every class.
func (m *Machine) nameAt(pc uint64) string {
	if !m.mem.Holds(pc) {
		return "unreadable"
	}
	return mnemonic(word32(m.mem.Peek(pc, 4)))
}

func mnemonic(w word32) string {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], uint32(w))
	if w.bits(28, 25) == 2 {
		return fmt.Sprintf("sve %03x", w.bits(31, 21))
	}
	in, err := arm64asm.Decode(b[:])
	if err != nil {
		return fmt.Sprintf("a64 %03x", w.bits(31, 21))
	}
	name := strings.ToLower(in.Op.String())
	if in.Op == arm64asm.MRS || in.Op == arm64asm.MSR {
		name = fmt.Sprintf("%s %#x", name, w.bits(19, 5)) // which register
	}
	return name
}
