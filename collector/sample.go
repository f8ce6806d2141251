package collector

import (
	"errors"
	"math"
	"math/rand/v2"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/interleave"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// holds are what is done while a thread is held: reading ahead, choosing, arming; and what came of
// that. It belongs to the tracing thread.
type holds struct {
	account *account
	timing  *timing
	kept    *observations
	src     *sourceState
	watches *watches
	cfg     *Config
	kernel  *sampler.Kernel
	locate  *ahead.Locator
	rand    *rand.Rand
	drain   func() // reads what traps are waiting

	skip      []int         // of the accesses of a hold, see skips
	made      []record.Hold // of which accesses were read ahead
	overlaps  estimate.Overlaps
	reading   durations // of reading ahead
	reached   lengths   // of bursts without a reuse
	stepped   stepTotals
	inSyscall int     // holds that came when the thread had entered a system call
	stoodFor  float64 // of these, without a reuse so soon, where another of the hold is watched
	running   float64 // threads of the process that ran in the hold at work; 0: not known
	merges    interleave.Queue
	mergeOf   *thread // in the last hold, if others of its process ran then
	burst     int
	lines     bool // samples are of lines
}

// sample takes an access of the held thread: reads ahead for its reuse, and
// watches for it in the slot it has won if it does not come so soon.
func (s *Session) sample(t *thread) {
	t.turnEpoch(s.kernel)
	if s.src.source.Reports() != sampler.NoAccess {
		s.sampleReported(t)
		return
	}
	if s.ticks.budget.counters || t.shared.Holds%holdsPerGap == 0 {
		t.redraw(&s.ticks)
	}
	g := t.group
	if g != nil {
		t.process.NoteCPU(sampler.Monotonic())
		// Slots that have served give room for more words of this datum's line.
		s.drain()
		s.watches.clearEnded()
	}
	if s.wantProbe(t) {
		s.startProbe(t)
		return
	}
	s.locate.StackTop = t.shared.StackTop
	if s.holds.steps() {
		s.holds.beginSteps(t)
		return
	}
	if g != nil {
		s.holds.running = 0
		if others, ok := g.othersRunning(t, s.watches.cpus, ptrace.Runs); ok {
			s.holds.running = 1 + float64(others)
		}
	}
	start := sampler.Monotonic()
	found, err := s.locate.Ahead(t.process.Via, t.tid, s.holds.skips(), s.holds.perHoldWanted(), s.holds.burst, s.holds.block(), s.rand.IntN)
	s.holds.reading.add(sampler.Monotonic() - start)
	if err != nil {
		s.holds.decline(err)
		return
	}
	if s.locate.InSyscall {
		s.holds.inSyscall++
		if t.shared.Hold == uint32(ptrace.Interrupted) {
			s.holds.loseHold("thread that blocks the hold signals in a system call")
			return
		}
	}
	s.holds.tally(t, &found)
	s.holds.merges.Begin()
	// That no other thread comes in between can't be read ahead.
	watch := t.shared.HoldSlot != sampler.NoSlot && (found.Reuse == 0 || g != nil && len(g.members) > 1) && s.watches.mayWatch()
	for i := range found.Others {
		s.holds.readOnly(t, &found.Others[i], s.holds.observe(t, &found.Others[i]))
	}
	o := s.holds.observe(t, &found.Followed)
	if g != nil && g.byCPU {
		o.Stack = s.watches.registers.stack(int(t.shared.HoldDrawn))
	}
	if watch && found.Reuse == 0 {
		s.holds.stoodFor += max(o.Times()-1, 0)
	}
	if s.watches.halves && g == nil && found.Reuse > 0 {
		t.undraw()
	}
	if watch {
		s.holds.watchFor(t, &found, o)
	} else {
		s.holds.readOnly(t, &found.Followed, o)
	}
	if s.holds.running > 1 {
		s.holds.mergeOf = t
	}
}

// noteOverlap takes what was read ahead in a hold.
func (s *holds) noteOverlap(found *ahead.Ahead) {
	if s.src.source.Unit() != sampler.Nanoseconds || s.timing.clock.Counted != nil {
		s.overlaps.Latest = 0
		return
	}
	s.overlaps.Note(found.Use.Blocks(s.block()), found.Touches, found.Accesses)
}

// decline counts a hold that could not be read ahead of.
func (s *holds) decline(err error) {
	var declined *ahead.Declined
	if errors.As(err, &declined) {
		s.loseHold(declined.Label())
	} else {
		s.loseHold("held thread not readable")
	}
}

// tally counts what was seen in a hold.
func (s *holds) tally(t *thread, found *ahead.Ahead) {
	s.made = append(s.made, record.Hold{Process: t.process, TID: t.tid, At: t.since, Accesses: found.Accesses, Touches: found.Touches, End: found.End})
	s.noteOverlap(found)
	// Libraries of a program that just started are not known yet.
	note := func(f *ahead.Followed) {
		t.process.Note(f.Use.PC)
		if f.Reuse > 0 {
			t.process.Note(f.ReusePC)
		}
	}
	note(&found.Followed)
	for i := range found.Others {
		note(&found.Others[i])
	}
	t.process.Refresh()
}

// readAhead is how many accesses were, in all holds.
func (s *holds) readAhead() (n int) {
	for i := range s.made {
		n += s.made[i].Accesses
	}
	return n
}

// usesPerHold are so many because most of a hold's cost does not depend on
// them, and few enough that those of a hold have not all the same to tell: they
// lie within some hundred accesses.
const usesPerHold = 8

// candidatesPerUse: the more accesses are looked at, the more holds find one whose
// reuse is far, which tells of the caches beyond the first, but the further must be
// read ahead. Of xz 28, 48 and 90 % of the holds find one with 1, 2 and 8, and a
// budget pays for 67, 53 and 43 holds.
const candidatesPerUse = 2

// skipMost and skipWeighted bound how far on from the tick the accesses of a hold lie. A timer's
// tick finds slow code, whose reuses are far: of the first 255 accesses of pigz 38 % are not reused
// within 256, of 1023 27 %, as of all. Where samples are weighted by the rates of their code that
// must be the code which the tick finds.
const skipMost, skipWeighted = 1023, 255

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

// skips draws the accesses of a hold from which those to be observed are chosen.
// They are random ones of those after the tick: a timer stops a thread most often
// at slow accesses; some way on, the choice no longer depends on them.
func (s *holds) skips() []int {
	if s.skip == nil {
		n := s.perHoldWanted()
		if n > 1 {
			n *= candidatesPerUse
		}
		s.skip = make([]int, n)
	}
	most := skipMost
	if s.cfg.MeasureRate {
		most = skipWeighted
	}
	most = min(most, s.burst)
	for i := range s.skip {
		if most > 0 {
			s.skip[i] = s.rand.IntN(most)
		}
	}
	return s.skip
}

// observe makes an observation of a sampled access.
func (s *holds) observe(t *thread, f *ahead.Followed) *observation {
	if f.Reuse == 0 {
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
		Blocks:   f.Use.Blocks(s.block()),
		Code:     record.CodeAt(t.process, f.Use.PC),
		Overlap:  s.overlaps.Latest,
		Sharing:  record.Sharing{Threads: s.running},
	}, next: f.Use.Next}
	if f.Use.Store {
		o.Op = model.Store
	}
	s.kept.unplaced = append(s.kept.unplaced, o)
	if o.Threads > 1 && o.Stack == model.StackShared && o.Soon > 0 {
		s.merges.Add(&o.Observation, f.At, int(o.Threads)-1)
	}
	return o
}

// readOnly takes an access that is not watched, for what was read ahead of it:
// its reuse, or that there is none so soon.
func (s *holds) readOnly(t *thread, f *ahead.Followed, o *observation) {
	o.State = record.Done
	o.End = float64(sampler.Monotonic())
	o.UseStack = s.kept.stacks.Add(t, t.process, o.PC, f.Stack, o.Addr)
	t.enterEpoch(&o.Observation)
	if f.Reuse > 0 {
		o.Kind, o.Counted = model.Reuse, f.Reuse
		o.ReuseStack = s.kept.stacks.Add(t, t.process, f.ReusePC, f.ReuseStack, 0)
		s.kept.pairs++
	} else {
		o.Kind, o.NoSlot, o.Counted = model.Censored, !s.steps(), f.After+1
	}
	s.kept.seen = append(s.kept.seen, &o.Observation)
}

// watchFor watches for an access's reuse in the slot the thread has won.
func (s *holds) watchFor(t *thread, found *ahead.Ahead, o *observation) {
	g := t.group
	before, arm := found.Before, armLine((*sampler.Kernel).Arm)
	if s.lines && !s.watches.halves {
		before, arm = found.LineBefore, s.cfg.armLine
	}
	if before > beforeMost {
		s.account.loseObserved(&o.Observation, "word touched too often before the use")
		return
	}
	if s.watches.halves {
		s.watchHalf(t, found, o)
		return
	}
	slot := int(t.shared.HoldSlot)
	if why := s.watches.watchable(t); why != "" {
		s.notWatched(t, found, o, why)
		return
	}
	if failed := s.watches.arm(t, slot, found.Word, sampler.SlotArmed, before, 2+before, arm); failed == sampler.ErrNoSlot.Error() && g != nil {
		s.notWatched(t, found, o, threadsRefused)
		return
	} else if failed != "" {
		s.account.loseObserved(&o.Observation, failed)
		return
	}
	if g != nil {
		if why := s.watches.watchOthers(t, slot, found.Word, o); why != "" {
			s.watches.retire(t, slot)
			s.notWatched(t, found, o, why)
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

// notWatched takes an access that can't be watched in all threads for what was read ahead of it, like one
// that found no slot: that it can't does not depend on its datum, and were it lost, only those
// reused soon would be left.
func (s *holds) notWatched(t *thread, found *ahead.Ahead, o *observation, why string) {
	s.account.losses[model.NotWatched+why] += int64(max(math.Round(o.Times()), 1))
	s.readOnly(t, &found.Followed, o)
}

// beforeMost bounds the traps a thread is charged with before the use.
const beforeMost = 32
