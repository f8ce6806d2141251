package ahead

import (
	"slices"
	"time"

	"github.com/rdx-profiler/rdx/sampler/clock"
	"github.com/rdx-profiler/rdx/sampler/interp"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// Steps is a burst of accesses that a thread makes itself: it is let go for a few
// instructions at a time, whose operands are decoded before, so that it is known
// which accesses it made. What it does next is known only when it is there: nothing
// of it is interpreted but the target of an indirect jump.
//
// It is not stepped by ptrace. PTRACE_SINGLESTEP sets the flag TF in the
// registers; of a tracer that dies, the kernel lets go of the tracees by
// __ptrace_unlink alone and not, as PTRACE_DETACH does, by ptrace_disable, which
// would take the flag away again: the next instruction raises a SIGTRAP, which kills
// the process (TestStepperDies). So the thread is stopped by a breakpoint in
// a debug register of its own, at the instruction up to which its way is known. That
// goes with our file descriptors, and sends the signal that holds threads, which
// the target ignores. The flags of the thread, which it may push, stay as they are.
//
// Uses are a random sample, by a reservoir, of a third of the accesses that begins
// at a random one of the first third, so that each has a third of them or more to follow:
// a timer stops a thread most often at slow accesses, and the further on and the more at
// random a use lies, the less its place depends on these. Of a burst that ends before,
// one access of those there were, each as likely as any other, is the use.
type Steps struct {
	l        *Locator
	pid, tid int
	want     int
	burst    int // accesses
	pick     func(n int) int

	log       accessLog
	uses      []use
	stacks    []seenStacks // by use.candidate, which is the place in the reservoir
	first     int          // access that may be a use; want is the place of one before it, if none is
	drawn     []int        // by access: its place in the reservoir, or -1
	way       []passed     // instructions since the thread stood still last
	confirmed int          // accesses of the log that were made
	upTo      uint64       // where it goes
	started   bool
	torn      bool
	sequence  uint64           // address of the thread's struct rseq, 0 without
	onStack   *unwind.Snapshot // where the thread stands, nil: not taken yet
	begun     time.Duration
	limit     time.Duration
	// Steps is how often the thread was stopped, the hold not counted, and Instructions
	// what it did.
	Steps, Instructions int
}

type seenStacks struct{ use, reuse *unwind.Snapshot }

// passed is an instruction that the thread is to pass.
type passed struct {
	pc   uint64
	size int
	code [16]byte
}

// Why a burst of steps ended, besides interp's causes.
const (
	endTime      = "time limit"
	endElsewhere = "stopped elsewhere"
	endSignal    = "signal for the target"
	endLost      = "next stop not reached"
	endChanged   = "code changed"
	endOperands  = "operands not known"
	endSelf      = "loop of one instruction"
	endString    = "string instruction beyond the burst"
	EndRestarted = "restartable sequence"
)

const (
	// StepLimit bounds how long a thread should be held for one burst of steps, one step
	// more or less.
	StepLimit = 4500 * time.Microsecond
	// mostOnTheWay bounds the instructions of a step, which are decoded while the
	// thread is held.
	mostOnTheWay = 32
)

// Steps begins a burst of the held thread tid of process pid: so many accesses, of which
// want uses are to be told of; no step is begun after limit. block and pick are those of Ahead.
func (l *Locator) Steps(pid, tid, want, burst, block int, limit time.Duration, pick func(n int) int) *Steps {
	s := &Steps{l: l, pid: pid, tid: tid, want: want, burst: burst, limit: limit, pick: pick, begun: clock.Monotonic()}
	s.log.reset(block)
	s.stacks = make([]seenStacks, want+1)
	s.first = pick(s.third())
	return s
}

// Next is to be called where the thread is held: at first, and each time it has stopped.
// It says up to which instruction the thread is to go next; or, in end,
// why it is not to go on. An error is a *Declined.
func (s *Steps) Next() (upTo uint64, end string, err error) {
	if err := s.l.readRegs(s.pid, s.tid, samplePages); err != nil {
		return 0, "", err
	}
	s.onStack = nil
	if s.l.InSyscall {
		return 0, s.tear(interp.Syscall.String()), nil // it may be made again
	}
	if s.started {
		s.Steps++
		switch {
		case programCounter(&s.l.regs) != s.upTo:
			return 0, s.tear(endElsewhere), nil
		case !s.unchanged():
			return 0, s.tear(endChanged), nil
		}
		s.arrived()
	} else {
		s.sequence = ptrace.RestartableArea(s.tid)
	}
	switch {
	case s.restartable():
		return 0, s.tear(EndRestarted), nil
	case s.confirmed >= s.burst:
		return 0, interp.AccessesDone.String(), nil
	case clock.Monotonic()-s.begun > s.limit:
		return 0, endTime, nil
	}
	s.upTo, end = s.walk(mostOnTheWay)
	s.started = true
	return s.upTo, end, nil
}

// arrived takes the instructions on the way as done.
func (s *Steps) arrived() {
	s.confirmed = len(s.log.all)
	s.Instructions += len(s.way)
	s.way = s.way[:0]
}

// restartable says whether the thread stands in a restartable sequence: having been
// stopped, it does not go on from here, but where the sequence says.
func (s *Steps) restartable() bool {
	const cs = 8 // offset of rseq_cs: 0 outside of sequences, at the latest from the next stop on
	var at [8]byte
	if s.sequence == 0 {
		return false
	}
	n, err := s.l.memory.read(s.sequence+cs, at[:])
	return err == nil && n == len(at) && at != [8]byte{}
}

// tear ends the burst with the thread somewhere on the way, or beyond: what it has not
// been seen to reach does not count.
func (s *Steps) tear(cause string) string {
	s.torn = true
	return cause
}

// Signal ends the burst of a thread that another signal has stopped.
func (s *Steps) Signal() (end string) { return s.tear(endSignal) }

// Lost ends the burst of a thread that does not come to its next stop.
func (s *Steps) Lost() (end string) { return s.tear(endLost) }

// Leave is called where the burst has ended and the thread is held, before End: it
// lets it pass one more instruction. Time is to be taken from next on, the instruction
// after that; 0 if that is not known.
func (s *Steps) Leave() (next uint64) {
	if s.torn {
		return 0
	}
	s.way = s.way[:0]
	next, end := s.walk(1)
	if end == interp.Syscall.String() {
		next = s.afterCall()
	}
	if next != 0 {
		s.arrived()
	}
	return next
}

// End says what was seen until the end: Before and Half are not told, as all uses
// are over. The error is a *Declined.
func (s *Steps) End(cause string) (Ahead, error) {
	s.log.cut(s.confirmed)
	uses := slices.DeleteFunc(s.uses, func(u use) bool {
		return u.at >= s.confirmed || u.candidate == s.want && s.confirmed > s.first
	})
	if len(uses) == 0 {
		return Ahead{}, &Declined{Reason: NoAccessBefore + cause}
	}
	for i := range uses {
		if uses[i].reuse >= s.confirmed {
			uses[i].reuse = -1
		}
	}
	// The first without a reuse so far comes first: that it has the most behind it does not
	// depend on its datum.
	slices.SortFunc(uses, func(a, b use) int { return a.at - b.at })
	if i := slices.IndexFunc(uses, func(u use) bool { return u.reuse < 0 }); i > 0 {
		uses[0], uses[i] = uses[i], uses[0]
	}
	followed := make([]Followed, len(uses))
	for i, u := range uses {
		f, a := &followed[i], s.log.all[u.at]
		f.Share = 1 / float64(len(uses))
		f.Use = Located{Addr: a.Addr, Size: int(a.Size), Store: a.Store, PC: a.PC}
		f.Word, f.Stack = u.word, s.stacks[u.candidate].use
		s.log.tell(u, s.burst, f)
		if u.reuse >= 0 {
			f.ReusePC, f.ReuseStack = s.log.all[u.reuse].PC, s.stacks[u.candidate].reuse
		}
	}
	return Ahead{Followed: followed[0], Others: followed[1:], Accesses: len(s.log.all), Touches: len(s.log.touches), End: cause}, nil
}

func (s *Steps) third() int { return max(s.burst/3, 1) }

// place is where in the reservoir an access goes that is the at-th of the burst, or -1.
func (s *Steps) place(at int) int {
	for i := len(s.drawn); i <= at; i++ {
		place := -1
		switch n := i - s.first; {
		case n < 0 && s.pick(i+1) == 0:
			place = s.want
		case n < 0 || n >= s.third():
		case n < s.want:
			place = n
		default:
			if p := s.pick(n + 1); p < s.want {
				place = p
			}
		}
		s.drawn = append(s.drawn, place)
	}
	return s.drawn[at]
}

// wants says whether the stack is wanted at an instruction with these accesses: it makes
// a use, or a reuse of one.
func (s *Steps) wants(accesses []interp.Access) bool {
	for i, a := range accesses {
		if s.place(len(s.log.all)+i) >= 0 {
			return true
		}
		from, to := s.log.blocks(a)
		for _, u := range s.uses {
			if u.reuse < 0 && from <= u.block && u.block <= to {
				return true
			}
		}
	}
	return false
}

// note enters the accesses of one instruction, at which the thread stands if wants has
// said so.
func (s *Steps) note(accesses []interp.Access, wanted bool) {
	from := len(s.log.all)
	s.log.add(accesses)
	if wanted && s.onStack == nil {
		s.onStack = s.l.heldStack()
	}
	for at := from; at < len(s.log.all); at++ {
		place := s.place(at)
		if place < 0 {
			continue
		}
		s.uses = slices.DeleteFunc(s.uses, func(u use) bool { return u.candidate == place })
		s.uses = append(s.uses, s.log.use(place, at, s.pick))
		s.stacks[place] = seenStacks{use: s.onStack}
	}
	s.log.match(s.uses, s.burst)
	for _, u := range s.uses {
		if u.reuse >= from {
			s.stacks[u.candidate].reuse = s.onStack
		}
	}
}

// Refused undoes the last Next: the thread stays where it is.
func (s *Steps) Refused() {
	s.way = s.way[:0]
	s.torn = true
}

// Elapsed is how long the burst has taken so far.
func (s *Steps) Elapsed() time.Duration { return clock.Monotonic() - s.begun }
