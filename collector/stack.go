package collector

import (
	"encoding/binary"
	"slices"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// Stacks are copied while a thread is held or in a trap, and unwound later, by
// the goroutine that waits for the session: nobody waits for that.

// stackTable holds every distinct call stack once.
type stackTable struct {
	// Of the session's goroutine.
	added   int
	waiting []stackRequest

	// Of the one that unwinds.
	walker  *unwind.Walker
	of      []int // by number of the request: index into stacks
	holders []int // by number of the request: frame that holds the datum, or -1
	ids     map[string]int
	stacks  [][]uint64 // leaf first; the leaf is the accessing instruction
	key     []byte
	current *stackRequest
	ends    [unwind.NumEnds]int64
}

// stackRequest is a stack to be unwound.
type stackRequest struct {
	number   int
	thread   *thread
	process  *process
	mappings []*mapping // as of the last tick; never changed
	pc       uint64     // of the accessing instruction
	addr     uint64     // of its datum, to be looked for on the stack; 0: don't
	snapshot *unwind.Snapshot
	site     bool // of an allocation: never copied to its end
	called   bool // the accessing instruction has called the snapshot's leaf
	again    bool // with code in no known mapping; to be tried once more

	end unwind.End
	top uint64 // of a complete stack
}

func newStackTable() *stackTable {
	st := &stackTable{ids: make(map[string]int)}
	st.walker = unwind.NewWalker(sampler.Arch, func(pc uint64) unwind.Code { return st.current.code(pc) })
	return st
}

// add returns the number of the call stack of an access at pc in a thread of
// a process. Without a snapshot the stack is pc alone, and cut short. A datum at
// address addr is looked for on the stack.
func (st *stackTable) add(t *thread, pc uint64, s *unwind.Snapshot, addr uint64) int {
	if s == nil {
		s = new(unwind.Snapshot)
		s.Regs.PC = pc
	}
	st.waiting = append(st.waiting, stackRequest{number: st.added, thread: t, process: t.process, pc: pc, snapshot: s, addr: addr})
	st.added++
	t.process.note(pc)
	return st.added - 1
}

// addTrap is add for an access that has trapped.
func (st *stackTable) addTrap(t *thread, by ahead.Accessing, trap *sampler.Trap, addr uint64) int {
	n := st.add(t, by.PC, trap.Stack, addr)
	st.waiting[len(st.waiting)-1].called = by.Called
	return n
}

// addSite is add for the call stack of an allocation.
func (st *stackTable) addSite(p *process, s *unwind.Snapshot) int {
	n := st.add(&thread{process: p, index: noThread}, s.Regs.PC, s, 0)
	st.waiting[len(st.waiting)-1].site = true
	return n
}

// take hands the waiting requests over to be unwound.
func (st *stackTable) take() []stackRequest {
	taken := st.waiting
	st.waiting = nil
	for i := range taken {
		taken[i].mappings = taken[i].process.mappings
	}
	return taken
}

// stacksBack takes what was handed over: the tops of stacks are learnt from it,
// and what met code in no known mapping is tried once more, when the mappings
// have been read again.
func (s *Session) stacksBack(taken []stackRequest) {
	for _, r := range taken {
		switch {
		case r.again:
			r.process.unknown = true
			s.stacks.waiting = append(s.stacks.waiting, r)
		case s.byIndex[r.thread.index] != r.thread:
			// The table has another thread there by now.
		case r.end == unwind.Outermost:
			r.thread.shared.StackTop = r.top
		case r.end == unwind.NotCopied:
			r.thread.shared.StackTop = 0
		}
	}
}

// unwind walks the stacks. Those that are worth another try are marked so, if
// there will be one.
func (st *stackTable) unwind(taken []stackRequest, last bool) {
	for i := range taken {
		r := &taken[i]
		st.current = r
		frames, end := st.walker.Walk(r.snapshot)
		if r.again = end == unwind.UnknownCode && !r.again && !last; r.again {
			continue
		}
		if !r.site {
			st.ends[end]++
		}
		r.end, r.top = end, frames[len(frames)-1].CFA
		for len(st.of) <= r.number {
			st.of = append(st.of, 0)
			st.holders = append(st.holders, -1)
		}
		if r.called && len(frames) > 1 {
			frames = frames[1:] // the stack before the call
		}
		st.of[r.number] = st.intern(r, frames)
		st.holders[r.number] = holder(frames, r.snapshot.Stack.Base, r.addr)
		r.snapshot = nil
	}
}

// intern returns the index of a stack in the table.
func (st *stackTable) intern(r *stackRequest, frames []unwind.Frame) int {
	st.key = binary.NativeEndian.AppendUint64(st.key[:0], uint64(r.process.pid))
	st.key = binary.NativeEndian.AppendUint64(st.key, r.pc)
	for _, f := range frames[1:] {
		st.key = binary.NativeEndian.AppendUint64(st.key, f.PC)
	}
	if id, ok := st.ids[string(st.key)]; ok {
		return id
	}
	stack := []uint64{r.pc}
	for _, f := range frames[1:] {
		stack = append(stack, f.PC)
	}
	st.stacks = append(st.stacks, stack)
	st.ids[string(st.key)] = len(st.stacks) - 1
	return len(st.stacks) - 1
}

// redZone is what x86-64 functions may use below the stack pointer.
const redZone = 128

// holder is the index of the frame that holds an address of the stack with its
// pointer at sp, or -1.
func holder(frames []unwind.Frame, sp, addr uint64) int {
	if addr == 0 || addr < sp-redZone {
		return -1
	}
	return slices.IndexFunc(frames, func(f unwind.Frame) bool { return addr < f.CFA })
}

// counts are of all stacks, and of those cut short, by reason.
func (st *stackTable) counts() []model.Count {
	all := model.Count{Name: "stacks"}
	var counts []model.Count
	for end, n := range st.ends {
		all.N += n
		if n > 0 && unwind.End(end) != unwind.Outermost {
			counts = append(counts, model.Count{Name: "stacks cut short: " + unwind.End(end).String(), N: n})
		}
	}
	return append(counts, all)
}

// holder of a request's datum: the index of a frame, or -1.
func (st *stackTable) holder(number int) int { return st.holders[number] }

// stack of a request, leaf first.
func (st *stackTable) stack(number int) []uint64 { return st.stacks[st.of[number]] }

// code implements the walker's search.
func (r *stackRequest) code(pc uint64) unwind.Code {
	m := findMapping(r.mappings, pc)
	if m == nil {
		return unwind.Code{}
	}
	code := unwind.Code{Known: true}
	if m.file == nil {
		return code
	}
	if t := m.file.UnwindTable(); t != nil {
		if addr, ok := t.Address(pc - m.Start + m.Offset); ok {
			code.Table, code.PC = t, addr
		}
	}
	return code
}
