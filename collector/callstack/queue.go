package callstack

import (
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// Thread is whose stack was copied.
type Thread interface {
	// SetStackTop is told the address up to which the thread's stack goes, 0 if it is not known any more.
	SetStackTop(top uint64)
}

// Queue are the stacks that were copied and wait to be unwound. It belongs to the tracing thread.
type Queue struct {
	added   int
	waiting []Request
}

// Request is a stack to be unwound.
type Request struct {
	number   int
	thread   Thread // nil of one that is gone, or of an allocation
	process  *target.Process
	mappings []*target.Mapping // as of the last tick; never changed
	pc       uint64            // of the accessing instruction
	addr     uint64            // of its datum, to be looked for on the stack; 0: don't
	snapshot *unwind.Snapshot
	site     bool // of an allocation: never copied to its end
	called   bool // the accessing instruction has called the snapshot's leaf
	again    bool // with code in no known mapping; to be tried once more

	end unwind.End
	top uint64 // of a complete stack
}

// Add returns the number of the call stack of an access at pc in a thread of
// a process. Without a snapshot the stack is pc alone, and cut short. A datum at
// address addr is looked for on the stack.
func (q *Queue) Add(t Thread, p *target.Process, pc uint64, s *unwind.Snapshot, addr uint64) int {
	if s == nil {
		s = new(unwind.Snapshot)
		s.Regs.PC = pc
	}
	q.waiting = append(q.waiting, Request{number: q.added, thread: t, process: p, pc: pc, snapshot: s, addr: addr})
	q.added++
	p.Note(pc)
	return q.added - 1
}

// AddTrap is Add for an access that has trapped.
func (q *Queue) AddTrap(t Thread, p *target.Process, by ahead.Accessing, s *unwind.Snapshot) int {
	n := q.Add(t, p, by.PC, s, 0)
	q.waiting[len(q.waiting)-1].called = by.Called
	return n
}

// AddSite is Add for the call stack of an allocation.
func (q *Queue) AddSite(p *target.Process, s *unwind.Snapshot) int {
	n := q.Add(nil, p, s.Regs.PC, s, 0)
	q.waiting[len(q.waiting)-1].site = true
	return n
}

// Waiting is how many wait.
func (q *Queue) Waiting() int { return len(q.waiting) }

// Take hands the waiting requests over to be unwound.
func (q *Queue) Take() []Request {
	taken := q.waiting
	q.waiting = nil
	for i := range taken {
		taken[i].mappings = taken[i].process.Mappings
	}
	return taken
}

// Return has what was taken, and nobody has begun with, wait again, before what came since.
func (q *Queue) Return(taken []Request) { q.waiting = append(taken, q.waiting...) }

// Done takes back what was unwound: the tops of stacks are learnt from it,
// and what met code in no known mapping is tried once more, when the mappings
// have been read again.
func (q *Queue) Done(taken []Request) {
	for _, r := range taken {
		switch {
		case r.again:
			r.process.Unknown = true
			q.waiting = append(q.waiting, r)
		case r.thread == nil:
		case r.end == unwind.Outermost:
			r.thread.SetStackTop(r.top)
		case r.end == unwind.NotCopied:
			r.thread.SetStackTop(0)
		}
	}
}
