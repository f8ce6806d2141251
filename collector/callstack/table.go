package callstack

import (
	"encoding/binary"
	"slices"

	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// Table holds every distinct call stack once. It belongs to whoever unwinds.
type Table struct {
	walker  *unwind.Walker
	of      []int  // by number of the request: index into stacks
	holders []Held // by number of the request
	ids     map[string]int
	stacks  [][]uint64 // leaf first; the leaf is the accessing instruction
	key     []byte
	current *Request
	ends    [unwind.NumEnds]int64
}

// NewTable is empty.
func NewTable() *Table {
	t := &Table{ids: make(map[string]int)}
	t.walker = unwind.NewWalker(sampler.Arch, func(pc uint64) unwind.Code { return t.current.code(pc) })
	return t
}

// Unwind walks the stacks. Those that are worth another try are marked so, if
// there will be one.
func (t *Table) Unwind(taken []Request, last bool) {
	for i := range taken {
		r := &taken[i]
		t.current = r
		frames, end := t.walker.Walk(r.snapshot)
		if r.again = end == unwind.UnknownCode && !r.again && !last; r.again {
			continue
		}
		if !r.site {
			t.ends[end]++
		}
		r.end, r.top = end, frames[len(frames)-1].CFA
		for len(t.of) <= r.number {
			t.of = append(t.of, 0)
			t.holders = append(t.holders, Held{Frame: -1})
		}
		sp := r.snapshot.Stack.Base
		if r.called && len(frames) > 1 { // the stack before the call
			sp, frames = frames[0].CFA, frames[1:]
		}
		t.of[r.number] = t.intern(r, frames)
		t.holders[r.number] = holder(frames, sp, r.addr)
		r.snapshot = nil
	}
}

// intern returns the index of a stack in the table.
func (t *Table) intern(r *Request, frames []unwind.Frame) int {
	t.key = binary.NativeEndian.AppendUint64(t.key[:0], uint64(r.process.PID))
	t.key = binary.NativeEndian.AppendUint64(t.key, r.pc)
	for _, f := range frames[1:] {
		t.key = binary.NativeEndian.AppendUint64(t.key, f.PC)
	}
	if id, ok := t.ids[string(t.key)]; ok {
		return id
	}
	stack := []uint64{r.pc}
	for _, f := range frames[1:] {
		stack = append(stack, f.PC)
	}
	t.stacks = append(t.stacks, stack)
	t.ids[string(t.key)] = len(t.stacks) - 1
	return len(t.stacks) - 1
}

// redZone is what x86-64 functions may use below the stack pointer.
const redZone = 128

// Held is where on a stack a datum is: the index of the frame, or -1, and there as model.Data has it.
type Held struct {
	Frame        int
	Below, Above int64
}

// holder finds an address on the stack with its pointer at sp.
func holder(frames []unwind.Frame, sp, addr uint64) Held {
	if addr == 0 || addr < sp-redZone {
		return Held{Frame: -1}
	}
	i := slices.IndexFunc(frames, func(f unwind.Frame) bool { return addr < f.CFA })
	if i < 0 {
		return Held{Frame: -1}
	}
	if i > 0 {
		sp = frames[i-1].CFA
	}
	return Held{i, int64(frames[i].CFA - addr), int64(addr - sp)}
}

// Counts are of all stacks, and of those cut short, by reason.
func (t *Table) Counts() []model.Count {
	all := model.Count{Name: model.Stacks}
	var counts []model.Count
	for end, n := range t.ends {
		all.N += n
		if n > 0 && unwind.End(end) != unwind.Outermost {
			counts = append(counts, model.Count{Name: model.StackCut.Of(model.Reason(unwind.End(end).String())), N: n})
		}
	}
	return append(counts, all)
}

// Holder says where on its stack a request's datum is.
func (t *Table) Holder(number int) Held { return t.holders[number] }

// Stack of a request, leaf firt.
func (t *Table) Stack(number int) []uint64 { return t.stacks[t.of[number]] }

// code implements the walker's search.
func (r *Request) code(pc uint64) unwind.Code {
	m := target.FindMapping(r.mappings, pc)
	if m == nil {
		return unwind.Code{}
	}
	code := unwind.Code{Known: true}
	file, offset := m.Code()
	if file == nil {
		return code
	}
	if u := file.UnwindTable(); u != nil {
		if addr, ok := u.Address(pc - m.Start + offset); ok {
			code.Table, code.PC = u, addr
		}
	}
	return code
}

// ID is the same for requests of the same stack.
func (t *Table) ID(number int) int { return t.of[number] }
