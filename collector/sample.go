package collector

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/hotset"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// holds are what is done while a thread is held: reading ahead, choosing, arming; and what came of
// that. It belongs to the tracing thread.
type holds struct {
	account    *account
	timing     *timing
	kept       *observations
	neighbours *neighbours
	prober     *prober
	reports    *reports
	src        *sourceState
	stepper    *stepper
	ticks      *tickPace
	watches    *watches
	cfg        *Config
	kernel     *sampler.Kernel
	locate     *ahead.Locator
	rand       *rand.Rand
	drain      func() // reads what traps are waiting

	untold    untold
	laps      []*record.Lap
	made      []record.Hold // of which accesses were read ahead
	overlaps  estimate.Overlaps
	hot       hotset.Sets // where nothing is watched
	touched   []uint64    // blocks, in the last hold
	reading   durations   // of reading ahead
	stages    stages
	reached   lengths // of bursts without a reuse
	inSyscall int     // holds that came when the thread had entered a system call
	stoodFor  float64 // of these, without a reuse so soon, where another of the hold is watched
	burst     int
	farther   ahead.Farther
	heads     bool            // it is told what comes when in a hold
	pipeline  *pipeline.Model // nil where nothing is to be foretold
	lines     bool            // samples are of lines
}

// sample takes an access of the held thread: reads ahead for its reuse, and
// watches for it in the slot it has won if it does not come so soon.
func (s *holds) sample(t *thread) {
	t.turnEpoch(s.kernel)
	if s.src.source.Reports() != sampler.NoAccess {
		s.reports.sample(t)
		return
	}
	if s.ticks.counters() || t.shared.Holds%holdsPerPeriod == 0 {
		t.redraw(s.ticks)
	}
	g := t.group
	if g != nil {
		t.process.NoteCPU(sampler.Monotonic())
		// Slots that have served give room for more words of this datum's line.
		s.drain()
		s.watches.clearEnded()
	}
	if s.prober.wantProbe(t) {
		s.prober.startProbe(t)
		return
	}
	s.locate.StackTop = t.shared.StackTop
	if s.steps() {
		s.stepper.begin(t)
		return
	}
	if g != nil {
		s.neighbours.count(t)
	}
	start := sampler.Monotonic()
	s.stages.end(stageBefore, start)
	found, err := s.locate.Read(t.process.Via, t.tid, s.window(), s.rand.IntN)
	read := sampler.Monotonic()
	s.noteBurst(read - start)
	s.stages.read(s.locate.Spent(), read)
	if err != nil {
		s.decline(err)
		return
	}
	if s.locate.InSyscall {
		s.enteredSyscall()
		if t.shared.Hold == uint32(ptrace.Interrupted) {
			s.loseHold(model.SignalsInSyscall)
			return
		}
	}
	s.tally(t, &found)
	s.made[len(s.made)-1].Joined = s.neighbours.open(t, &found, len(s.made))
	s.choose(t, &found)
	s.stages.end(stageArming, sampler.Monotonic())
	s.neighbours.close(t)
}

// choose watches the open access that reading ahead has chosen, if the thread has won a slot. In a group one that is not
// open is watched, too: that no other thread comes in between can't be read ahead.
func (s *holds) choose(t *thread, found *ahead.Ahead) {
	s.untold = untold{thread: t, found: found, settled: found.Touches > 0}
	if s.wantsLap(t) && s.timeLap(t) {
		return
	}
	g := t.group
	others := g != nil && len(g.members) > 1
	if found.Open == 0 && others {
		found.Share = 1 / float64(s.perHoldWanted())
	}
	if s.watches.halves && g == nil && found.Open == 0 {
		t.undraw(0)
	}
	if t.shared.HoldSlot == sampler.NoSlot || found.Open == 0 && !others || !s.watches.mayWatch() {
		return
	}
	o := s.observe(t, &found.Followed)
	if g != nil && g.byCPU {
		o.Stack = s.watches.registers.stack(int(t.shared.HoldDrawn))
	}
	if s.untold.watched = o; found.Open == 0 {
		s.untold.checked = found.Share
	}
	s.watchFor(t, found, o)
}

// settle tells what part of its hold an access that may be watched stands for. That is done when its thread runs, or sooner
// where it is lost.
func (s *holds) settle() {
	u := &s.untold
	if u.settled {
		return
	}
	u.settled = true
	s.locate.Settle(u.found)
	if u.found.Touches > 0 {
		s.made[len(s.made)-1].Touches = u.found.Touches
		s.noteOverlap(u.found)
	}
	s.neighbours.classify(u.found.Classified)
	o := u.watched
	if o == nil || u.found.Touches == 0 {
		return
	}
	before := o.Times()
	o.After, o.Overlap = u.found.After, s.overlaps.Latest
	o.Stands = u.found.Share * float64(s.perHoldWanted())
	if o.Epoch != nil {
		o.Epoch.Accepted += o.Times() - before
	}
	s.reached.add(o.After)
}

// untold is a hold of which stacks and distances are still to be told, now that its thread runs.
type untold struct {
	thread  *thread
	found   *ahead.Ahead
	watched *observation // nil if nothing of it is
	lap     *observation // of which a lap is timed, nil: none is
	checked float64      // share of a reuse that is watched for other threads' sake
	settled bool         // found says what it stands for
}

// finish takes what is left of a hold, when the thread has been let go, and says which thread that was if it was
// read ahead of.
func (s *holds) finish() (told *thread) {
	if s.untold.thread == nil {
		return nil
	}
	s.settle()
	u := s.untold
	s.untold = untold{}
	if err := s.locate.Unchanged(); err != nil {
		s.discard(&u)
		s.decline(err)
		return nil
	}
	if u.found.Open > 0 && u.watched != nil {
		s.stoodFor += max(u.watched.Times()-1, 0)
	}
	t := u.thread
	open, others, err := s.locate.Tell(s.known(t), s.rand.IntN)
	if err != nil {
		s.decline(err)
		return nil
	}
	if s.heads {
		s.made[len(s.made)-1].Heads = s.locate.Heads()
	}
	if s.farther.Settling() {
		s.farther.Note(s.locate.Behind())
	}
	if s.watches.none != nil {
		s.touched = s.locate.Blocks(s.touched[:0])
		s.hot.Add(t.process, t.since, s.touched)
	}
	if u.lap != nil {
		s.tellLap(u.lap)
	}
	if o := u.watched; o != nil {
		s.neighbours.tellLine(&o.Observation, &u.found.Followed)
	}
	readOnly := func(f *ahead.Followed) {
		o := s.observe(t, f)
		s.readOnly(t, f, o)
	}
	for i := range others {
		others[i].Share *= 1 - u.checked
		readOnly(&others[i])
		if others[i].Reuse > 0 {
			t.process.Note(others[i].ReusePC)
		}
	}
	switch o := u.watched; {
	case u.found.Accesses == 0 && o == nil: // its operand was all there was
		readOnly(&u.found.Followed)
	case u.found.Open == 0 && u.found.Accesses > 0 && o != nil:
		o.Distinct = s.locate.WatchedDistinct()
	case u.found.Open == 0 || u.found.Accesses == 0:
	case o == nil:
		readOnly(&open)
	default:
		o.Distinct, o.Heads = open.Distinct, open.Heads
		if o.State == record.Armed && o.use == nil {
			o.use = open.Stack
		}
	}
	t.process.Refresh()
	if u.found.Accesses == 0 {
		return nil
	}
	return t
}

// known says which blocks holds of a thread's process have touched before; nil where that makes no difference.
func (s *holds) known(t *thread) func(block uint64) bool {
	if s.watches.none == nil {
		return nil
	}
	return func(block uint64) bool { return s.hot.Known(t.process, block) }
}

// findHot says in which hot sets the blocks of the observations are, by all holds so far. What is near hits whatever sets there are.
func (s *holds) findHot(seen []*record.Observation) {
	if s.watches.none == nil {
		return
	}
	levels := s.hot.Levels()
	for _, o := range seen {
		if o.Soon == 0 || o.Distinct > ahead.NearBlocks {
			o.Hot = levels.Of(o.Process, o.Addr/uint64(s.block()))
		}
	}
}

// discard takes a hold back of which nothing was told yet.
func (s *holds) discard(u *untold) {
	s.made = s.made[:len(s.made)-1]
	s.neighbours.forget()
	o := u.watched
	if o == nil {
		o = u.lap
	}
	if o == nil {
		return
	}
	o.State = record.Void
	if o.Epoch != nil {
		o.Epoch.Accepted -= o.Times()
	}
	for i := range u.thread.slots {
		if u.thread.slots[i].obs == o {
			s.watches.retire(u.thread, i)
		}
	}
}

// noteOverlap takes what was read ahead in a hold.
func (s *holds) noteOverlap(found *ahead.Ahead) {
	timed := s.src.source.Unit() == sampler.Nanoseconds && s.timing.clock.Counted == nil
	s.overlaps.Note(found.Use.Blocks(s.block()), found.Touches, found.Accesses, timed)
}

// decline counts a hold that could not be read ahead of.
func (s *holds) decline(err error) {
	var declined *ahead.Declined
	if errors.As(err, &declined) {
		s.loseHold(model.Reason(declined.Label()))
	} else {
		s.loseHold(model.HeldUnreadable)
	}
}

// tally counts what was seen in a hold.
func (s *holds) tally(t *thread, found *ahead.Ahead) {
	s.made = append(s.made, record.Hold{Process: t.process, TID: t.tid, At: t.since, Accesses: found.Accesses, Touches: found.Touches, Instructions: found.Instructions, End: found.End, ReadTime: found.ReadTime})
	if found.Touches > 0 || found.Accesses == 0 { // else it is not known yet
		s.noteOverlap(found)
	}
	t.process.Note(found.Use.PC) // libraries of a program that just started are not known yet
	t.process.Refresh()
}

// enteredSyscall counts a hold that came when the thread had entered a system call.
func (s *holds) enteredSyscall() { s.inSyscall++ }

// noteBurst is told how long a burst took.
func (s *holds) noteBurst(burst time.Duration) { s.reading.add(burst) }

// readAhead is how many accesses were, in all holds.
func (s *holds) readAhead() (n int) {
	for i := range s.made {
		n += s.made[i].Accesses
	}
	return n
}

// usesPerHold is the unit in which what a hold tells is counted: the number of octaves of stack
// distance that it typically has reuses in.
const usesPerHold = 8

// perHoldWanted is how many observations a hold should give.
func (s *holds) perHoldWanted() int {
	switch {
	case !s.readsLosers():
		return 1
	case s.steps():
		return usesPerBurst
	}
	return usesPerHold
}

// Where a hold reads far, an access is allowed so many instructions, on average, and a hold so many pages: two
// thirds of the fewest are more lines than a first cache has, and the most, of the longest bursts, are copies of 80 MiB.
const (
	farInstructions = 5
	farPages        = 1280
)

// window is how far is read ahead: of the first third it is known for twice as many accesses at least whether they
// are reused. Fewer would be what the tick fell into, time and again, where code that waits and code that does not
// take turns: TestTicksFindSlowCode.
func (s *holds) window() ahead.Window { return s.windowOf(s.farther.On()) }

// windowOf is that of holds that read farther, or do not.
func (s *holds) windowOf(farther bool) ahead.Window {
	first := 1 + s.burst/2
	w := ahead.Window{First: first, Most: first + s.burst, Block: s.block(), Heads: s.heads}
	if s.watches.none != nil || s.burst >= timedBurst {
		w.Instructions = farInstructions * w.Most
		w.Pages = max(farPages*s.burst/timedBurst, farPages)
	}
	if farther {
		w.Most = first + farBurst
		w.Instructions = farInstructions * w.Most // of as many pages: there are few lines
	}
	return w
}

// observe makes an observation of a sampled access.
func (s *holds) observe(t *thread, f *ahead.Followed) *observation {
	if f.Reuse == 0 && f.After > 0 { // else settle says how far
		s.reached.add(f.After)
	}
	o := &observation{Observation: record.Observation{
		Process:  t.process,
		TID:      t.tid,
		Op:       model.Load,
		PC:       f.Use.PC,
		After:    f.After,
		Soon:     f.Reuse,
		Distinct: f.Distinct,
		Addr:     max(f.Use.Addr, f.Word),
		Stack:    s.watches.chooseStack(t.group),
		Stands:   f.Share * float64(s.perHoldWanted()),
		Hold:     len(s.made),
		Code:     record.CodeAt(t.process, f.Use.PC),
		Overlap:  s.overlaps.Latest,
		OfHold:   record.OfHold{Heads: f.Heads},
		Sharing:  record.Sharing{Threads: s.neighbours.running},
	}, next: f.Use.Next}
	if f.Use.Store {
		o.Op = model.Store
	}
	s.kept.place(o)
	s.neighbours.use(&o.Observation, f.At)
	return o
}

// readOnly takes an access that is not watched, for what was read ahead of it:
// its reuse, or that there is none so soon.
func (s *holds) readOnly(t *thread, f *ahead.Followed, o *observation) {
	o.State = record.Done
	s.neighbours.tellLine(&o.Observation, f)
	o.End = float64(sampler.Monotonic())
	o.UseStack = s.kept.stacks.Add(t, t.process, o.PC, f.Stack, o.Addr)
	t.enterEpoch(&o.Observation)
	if f.Reuse > 0 {
		o.Kind, o.Counted = model.Reuse, f.Reuse
		o.ReuseStack = s.kept.stacks.Add(t, t.process, f.ReusePC, f.ReuseStack, 0)
		s.kept.paired()
	} else {
		o.Kind, o.NoSlot, o.Counted = model.Censored, !s.steps(), f.After+1
	}
	s.kept.keep(o)
}

// watchFor watches for an access's reuse in the slot the thread has won.
func (s *holds) watchFor(t *thread, found *ahead.Ahead, o *observation) {
	g := t.group
	before, arm := found.Before, armLine((*sampler.Kernel).Arm)
	if s.lines && !s.watches.halves {
		before, arm = found.LineBefore, s.cfg.armLine
	}
	if before > beforeMost {
		s.notWatched(o, model.TouchedOften)
		return
	}
	if s.watches.halves {
		s.watchHalf(t, found, o)
		return
	}
	slot := int(t.shared.HoldSlot)
	if why := s.watches.watchable(t); why != "" {
		s.notWatched(o, why)
		return
	}
	if failed := s.watches.arm(t, slot, found.Word, sampler.SlotArmed, before, 2+before, arm); failed == model.NoRegister && g != nil {
		s.notWatched(o, model.ThreadsRefused)
		return
	} else if failed != "" {
		s.settle()
		s.account.loseObserved(&o.Observation, failed)
		return
	}
	if g != nil {
		if why := s.watches.watchOthers(t, slot, found.Word, o); why != "" {
			s.watches.retire(t, slot)
			s.notWatched(o, why)
			return
		}
	}
	if found.Reuse > 0 {
		o.Counted, o.After, o.Checked = found.Reuse, 0, true
	}
	t.enterEpoch(&o.Observation)
	o.use = found.Stack
	t.shared.Slots[slot].Stacks = sampler.TrapStacks
	o.Word = found.Word
	t.slots[slot].obs = o
}

// notWatched takes an access that can't be watched for what is read ahead of it, like one
// that found no slot: were it lost, only those reused soon would be left.
func (s *holds) notWatched(o *observation, why model.Reason) {
	s.settle()
	s.account.count(model.NotWatched.Of(why), int64(max(math.Round(o.Times()), 1)))
	s.untold.watched, s.untold.checked = nil, 0
}

// beforeMost bounds the traps a thread is charged with before the use.
const beforeMost = 32
