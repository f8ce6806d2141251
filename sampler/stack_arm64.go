package sampler

import (
	"github.com/rdx-profiler/rdx/bpf"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// Arch is this machine's, for unwinding.
var Arch = unwind.ARM64

// stackRegs puts the registers in the order of DWARF.
func stackRegs(h *bpf.RDXStackHead) (regs unwind.Regs, sp uint64) {
	r := &h.Regs
	regs.PC = r.Pc
	copy(regs.R[:], r.Regs[:])
	regs.R[31] = r.Sp
	return regs, r.Sp
}

// unwindRegs puts the machine's registers in the order of DWARF.
func unwindRegs(r *registers) (regs unwind.Regs, sp uint64) {
	regs.PC = r.PC
	copy(regs.R[:], r.X[:])
	regs.R[31] = r.SP
	return regs, r.SP
}
