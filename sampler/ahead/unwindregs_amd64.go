package ahead

import (
	"github.com/rdx-profiler/rdx/sampler/interp"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// unwindRegs puts the machine's registers in the order of DWARF.
func unwindRegs(r *registers) (regs unwind.Regs, sp uint64) {
	g := &r.GPR
	regs.PC = r.RIP
	copy(regs.R[:], []uint64{g[interp.RAX], g[interp.RDX], g[interp.RCX], g[interp.RBX], g[interp.RSI], g[interp.RDI], g[interp.RBP], g[interp.RSP]})
	copy(regs.R[8:], g[8:])
	return regs, g[interp.RSP]
}
