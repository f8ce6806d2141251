package collector

import (
	"encoding/binary"
	"slices"

	"github.com/rdx-profiler/rdx/sampler"
)

// stackTable holds every distinct call stack once.
type stackTable struct {
	ids    map[string]int
	stacks [][]uint64 // leaf first; the leaf is the accessing instruction
	key    []byte
}

func newStackTable() *stackTable {
	return &stackTable{ids: make(map[string]int)}
}

// trapped is the user stack of a trap with pc as its leaf: what the kernel
// reports there is on x86 the instruction after the accessing one.
func trapped(trap *sampler.Trap, pc uint64) []uint64 {
	n := max(int(trap.StackBytes)/8, 1)
	trap.Stack[0] = pc
	return trap.Stack[:n]
}

// add returns the number of a call stack of process p. The stack is copied.
func (st *stackTable) add(p *process, stack []uint64) int {
	st.key = binary.NativeEndian.AppendUint64(st.key[:0], uint64(p.pid))
	for _, a := range stack {
		st.key = binary.NativeEndian.AppendUint64(st.key, a)
	}
	if id, ok := st.ids[string(st.key)]; ok {
		return id
	}
	p.note(stack...)
	id := len(st.stacks)
	st.stacks = append(st.stacks, slices.Clone(stack))
	st.ids[string(st.key)] = id
	return id
}
