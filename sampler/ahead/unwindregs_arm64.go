package ahead

import (
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// unwindRegs puts the machine's registers in the order of DWARF.
func unwindRegs(r *registers) (regs unwind.Regs, sp uint64) {
	regs.PC = r.PC
	copy(regs.R[:], r.X[:])
	regs.R[31] = r.SP
	return regs, r.SP
}
