package sampler

import (
	"slices"

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
	s.Stack.Data = l.copyStack(s.Stack.Base) // what is not copied is told by the walk
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

// belowStack is how much is copied below the stack pointer, on the same page:
// what is read ahead may go deeper.
const belowStack = 512

// copyStack is the held thread's stack from sp up. It is read once a hold.
func (l *Locator) copyStack(sp uint64) []byte {
	if from := sp - l.stack.Base; from < uint64(len(l.stack.Data)) {
		return slices.Clone(l.stack.Data[from:])
	}
	base := max(sp-min(sp, belowStack), sp&^4095)
	buf := make([]byte, int(sp-base)+stackSize(sp, l.StackTop))
	n, err := l.memory.read(base, buf)
	if err != nil {
		return nil
	}
	l.stack = unwind.Stack{Base: base, Data: buf[:n]}
	if from := sp - base; from < uint64(n) {
		return slices.Clone(buf[from:n])
	}
	return nil
}
