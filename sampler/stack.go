package sampler

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/rdx-profiler/rdx/bpf"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// A stack comes in a record of its own, right before its trap's: so the trap's
// time can be taken after the copy, whose cost varies.

// TrapStacks are the traps whose stacks are needed, for Slot.Stacks: not that
// of the use, which is known from the hold.
const TrapStacks uint32 = 1<<TrapReuse | 1<<TrapOther | 1<<TrapLine

// slotOf is a thread that made an access, and the slot that watched for it, of
// that thread or another.
type slotOf struct{ index, slot uint32 }

type sentStack struct {
	seq   uint32
	stack *unwind.Snapshot
}

// keepStack keeps the stack in a record until its trap is read.
func (k *Kernel) keepStack(raw []byte) error {
	var head bpf.RDXStackHead
	size := int(unsafe.Sizeof(head))
	if len(raw) < size {
		return fmt.Errorf("read ring: stack of %d bytes, want %d or more", len(raw), size)
	}
	head = *(*bpf.RDXStackHead)(unsafe.Pointer(&raw[0]))
	regs, sp := stackRegs(&head)
	k.stacks[slotOf{head.Index, head.Slot}] = sentStack{head.Seq, &unwind.Snapshot{
		Regs:  regs,
		Stack: unwind.Stack{Base: sp, Data: slices.Clone(raw[size:])},
	}}
	return nil
}

// stackOf returns the trap's stack, nil if it has none.
func (k *Kernel) stackOf(t *bpf.RDXTrap) *unwind.Snapshot {
	key := slotOf{t.From, t.Slot}
	sent, ok := k.stacks[key]
	if !ok {
		return nil
	}
	delete(k.stacks, key)
	if sent.seq != t.Seq || t.StackBytes <= 0 {
		return nil // of a trap whose own record did not fit the ring
	}
	return sent.stack
}
