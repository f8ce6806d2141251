package sampler

import (
	"github.com/rdx-profiler/rdx/bpf"
	"github.com/rdx-profiler/rdx/sampler/interp"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// Arch is this machine's, for unwinding.
var Arch = unwind.AMD64

// stackRegs puts the registers in the order of DWARF.
func stackRegs(h *bpf.RDXStackHead) (regs unwind.Regs, sp uint64) {
	r := &h.Regs
	regs.PC = r.Ip
	copy(regs.R[:], []uint64{r.Ax, r.Dx, r.Cx, r.Bx, r.Si, r.Di, r.Bp, r.Sp, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15})
	return regs, r.Sp
}

// Pointers are the registers that a stamp has the surroundings of.
func (s *Stamp) Pointers() [16]uint64 {
	r := &s.Regs
	return [16]uint64{r.R15, r.R14, r.R13, r.R12, r.Bp, r.Bx, r.R11, r.R10, r.R9, r.R8, r.Ax, r.Cx, r.Dx, r.Si, r.Di, r.Sp}
}

// Waypoint is where the machine is to stop for a stamp. R11 does not count: a
// system call leaves all flags in it.
func (s *Stamp) Waypoint() interp.Waypoint {
	r := &s.Regs
	to := interp.Waypoint{PC: r.Ip, Mask: 0xffff &^ (1 << interp.R11)}
	copy(to.Regs[:], []uint64{r.Ax, r.Cx, r.Dx, r.Bx, r.Sp, r.Bp, r.Si, r.Di, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15})
	return to
}
