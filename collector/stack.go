package collector

import (
	"encoding/binary"

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

// add returns the number of the trap's user stack in process p, with pc as its
// leaf: what the kernel reports there is on x86 the instruction after the
// accessing one.
func (st *stackTable) add(p *process, trap *sampler.Trap, pc uint64) int {
	n := max(int(trap.StackBytes)/8, 1)
	st.key = binary.NativeEndian.AppendUint64(st.key[:0], uint64(p.pid))
	st.key = binary.NativeEndian.AppendUint64(st.key, pc)
	for _, a := range trap.Stack[1:n] {
		st.key = binary.NativeEndian.AppendUint64(st.key, a)
	}
	if id, ok := st.ids[string(st.key)]; ok {
		return id
	}
	stack := append([]uint64{pc}, trap.Stack[1:n]...)
	p.note(stack...)
	id := len(st.stacks)
	st.stacks = append(st.stacks, stack)
	st.ids[string(st.key)] = id
	return id
}
