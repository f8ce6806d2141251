package ahead

import (
	"errors"
	"slices"

	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/interp"
	"github.com/rdx-profiler/rdx/sampler/operand"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// Instructions allowed an access: where code does not touch memory, reading
// ahead ends.
const (
	firstInstructions = 4096
	perAccess         = 64
	// aheadInstructions bounds how long a hold takes where accesses are few and far
	// between: some hundred microseconds, read and replayed.
	aheadInstructions = 16384
)

// Locator reads ahead of a held thread by interpreting from where it stands;
// the thread itself is not moved. It is for the tracing thread only.
type Locator struct {
	cpu
	machine  *machine
	regs     registers
	memory   targetMemory
	operands []operand.Access
	log      accessLog
	uses     []use
	stops    []stop
	stack    unwind.Stack // as read while the thread is held, empty before
	// InSyscall: the thread that was looked at last stands in a system call. Who
	// has not looked yet may set it.
	// A sample never does; but the signal that holds it is sent by an
	// interrupt of its own, which may come some instructions later.
	InSyscall bool
	// StackTop of the thread to be looked at, from where on nothing need be
	// copied of its stack; 0 if that is not known.
	StackTop uint64
}

// NewLocator returns a Locator, to be used again and again.
func NewLocator() *Locator {
	return &Locator{
		cpu:     newCPU(),
		machine: newMachine(),
	}
}

// Prepare begins to find out what of a process can be read at no risk, so that
// it is known when a thread is held.
func (l *Locator) Prepare(pid int) {
	l.memory.userfault.of(pid)
	l.memory.userfault.scan.userfault()
}

// Tend is to be called when the thread that was looked at runs again, for what takes too long while it is held.
func (l *Locator) Tend() {
	if scan := l.memory.userfault.scan; scan != nil {
		scan.tend()
	}
}

// Gone is a pid that was read from since the last call and had no memory any more, 0 if there is none: its process has
// ended or goes on without the thread of that number, see Living.
func (l *Locator) Gone() (pid int) {
	pid, l.memory.gone = l.memory.gone, 0
	return pid
}

// Forget is for a process that has ended.
func (l *Locator) Forget(pid int) { l.memory.userfault.forget(pid) }

// Ahead reads ahead of the held thread tid of process pid: to the accesses after
// the next skips[i] ones each, and up to burst accesses on from each of them. Of
// these it gives want, see choose. Where not so many can be read ahead, one of
// those that can is taken instead. A reuse is that of an aligned block of so many
// bytes. pick(n) chooses one of n. The error is a *Declined: the sample is lost.
func (l *Locator) Ahead(pid, tid int, skips []int, want, burst, block int, pick func(n int) int) (Ahead, error) {
	if err := l.readRegs(pid, tid, samplePages); err != nil {
		return Ahead{}, err
	}
	start := l.regs
	l.machine.Start(&l.regs, &l.memory)
	l.log.reset(block)
	far := slices.Max(skips)
	end, done := l.begin(far)
	if len(l.log.all) == 0 {
		return l.operand(end, pick)
	}
	l.uses = l.uses[:0]
	for i, skip := range skips {
		if skip >= len(l.log.all) {
			skip = pick(len(l.log.all))
		}
		l.uses = append(l.uses, l.log.use(i, skip, pick))
	}
	var cause string
	if end.Cause != interp.AccessesDone {
		cause = ending(end)
		l.log.match(l.uses, burst)
	} else {
		cause = l.follow(burst, done)
	}

	var followed []Followed
	followed, l.uses = choose(l.uses, want, pick)
	l.regs = start
	l.machine.Rewind(&l.regs)
	if err := l.replay(followed); err != nil {
		return Ahead{}, err
	}
	for i, u := range l.uses {
		l.log.tell(u, burst, &followed[i])
	}
	u := l.uses[0]
	ahead := Ahead{Followed: followed[0], Others: followed[1:], Accesses: len(l.log.all), Touches: len(l.log.touches), End: cause}
	if u.reuse >= 0 {
		ahead.End = interp.AccessesDone.String()
	}
	before := l.log.all[:u.at]
	inst := l.log.all[u.at].Inst
	ahead.Before = instructionsTouching(before, inst, ahead.Word, sampler.WordSize)
	ahead.LineBefore = instructionsTouching(before, inst, ahead.Word&^(sampler.LineSize-1), sampler.LineSize)
	ahead.Half = halfLine(ahead.Word)
	for i := range ahead.Half {
		part := &ahead.Half[i]
		last := inst
		if i > 0 {
			last++
		}
		part.Before = instructionsTouching(before, last, part.Word, sampler.WordSize)
	}
	return ahead, nil
}

// Touched appends all touches of blocks that the last call of Ahead has read ahead.
func (l *Locator) Touched(to []Touch) []Touch { return l.log.touched(to) }

// beginAtOnce is how many accesses begin reads before it looks at the budget.
const beginAtOnce = 32

// followAtOnce is how many accesses follow reads before it looks for reuses.
const followAtOnce = 8

// begin reads the accesses of which the uses are chosen: up to number far, or until half
// of the budget is spent, as most of what there is to know lies behind them. It returns how
// that ended, with AccessesDone if it can go on, after how many instructions.
func (l *Locator) begin(far int) (end interp.End, done int) {
	for n := 0; n <= far && (n == 0 || done < aheadInstructions/2 && l.memory.pages >= samplePages/2); n = len(l.log.all) {
		end = l.machine.Run(limitFor(min(far+1-n, beginAtOnce)))
		done += end.Instructions
		l.log.add(l.machine.Accesses())
		if end.Cause != interp.AccessesDone {
			break
		}
	}
	return end, done
}

// choose takes want of the uses, and says what share of all each stands
// for. Most of what costs lies ahead, and much is known of all already: of those
// without a reuse so far one at random comes first, to be watched, in the place of
// all of them, however few; the others are random ones of those with a reuse.
func choose(uses []use, want int, pick func(n int) int) (followed []Followed, chosen []use) {
	soon := slices.Clone(uses)
	soon = slices.DeleteFunc(soon, func(u use) bool { return u.reuse < 0 })
	open := slices.DeleteFunc(slices.Clone(uses), func(u use) bool { return u.reuse >= 0 })
	all := float64(len(open) + len(soon))
	add := func(u use, share float64) {
		chosen = append(chosen, u)
		followed = append(followed, Followed{Candidate: u.candidate, Share: share})
	}
	if len(open) > 0 {
		add(open[pick(len(open))], float64(len(open))/all)
	}
	n := min(max(want-len(chosen), 1), len(soon))
	for i := range n {
		j := i + pick(len(soon)-i)
		soon[i], soon[j] = soon[j], soon[i]
		add(soon[i], float64(len(soon))/all/float64(n))
	}
	return followed, chosen
}

// follow reads on until all uses have their reuses, or burst accesses behind
// them, and says why it ended. So many instructions are done already.
func (l *Locator) follow(burst, done int) string {
	// The last use without a reuse says how far.
	slices.SortFunc(l.uses, func(a, b use) int { return a.at - b.at })
	for last := len(l.uses) - 1; ; {
		l.log.match(l.uses, burst)
		for last >= 0 && l.uses[last].reuse >= 0 {
			last--
		}
		if last < 0 || len(l.log.all)-1-l.uses[last].at >= burst {
			return interp.AccessesDone.String()
		}
		if done >= aheadInstructions {
			return interp.InstructionLimit.String()
		}
		// Not one by one, for each run has a cost of its own; what comes behind the last reuse does no harm.
		n := min(followAtOnce, l.uses[last].at+burst+1-len(l.log.all))
		end := l.machine.Run(interp.Limit{Accesses: n, Instructions: perAccess * n})
		done += end.Instructions
		if len(l.machine.Accesses()) == 0 {
			return ending(end)
		}
		l.log.add(l.machine.Accesses())
	}
}

// ending says why reading ahead ended.
func ending(end interp.End) string {
	switch {
	case errors.Is(end.Err, errPages):
		return errPages.Error()
	case end.Cause == interp.Unsupported:
		return end.Cause.String() + ": " + end.Op
	}
	return end.Cause.String()
}

// replay goes the same way once more for the call stacks at the uses and reuses,
// before their instructions: a call's access is by the caller, a return's by who
// returns.
func (l *Locator) replay(to []Followed) error {
	l.stops = l.stops[:0]
	for i, u := range l.uses {
		l.stops = append(l.stops, stop{u.at, i, false})
		if u.reuse >= 0 {
			l.stops = append(l.stops, stop{u.reuse, i, true})
		}
	}
	slices.SortFunc(l.stops, func(a, b stop) int { return a.at - b.at })
	done, first := 0, -1
	var stack *unwind.Snapshot
	for _, s := range l.stops {
		a := l.log.all[s.at]
		from := s.at
		for from > 0 && l.log.all[from-1].Inst == a.Inst {
			from--
		}
		if from != first {
			if !l.runTo(&done, from) || !l.stepTo(a.PC) {
				return errChanged
			}
			stack, first = l.snapshot(), from
		}
		f := &to[s.use]
		if s.reuse {
			f.ReusePC, f.ReuseStack = a.PC, stack
			continue
		}
		f.Use = Located{Addr: a.Addr, Size: int(a.Size), Store: a.Store, PC: a.PC}
		f.Word, f.Stack = l.uses[s.use].word, stack
		if s.use == 0 { // the one that may be watched
			if !l.runTo(&done, s.at+1) {
				return errChanged
			}
			f.Use.Next = l.reportedAt(a.PC)
		}
	}
	return nil
}

var errChanged = &Declined{Reason: "code or data ahead changed while it was read"}

// runTo replays up to the log's access number to, if done of them are; false if
// other ones come than before.
func (l *Locator) runTo(done *int, to int) bool {
	for *done < to {
		l.machine.Run(limitFor(to - *done))
		again := l.machine.Accesses()
		if len(again) == 0 {
			return false
		}
		for i, a := range again[:min(len(again), len(l.log.all)-*done)] {
			if want := l.log.all[*done+i]; a.PC != want.PC || a.Addr != want.Addr {
				return false
			}
		}
		*done += len(again)
	}
	return true
}

// stepTo replays instructions without accesses until the one at pc comes.
func (l *Locator) stepTo(pc uint64) bool {
	for range firstInstructions {
		l.machine.Regs(&l.regs)
		if programCounter(&l.regs) == pc {
			return true
		}
		end := l.machine.Run(interp.Limit{Accesses: 1, Instructions: 1})
		if end.Cause != interp.InstructionLimit {
			return false
		}
	}
	return false
}

// stop is where the replay looks around: at a use or its reuse.
type stop struct {
	at, use int
	reuse   bool
}

func limitFor(accesses int) interp.Limit {
	return interp.Limit{Accesses: accesses, Instructions: firstInstructions + perAccess*accesses}
}

// readRegs has the machine's registers read from the held thread tid, and as many
// pages of its memory may be copied.
func (l *Locator) readRegs(pid, tid, pages int) error {
	if err := l.loadRegs(tid); err != nil {
		return err
	}
	l.memory.pid, l.memory.pages = pid, pages
	l.stack = unwind.Stack{}
	return nil
}

func touches(a interp.Access, addr, size uint64) bool {
	return a.Addr < addr+size && addr < a.Addr+uint64(a.Size)
}

// instructionsTouching counts the instructions before number inst that touch
// what is watched, which trap once each.
func instructionsTouching(accesses []interp.Access, inst int32, addr, size uint64) int {
	n, last := 0, int32(-1)
	for _, a := range accesses {
		if a.Inst < inst && a.Inst != last && touches(a, addr, size) {
			last = a.Inst
			n++
		}
	}
	return n
}

// operand decodes an instruction that cannot be interpreted: it need only be
// known what it touches, not what comes of it.
func (l *Locator) operand(end interp.End, pick func(n int) int) (Ahead, error) {
	if end.Cause != interp.Unsupported {
		return Ahead{}, &Declined{Reason: "no access before " + end.Cause.String()}
	}
	l.machine.Regs(&l.regs)
	next, err := l.decodeOperands(end.Op)
	if err != nil {
		return Ahead{}, err
	}
	a := l.operands[pick(len(l.operands))]
	if a.Approx {
		return Ahead{}, &Declined{Reason: "masked or gathered access", Op: end.Op}
	}
	use := Located{Addr: a.Addr, Size: a.Size, Store: a.Store, PC: programCounter(&l.regs), Next: next}
	word := use.Word(pick(use.Words()))
	ahead := Ahead{Followed: Followed{Use: use, Word: word, Stack: l.snapshot(), Share: 1}, Half: halfLine(word), End: ending(end)}
	for i := range ahead.Half[1:] {
		part := &ahead.Half[1+i]
		for _, a := range l.operands {
			if (Located{Addr: a.Addr, Size: a.Size}).touches(part.Word) {
				part.Before = 1
			}
		}
	}
	return ahead, nil
}
