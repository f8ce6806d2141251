package collector

import (
	"errors"
	"math"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// sample takes an access of the held thread: reads ahead for its reuse, and
// watches for it in the slot it has won if it does not come so soon.
func (s *Session) sample(t *thread) {
	t.turnEpoch(s.kernel)
	if s.source.Reports() != sampler.NoAccess {
		s.sampleReported(t)
		return
	}
	if s.budget.counters || t.shared.Holds%holdsPerGap == 0 {
		t.redraw(s)
	}
	g := t.process.group
	if g != nil {
		s.noteCPU(t.process, sampler.Monotonic())
		// Slots that have served give room for more words of this datum's line.
		s.drain()
		s.clearEnded()
	}
	if s.wantProbe(t) {
		s.startProbe(t)
		return
	}
	s.locate.StackTop = t.shared.StackTop
	if s.steps() {
		s.beginSteps(t)
		return
	}
	if g != nil {
		s.together = 0
		if others, ok := g.othersRunning(t, s.cpus, ptrace.Runs); ok {
			s.together = 1 + float64(others)
		}
	}
	start := sampler.Monotonic()
	ahead, err := s.locate.Ahead(t.process.via, t.tid, s.skips(), s.perHoldWanted(), s.burst, s.block(), s.rand.IntN)
	s.reading.add(sampler.Monotonic() - start)
	if err != nil {
		s.decline(err)
		return
	}
	if s.locate.InSyscall {
		s.inSyscall++
		if t.shared.Hold == uint32(ptrace.Interrupted) {
			s.loseHold("thread that blocks the hold signals in a system call")
			return
		}
	}
	s.tally(t, &ahead)
	s.beside.pending = s.beside.pending[:0]
	// That no other thread comes in between can't be read ahead.
	watch := t.shared.HoldSlot != sampler.NoSlot && (ahead.Reuse == 0 || g != nil && len(g.members) > 1) && s.mayWatch()
	for i := range ahead.Others {
		s.readOnly(t, &ahead.Others[i], s.observe(t, &ahead.Others[i]))
	}
	o := s.observe(t, &ahead.Followed)
	if g != nil && g.byCPU {
		o.stack = s.registers.stack(int(t.shared.HoldDrawn))
	}
	if watch && ahead.Reuse == 0 {
		s.stoodFor += max(o.times()-1, 0)
	}
	if s.halves && g == nil && ahead.Reuse > 0 {
		t.undraw()
	}
	if watch {
		s.watchFor(t, &ahead, o)
	} else {
		s.readOnly(t, &ahead.Followed, o)
	}
	if s.together > 1 {
		s.beside.held = t
	}
}

// decline counts a hold that could not be read ahead of.
func (s *Session) decline(err error) {
	var declined *ahead.Declined
	if errors.As(err, &declined) {
		s.loseHold(declined.Label())
	} else {
		s.loseHold("held thread not readable")
	}
}

// tally counts what was seen in a hold.
func (s *Session) tally(t *thread, found *ahead.Ahead) {
	s.ends[found.End]++
	s.readAhead += found.Accesses
	s.touched += found.Touches
	s.noteOverlap(found)
	s.holdsUsed++
	// Libraries of a program that just started are not known yet.
	note := func(f *ahead.Followed) {
		t.process.note(f.Use.PC)
		if f.Reuse > 0 {
			t.process.note(f.ReusePC)
		}
	}
	note(&found.Followed)
	for i := range found.Others {
		note(&found.Others[i])
	}
	t.process.refresh()
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
func (s *Session) perHoldWanted() int {
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
func (s *Session) skips() []int {
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
func (s *Session) observe(t *thread, f *ahead.Followed) *observation {
	if f.Reuse == 0 {
		s.reached.add(f.After)
	}
	o := &observation{
		process:  t.process,
		tid:      t.tid,
		op:       model.Load,
		pc:       f.Use.PC,
		next:     f.Use.Next,
		after:    f.After,
		soon:     f.Reuse,
		distinct: f.Distinct,
		addr:     max(f.Use.Addr, f.Word),
		stack:    s.chooseStack(t.process),
		instead:  f.Share * float64(s.perHoldWanted()),
		hold:     s.holdsUsed,
		blocks:   f.Use.Blocks(s.block()),
		place:    placeOf(t.process, f.Use.PC),
		overlap:  s.overlaps.latest,
		threads:  s.together,
	}
	if f.Use.Store {
		o.op = model.Store
	}
	s.unplaced = append(s.unplaced, o)
	if o.threads > 1 && o.stack == model.StackShared && o.soon > 0 {
		s.beside.pending = append(s.beside.pending, besideUse{o: o, at: f.At, reuse: o.soon, others: int(o.threads) - 1})
	}
	return o
}

// readOnly takes an access that is not watched, for what was read ahead of it:
// its reuse, or that there is none so soon.
func (s *Session) readOnly(t *thread, f *ahead.Followed, o *observation) {
	o.state = done
	o.end = float64(sampler.Monotonic())
	o.useStack = s.stacks.add(t, o.pc, f.Stack, o.addr)
	t.enterEpoch(o)
	if f.Reuse > 0 {
		o.kind, o.counted = model.Reuse, f.Reuse
		o.reuse = s.stacks.add(t, f.ReusePC, f.ReuseStack, 0)
		s.pairs++
	} else {
		o.kind, o.passed, o.counted = model.Censored, !s.steps(), f.After+1
	}
	s.seen = append(s.seen, o)
}

// watchFor watches for an access's reuse in the slot the thread has won.
func (s *Session) watchFor(t *thread, ahead *ahead.Ahead, o *observation) {
	g := t.process.group
	before, arm := ahead.Before, armLine((*sampler.Kernel).Arm)
	if s.lines && !s.halves {
		before, arm = ahead.LineBefore, s.cfg.armLine
	}
	if before > beforeMost {
		s.loseObserved(o, "word touched too often before the use")
		return
	}
	if s.halves {
		s.watchHalf(t, ahead, o)
		return
	}
	slot := int(t.shared.HoldSlot)
	if why := s.watchable(t); why != "" {
		s.notWatched(t, ahead, o, why)
		return
	}
	if failed := s.arm(t, slot, ahead.Word, sampler.SlotArmed, before, 2+before+s.trapsAgain(), arm); failed == sampler.ErrNoSlot.Error() && g != nil {
		s.notWatched(t, ahead, o, threadsRefused)
		return
	} else if failed != "" {
		s.loseObserved(o, failed)
		return
	}
	if g != nil {
		if why := s.watchOthers(t, slot, ahead.Word, o); why != "" {
			s.retire(t, slot)
			s.notWatched(t, ahead, o, why)
			return
		}
	}
	if ahead.Reuse > 0 {
		o.counted, o.after, o.checked = ahead.Reuse, 0, true
	}
	t.enterEpoch(o)
	o.use = ahead.Stack
	t.shared.Slots[slot].Stacks = sampler.TrapStacks
	o.word = ahead.Word
	t.slots[slot].obs = o
}

// notWatched takes an access that can't be watched in all threads for what was read ahead of it, like one
// that found no slot: that it can't does not depend on its datum, and were it lost, only those
// reused soon would be left.
func (s *Session) notWatched(t *thread, ahead *ahead.Ahead, o *observation, why string) {
	s.losses[model.NotWatched+why] += int64(max(math.Round(o.times()), 1))
	s.readOnly(t, &ahead.Followed, o)
}

// beforeMost bounds the traps a thread is charged with before the use.
const beforeMost = 32
