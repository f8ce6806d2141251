package interp

import (
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// nameAt names the instruction at rip for the count of what is not supported:
// its mnemonic, or its first bytes if that is not known.
func (m *Machine) nameAt(rip uint64) string {
	b := m.window[:0]
	for i := uint64(0); i < 15; i++ {
		if i > 0 && (rip+i)%pageSize == 0 && m.pages[(rip+i)/pageSize] == nil {
			break
		}
		b = append(b, m.at(rip + i).data[(rip+i)%pageSize])
	}
	return mnemonic(b)
}

func mnemonic(b []byte) string {
	in, err := x86asm.Decode(b, 64)
	if err != nil || in.Op == 0 {
		return fmt.Sprintf("% x", b[:min(len(b), 6)])
	}
	return strings.ToLower(in.Op.String())
}
