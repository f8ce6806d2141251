package sampler

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
	"unsafe"

	"github.com/rdx-profiler/rdx/bpf"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// ReadTrap reads the next trap into t and says whether there was one. It does
// not wait: the programs wake nobody up.
func (k *Kernel) ReadTrap(t *Trap) (bool, error) {
	for k.reader.AvailableBytes() > 0 {
		k.reader.SetDeadline(time.Unix(1, 0))
		if err := k.reader.ReadInto(&k.record); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return false, nil
			}
			return false, fmt.Errorf("read ring: %w", err)
		}
		if ok, err := k.decode(k.record.RawSample, t); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// decode reads one record of the ring: a trap into t, or what is kept for a later one. ok
// says whether it was a trap. It fails if the record is shorter than its kind.
func (k *Kernel) decode(raw []byte, t *Trap) (ok bool, err error) {
	var kind bpf.RDXTrapKind
	if n := len(raw); n < int(unsafe.Sizeof(kind)) {
		return false, fmt.Errorf("read ring: record of %d bytes", n)
	}
	switch kind = *(*bpf.RDXTrapKind)(unsafe.Pointer(&raw[0])); kind {
	case bpf.RDXTrapKindSTAMP:
		return false, k.keepStamp(raw)
	case bpf.RDXTrapKindTRAP_STACK:
		return false, k.keepStack(raw)
	}
	if n := len(raw); n < int(unsafe.Sizeof(t.RDXTrap)) {
		return false, fmt.Errorf("read ring: record of %d bytes, want %d", n, unsafe.Sizeof(t.RDXTrap))
	}
	t.RDXTrap = *(*bpf.RDXTrap)(unsafe.Pointer(&raw[0]))
	t.Stack = k.stackOf(&t.RDXTrap)
	return true, nil
}

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
