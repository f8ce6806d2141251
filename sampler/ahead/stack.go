package ahead

import (
	"slices"

	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// snapshot is the stack as the machine left it. The part that the burst has not stored to is the same in all
// snapshots of a hold.
func (l *Locator) snapshot() *unwind.Snapshot {
	regs, sp := unwindRegs(&l.regs)
	stack := l.copyStack(sp) // what is not copied is told by the walk
	n := l.machine.StoredTo(sp, len(stack))
	s := &unwind.Snapshot{Regs: regs, Stack: unwind.Stack{Base: sp, Data: slices.Clone(stack[:n]), Above: stack[n:]}}
	l.machine.Overlay(sp, s.Stack.Data)
	return s
}

// HeldStack is the call stack of a held thread from where it stands, nil if it
// can't be read.
func (l *Locator) HeldStack(pid, tid int) *unwind.Snapshot {
	if l.readRegs(pid, tid, 0) != nil {
		return nil
	}
	return l.heldStack()
}

// heldStack is HeldStack of the thread whose registers were read.
func (l *Locator) heldStack() *unwind.Snapshot {
	l.machine.Start(&l.regs, &l.memory)
	return l.snapshot()
}

// belowStack is how much is copied below the stack pointer, on the same page:
// what is read ahead may go deeper.
const belowStack = 512

// copyStack is the held thread's stack from sp up, not to be written to. It is read once a hold, for the thread may
// run on before it is asked for again; what lies below what was read has been stored to by the burst, or is
// of no meaning: it is zero.
func (l *Locator) copyStack(sp uint64) []byte {
	if l.stack.Data == nil {
		base, size := l.stackToCopy(sp)
		buf := l.spareFor(size)
		n, err := l.memory.readFirst(base, buf)
		if err != nil {
			n = 0
		}
		l.stack = unwind.Stack{Base: base, Data: buf[:n:n]}
		l.spare = nil
	}
	if below := l.stack.Base - sp; below < deepest {
		return append(make([]byte, below), l.stack.Data...)
	}
	if from := sp - l.stack.Base; from < uint64(len(l.stack.Data)) {
		return l.stack.Data[from:]
	}
	return nil
}

// stackToCopy is what copyStack reads.
func (l *Locator) stackToCopy(sp uint64) (base uint64, size int) {
	base = max(sp-min(sp, belowStack), sp&^4095)
	return base, int(sp-base) + stackSize(sp, l.StackTop)
}

// spareStack is as much as is ever copied of a stack.
const spareStack = belowStack + sampler.MaxStack

// spareFor is memory for a stack. That of the last hold may still be in use; a new one is made while nobody is held.
func (l *Locator) spareFor(size int) []byte {
	if l.spare == nil {
		l.spare = make([]byte, spareStack)
	}
	return l.spare[:size]
}

// deepest is how far below what was read a burst's frames are believed to be on the same stack.
const deepest = 64 << 10

// stackSize is how much to copy of a stack from its pointer up, if nothing
// above top, 0 if that is not known, is of use.
func stackSize(sp, top uint64) int {
	return int(min(top-sp, sampler.MaxStack)) // no less than that where top is below
}
