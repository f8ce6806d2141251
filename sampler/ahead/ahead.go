package ahead

import (
	"errors"
	"slices"
	"time"

	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/clock"
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
	started  registers       // where the last Read began
	vector   vectorRegisters // likewise, once they were needed
	// tid is whose registers are read, loader loadVector, made once.
	tid          int
	vectorRead   bool
	loader       func(*vectorRegisters) error
	watched      use         // that it chose
	opens        openTouches // so far
	laps         lastTouches // of Lap
	first        int         // accesses to be classified, of the last Read
	settled      bool        // they are
	headed       bool        // heads are told of
	heads        *Heads      // of the last Tell
	uses         []use
	replayPoints []replayPoint
	stack        unwind.Stack // as read while the thread is held, empty before
	sights       sights       // for Seen
	firstCache   int64        // bytes, likewise; 0: not known
	foretelling
	spare  []byte // for the next hold's
	spent  Spent
	readOf map[int]time.Duration // when a process was last read ahead of, by clock.Monotonic
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
	l := &Locator{
		cpu:     newCPU(),
		machine: newMachine(),
		spare:   make([]byte, spareStack),
		readOf:  make(map[int]time.Duration),
	}
	l.loader = l.loadVector
	return l
}

// Reserve makes room for windows like this, and touches it: the first thread to be held need not wait for the kernel to
// find memory, which took longer than all else.
func (l *Locator) Reserve(w Window) {
	l.log.reserve(w.Most)
	l.opens.reserve(w.First)
	l.laps.reserve(w.Most / lapWords)
	l.machine.Reserve(max(w.Pages, samplePages) + interp.MaxBatch)
}

// room is a slice that has a capacity, touched.
func room[T any](s []T, n int) []T {
	if cap(s) < n {
		s = make([]T, n)
		clear(s)
	}
	return s[:0]
}

// Spent is where the time of a Read went.
type Spent struct {
	Registers, Prefetch, Interpreting, Matching, Choosing time.Duration
	Pages                                                 time.Duration // reading them one by one, part of Interpreting
	PageCalls                                             int           // of these
	Prefetched                                            int           // pages that were read in one call at the beginning
	Instructions                                          int
}

// Spent is that of the last Read.
func (l *Locator) Spent() Spent { return l.spent }

// Prepare begins to find out what of a process can be read at no risk, so that
// it is known when a thread is held.
func (l *Locator) Prepare(pid int) {
	l.memory.userfault.of(pid)
	l.memory.userfault.scan.userfault()
}

// Await prepares, and waits until it is known, at most so long. It is for one that is not traced yet.
func (l *Locator) Await(pid int, most time.Duration) {
	l.Prepare(pid)
	select {
	case <-l.memory.userfault.scan.known:
	case <-time.After(most):
	}
}

// Tend is to be called when the thread that was looked at runs again, for what takes too long while it is held.
func (l *Locator) Tend() {
	l.machine.Drop()
	if l.spare == nil {
		l.spare = make([]byte, spareStack)
	}
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
func (l *Locator) Forget(pid int) {
	l.memory.userfault.forget(pid)
	l.memory.vvars.forget(pid)
	l.machine.ForgetOwner(pid)
	delete(l.readOf, pid)
}

// Window says how far is read ahead of a held thread: all touches of blocks by the First accesses
// are classified, as reused or still open when reading ends, which is after Most accesses at the latest.
type Window struct {
	First, Most int
	Block       int // bytes that are one datum, aligned
	// Instructions that it may take, and Pages that it may copy, 0 for as many as usual.
	Instructions, Pages int
	// Heads are told of, too.
	Heads bool
}

// Read reads ahead of the held thread tid of process pid, and chooses one of the touches that are open, each
// as likely: that to be watched. Where none is open it is any. The thread is held meanwhile, so nothing is done here
// that can be done when it runs again, by Tell. pick(n) chooses one of n. The error is a
// *Declined: the sample is lost.
func (l *Locator) Read(pid, tid int, w Window, pick func(n int) int) (Ahead, error) {
	l.spent = Spent{}
	began := clock.Monotonic()
	if err := l.readRegs(pid, tid, max(w.Pages, samplePages)); err != nil {
		return Ahead{}, err
	}
	l.started = l.regs
	registers := clock.Monotonic()
	l.spent.Registers = registers - began
	l.machine.Start(&l.regs, &l.memory)
	l.machine.SetTime(processorTime())
	l.prefetch(registers)
	l.log.reset(w.Block)
	l.opens.reset()
	l.first, l.settled, l.watched, l.headed = w.First, false, use{}, w.Heads
	end, instructions, open := l.readOn(w)
	read := clock.Monotonic()
	defer func() { l.spent.Choosing = clock.Monotonic() - read }()
	if len(l.log.all) == 0 {
		return l.operand(end, pick)
	}
	ahead := Ahead{Accesses: len(l.log.all), Instructions: instructions, End: ending(end), ReadTime: l.machine.Time().Read}
	var u use
	if open {
		u = l.opens.choose(pick).use(&l.log, pick)
		ahead.Open = 1 // or more: see Settle
	} else {
		l.settle()
		u = l.log.choose(pick)
	}
	l.watched = u
	ahead.Followed = l.log.followed(&u)
	if ahead.After = 0; l.settled {
		l.Settle(&ahead)
	}
	if open {
		ahead.Use.Next = l.reportedAt(ahead.Use.PC)
	} else {
		ahead.End = interp.AccessesDone.String() // whatever it was, nothing was in the way
	}
	_, sp := unwindRegs(&l.started)
	l.copyStack(sp) // for Tell: it will be another one
	l.countBefore(&ahead, u)
	return ahead, nil
}

// prefetchWithin is how long ago a process must have been read ahead of for the pages that were read then to be read again
// before it is known that the thread comes to them: what it has just used is still in memory, so that nobody waits for a disk.
const prefetchWithin = 5 * time.Second

// prefetch reads in one call what the bursts of late have read of this process, and the stack.
func (l *Locator) prefetch(now time.Duration) {
	pid := l.memory.pid
	if now-l.readOf[pid] > prefetchWithin {
		l.machine.ForgetOwner(pid)
	}
	l.readOf[pid] = now
	_, sp := unwindRegs(&l.regs)
	base, size := l.stackToCopy(sp)
	l.memory.stackAt, l.memory.stack, l.memory.stackRead = base, l.spareFor(size), 0
	l.spent.Prefetched = l.machine.Prefetch(pid)
	l.memory.stack = nil
	if n := l.memory.stackRead; n > 0 {
		l.stack = unwind.Stack{Base: base, Data: l.spare[:n:n]}
		l.spare = nil
	}
	l.spent.Prefetch = clock.Monotonic() - now
}

// readAtOnce is how many accesses are read before it is looked whether it is enough.
const readAtOnce = 256

// settle classifies what the last Read has read.
func (l *Locator) settle() {
	if l.settled {
		return
	}
	l.settled = true
	l.log.index()
	l.log.close(l.first)
	if u := &l.watched; u.touch < 0 {
		from, _ := l.log.blocks(l.log.all[u.at])
		u.touch = int(l.log.first[u.at]) + int(u.block-from)
	}
}

// Unchanged is to be called when the thread runs on: code that the last Read had from earlier ones, to hold it no longer than need
// be, was still so. The error is a *Declined: what was read is not to be used.
func (l *Locator) Unchanged() error {
	if l.machine.Unchanged() {
		return nil
	}
	return errKept
}

var errKept = &Declined{Reason: "code had changed since it was last read"}

// Settle says in what the last Read has returned how many touches are classified and open, and so what part the watched one
// stands for: what need not be known while the thread is held.
func (l *Locator) Settle(found *Ahead) {
	if len(l.log.all) == 0 {
		return // its operand was all there was
	}
	l.settle()
	found.Touches, found.Classified, found.Open = len(l.log.touches), l.log.classified, len(l.log.open)
	found.Share = 1
	if found.Open > 0 {
		found.Share = float64(found.Open) / float64(found.Classified)
		found.At, found.After = l.watched.touch, len(l.log.touches)-1-l.watched.touch
	}
}

// readOn reads until all that is classified is reused, or the window's end, and says whether something is open there.
func (l *Locator) readOn(w Window) (end interp.End, done int, open bool) {
	l.sights.instructions = 0
	most := max(w.Instructions, aheadInstructions)
	from := clock.Monotonic()
	l.machine.Append(l.log.all)
	defer l.machine.EndAppend()
	defer func() { l.spent.Pages, l.spent.PageCalls = l.memory.spent, l.memory.calls }()
	for len(l.log.all) < w.Most {
		n := min(max(readAtOnce, w.First-len(l.log.all)), w.Most-len(l.log.all))
		end = l.machine.Run(interp.Limit{Accesses: n, Instructions: min(firstInstructions+perAccess*n, most-done)})
		interpreted := clock.Monotonic()
		done += end.Instructions
		l.sights.instructions = done
		l.log.all = l.machine.Accesses()
		ended := end.Cause != interp.AccessesDone
		enough := false
		if len(l.log.all) >= w.First || ended {
			open = l.anyOpen()
			enough = !open
		}
		matched := clock.Monotonic()
		l.spent.Interpreting += interpreted - from
		l.spent.Matching += matched - interpreted
		l.spent.Instructions, from = done, matched
		if ended || enough {
			break
		}
	}
	return end, done, open
}

// anyOpen says whether of the touches by the first accesses one has not been reused so far.
func (l *Locator) anyOpen() bool {
	if len(l.log.all) == 0 {
		return false
	}
	if !l.opens.begun {
		l.opens.begin(&l.log, l.first)
	}
	return l.opens.any(&l.log)
}

// countBefore says how many traps come before the use of what may be watched.
func (l *Locator) countBefore(ahead *Ahead, u use) {
	line := ahead.Word &^ (sampler.LineSize - 1)
	before := l.log.touching(u.at, line, sampler.LineSize)
	inst := l.log.all[u.at].Inst
	ahead.Before = instructionsTouching(before, inst, ahead.Word, sampler.WordSize)
	ahead.LineBefore = instructionsTouching(before, inst, line, sampler.LineSize)
	ahead.Half = halfLine(ahead.Word)
	ahead.Half[0].Before = ahead.Before
	// The use's own instruction touches other words, too, if it is wider than one.
	through := l.log.all
	for i := range through[u.at:] {
		if through[int(u.at)+i].Inst > inst {
			through = through[:int(u.at)+i]
			break
		}
	}
	for i := range ahead.Half[1:] {
		part := &ahead.Half[1+i]
		part.Before = instructionsTouching(through, inst+1, part.Word, sampler.WordSize)
	}
}

// Tell says more of what the last Read has read, when the thread runs on: the call stack of the
// access that it chose, which stands for all open ones, and of those whose reuse was read one for each octave of
// stack distance, nearer ones together, each at random for all of its octave. By their shares they add up to all that
// was classified. Where known tells open ones by their block, one more stands for those of which it says otherwise than of the
// chosen one's; nil: for none. The error is a *Declined.
func (l *Locator) Tell(known func(block uint64) bool, pick func(n int) int) (watched Followed, others []Followed, err error) {
	l.heads = nil
	if len(l.log.all) == 0 {
		return Followed{}, nil, nil // its operand was all there was
	}
	l.settle()
	if l.headed {
		l.heads = l.log.tellHeads()
	}
	l.uses = l.uses[:0]
	if len(l.log.open) > 0 {
		l.uses = l.log.openUses(append(l.uses, l.watched), known, pick)
	}
	l.uses = l.log.byDistance(l.uses, pick)
	followed := make([]Followed, len(l.uses))
	for i := range l.uses {
		followed[i] = l.log.followed(&l.uses[i])
	}
	l.regs = l.started
	l.machine.Rewind(&l.regs)
	if err := l.replay(followed); err != nil {
		return Followed{}, nil, err
	}
	if len(l.log.open) == 0 {
		return Followed{}, followed, nil
	}
	return followed[0], followed[1:], nil
}

// Heads say what came when in what the last Tell has told of; nil where Window.Heads did not ask for it.
func (l *Locator) Heads() *Heads { return l.heads }

// WatchedDistinct is how many different blocks are touched from the access that the last Read has chosen until its reuse, of
// one whose reuse was read: what takes too long while the thread is held.
func (l *Locator) WatchedDistinct() int { return l.log.distinct(l.watched.touch, l.watched.again) }

// Touched appends all touches of blocks that the last call of Read has read ahead.
func (l *Locator) Touched(to []Touch) []Touch { return l.log.touched(to) }

// Blocks appends each block that the last call of Read has read ahead accesses to, once.
func (l *Locator) Blocks(to []uint64) []uint64 {
	for i := range l.log.touches {
		if t := &l.log.touches[i]; t.prev < 0 {
			to = append(to, t.block)
		}
	}
	return to
}

// NextInLine is after how many touches behind one, an index into Touched, its cache line is touched again, 0 if it is not
// as far as the last call of Read has read ahead.
func (l *Locator) NextInLine(touch int) int { return l.log.nextIn(touch, sampler.LineSize) }

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
	l.replayPoints = l.replayPoints[:0]
	for i, u := range l.uses {
		l.replayPoints = append(l.replayPoints, replayPoint{u.at, i, false})
		if u.reuse >= 0 {
			l.replayPoints = append(l.replayPoints, replayPoint{u.reuse, i, true})
		}
	}
	slices.SortFunc(l.replayPoints, func(a, b replayPoint) int { return a.at - b.at })
	done, first := 0, -1
	var stack *unwind.Snapshot
	for _, s := range l.replayPoints {
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
		if s.reuse {
			to[s.use].ReuseStack = stack
		} else {
			to[s.use].Stack = stack
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

// replayPoint is where the replay looks around: at a use or its reuse.
type replayPoint struct {
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
	l.memory.begin(pid, pages)
	l.stack = unwind.Stack{}
	l.tid, l.vectorRead, l.regs.LoadVector = tid, false, l.loader
	return nil
}

// loadVector reads the vector registers once, when they are first needed: Tell needs them again when the thread runs.
func (l *Locator) loadVector(v *vectorRegisters) error {
	if !l.vectorRead {
		if err := l.readVectorOf(l.tid, &l.vector); err != nil {
			return err
		}
		l.vectorRead = true
	}
	*v = l.vector
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
		return Ahead{}, &Declined{Reason: NoAccessBefore + end.Cause.String()}
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
	ahead := Ahead{Followed: Followed{Use: use, Word: word, Stack: l.snapshot(), Share: 1}, Half: halfLine(word), Classified: 1, Open: 1, End: ending(end)}
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
