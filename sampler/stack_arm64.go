package sampler

import (
	"github.com/rdx-profiler/rdx/bpf"
	"github.com/rdx-profiler/rdx/sampler/interp"
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

// Pointers are the registers that a stamp has the surroundings of.
func (s *Stamp) Pointers() (near [16]uint64) {
	copy(near[:], s.Regs.Regs[:4])
	copy(near[4:], s.Regs.Regs[19:30])
	near[15] = s.Regs.Sp
	return near
}

// Waypoint is where the machine is to stop for a stamp.
func (s *Stamp) Waypoint() interp.Waypoint {
	to := interp.Waypoint{PC: s.Regs.Pc, Mask: 1<<32 - 1}
	copy(to.Regs[:], s.Regs.Regs[:])
	to.Regs[31] = s.Regs.Sp
	return to
}
