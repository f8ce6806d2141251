package sampler

import (
	"github.com/rdx-profiler/rdx/bpf"
	"github.com/rdx-profiler/rdx/sampler/interp"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// Arch is this machine's, for unwinding.
var Arch = unwind.AMD64

// TrapStacks are the traps whose stacks are needed, for Slot.Stacks: not that
// of the use, which is known from the hold.
const TrapStacks uint32 = ^uint32(1 << TrapUse)

// stackRegs puts the registers in the order of DWARF.
func stackRegs(h *bpf.RDXStackHead) (regs unwind.Regs, sp uint64) {
	r := &h.Regs
	regs.PC = r.Ip
	copy(regs.R[:], []uint64{r.Ax, r.Dx, r.Cx, r.Bx, r.Si, r.Di, r.Bp, r.Sp, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15})
	return regs, r.Sp
}

// snapshot is the stack as the machine left it.
func (l *Locator) snapshot() *unwind.Snapshot {
	r := &l.regs
	g := &r.GPR
	s := &unwind.Snapshot{Stack: unwind.Stack{Base: g[interp.RSP]}}
	s.Regs.PC = r.RIP
	copy(s.Regs.R[:], []uint64{g[interp.RAX], g[interp.RDX], g[interp.RCX], g[interp.RBX], g[interp.RSI], g[interp.RDI], g[interp.RBP], g[interp.RSP]})
	copy(s.Regs.R[8:], g[8:])
	buf := make([]byte, stackSize(s.Stack.Base, l.StackTop))
	n, err := l.memory.read(s.Stack.Base, buf)
	if err != nil {
		return s // what is not copied is told by the walk
	}
	s.Stack.Data = buf[:n]
	l.machine.Overlay(s.Stack.Base, s.Stack.Data)
	return s
}

// HeldStack is the call stack of a held thread from where it stands, nil if it
// can't be read.
func (l *Locator) HeldStack(pid, tid int) *unwind.Snapshot {
	if l.readRegs(pid, tid, 0) != nil {
		return nil
	}
	l.machine.Start(&l.regs, &l.memory)
	return l.snapshot()
}
