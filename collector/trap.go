package collector

import (
	"time"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// traps are what the kernel's programs tell, and to whom. It belongs to the tracing thread.
type traps struct {
	account *account
	handler *handler
	reports *reports
	kernel  *sampler.Kernel
	targets *targets
	ticks   *tickPace
	watches *watches

	read sampler.Trap // last
}

// drain reads all traps that are waiting.
func (s *traps) drain() {
	for {
		ok, err := s.kernel.ReadTrap(&s.read)
		if err != nil {
			s.account.fail(err)
		}
		if !ok {
			return
		}
		s.deliver(&s.read)
	}
}

// deliver takes one trap, or request, to whom it is for.
func (s *traps) deliver(trap *sampler.Trap) {
	t := s.targets.byIndex[trap.Index]
	if t == nil || trap.Slot >= uint32(len(t.slots)) {
		s.account.lose(model.TrapOfGoneThread)
		return
	}
	switch trap.Kind {
	case sampler.TrapSample:
		s.reports.take(t, trap)
	case sampler.RequestPeriod:
		t.endFirst(s.ticks, time.Duration(trap.Time))
	case sampler.RequestHold:
		s.handler.interrupt(t)
	default:
		s.watches.take(t, trap)
	}
}

// take takes a trap at a thread's datum to the observation that its slot serves.
func (s *watches) take(t *thread, trap *sampler.Trap) {
	w := &t.slots[trap.Slot]
	o := w.obs
	if o == nil || w.seq != trap.Seq || !byOthers(trap) && t.tid != int(trap.Tid) {
		s.account.lose(model.TrapOfGoneWatch)
		return
	}
	s.readClock(t, w, trap)
	if endsWatch(trap) {
		s.noteEnd(t, trap)
	}
	switch trap.Kind {
	case sampler.TrapUse:
		s.takeUse(t, o, trap)
	case sampler.TrapReuse:
		if w.single {
			w.silent = time.Duration(trap.Time)
		}
		s.takeReuse(t, o, trap)
	case sampler.TrapOther, sampler.TrapLine, sampler.TrapBlind, sampler.TrapBlindLine:
		s.takeOthers(t, w, o, trap)
	}
}

// byOthers says whether a trap tells what other threads did, or what of that is not seen any more.
func byOthers(trap *sampler.Trap) bool {
	return trap.Kind == sampler.TrapOther || trap.Kind == sampler.TrapLine || isBlind(trap)
}

// isBlind says whether a trap is a CPU's register's last.
func isBlind(trap *sampler.Trap) bool {
	return trap.Kind == sampler.TrapBlind || trap.Kind == sampler.TrapBlindLine
}

// endsWatch says whether nothing more is to be seen at the datum itself.
func endsWatch(trap *sampler.Trap) bool {
	return trap.Kind == sampler.TrapReuse || trap.Kind == sampler.TrapOther || trap.Kind == sampler.TrapBlind
}

// readClock makes the clock of a trap the one that its whole observation has: the words of half a
// line have each a clock of its own, which is to begin at the same moment.
func (s *watches) readClock(t *thread, w *watch, trap *sampler.Trap) {
	if t.counter == nil && w.point != nil && !byOthers(trap) && trap.ClockLag != sampler.ClockFailed {
		trap.Clock = w.point.AgeAt(trap.Clock)
	}
}

// takeUse begins what an observation measures, if it is the use that was read ahead.
func (s *watches) takeUse(t *thread, o *observation, trap *sampler.Trap) {
	switch {
	case o.State != record.Armed:
		return
	case o.next != 0 && trap.Ip != o.next && trap.Ip != o.PC:
		// Another instruction came first: a signal handler, or code
		// that changed under us.
		s.account.loseObserved(&o.Observation, model.UseElsewhere)
		return
	case trap.ClockLag == sampler.ClockFailed:
		s.account.loseObserved(&o.Observation, model.ClockUnread) // counted in BPF, too
		return
	}
	s.kept.timeRead()
	s.timing.noteResume(t, trap)
	o.begin(trap)
	if o.Lap != nil {
		return
	}
	o.UseStack = s.kept.stacks.Add(t, t.process, o.PC, o.use, o.Addr)
	o.use = nil
	s.kept.keep(o)
}

// begin notes where the clock and its disturbances stood at the use.
func (o *observation) begin(trap *sampler.Trap) {
	o.State = record.Used
	o.useClock = trap.Clock
	o.lag = trap.ClockLag
	o.traps = trap.Traps
	o.spent = trap.Spent
	if trap.Stack != nil {
		o.use = trap.Stack
	}
}

// takeReuse ends an observation, or the watch of its line's other half.
func (s *watches) takeReuse(t *thread, o *observation, trap *sampler.Trap) {
	switch o.State {
	case record.Armed:
		s.account.loseObserved(&o.Observation, model.UseDropped)
	case record.Used:
		s.endByReuse(t, o, trap)
	case record.Done:
		s.endPairLater(o, trap)
	}
}

// endByReuse ends an observation by the reuse, unless what was measured can't be relied on.
func (s *watches) endByReuse(t *thread, o *observation, trap *sampler.Trap) {
	blind := t.shared.Slots[trap.Slot].Blind&sampler.Blind != 0
	switch {
	case o.Stack != model.StackPrivate && blind:
		s.account.loseObserved(&o.Observation, model.NotInAllThreads)
		return
	case trap.ClockLag != o.lag:
		s.account.loseObserved(&o.Observation, model.ClockStood)
		return
	case trap.Clock < o.useClock:
		s.account.loseObserved(&o.Observation, model.ClockBackwards)
		return
	}
	if o.Lap != nil {
		s.endLap(o, trap)
		return
	}
	o.State = record.Done
	o.Kind = model.Reuse
	o.Blind = blind
	o.ReuseStack = s.kept.stacks.AddTrap(t, t.process, s.accessing(o, trap), trap.Stack)
	s.measure(o, trap)
	s.kept.paired()
	if o.Half && trap.Slot < 2 {
		o.EndPair(o.Native)
	}
}

// endPairLater notes, of half a line that was reused elsewhere before, when the pair of words with
// the use was.
func (s *watches) endPairLater(o *observation, trap *sampler.Trap) {
	if o.Kind != model.Reuse || !o.Half || trap.Slot >= 2 || o.PairEnded || trap.ClockLag != o.lag {
		return
	}
	native, _ := s.timing.between(o, trap)
	o.EndPair(max(native, o.Native))
}

// accessing is the instruction that has trapped at o's datum.
func (s *watches) accessing(o *observation, trap *sampler.Trap) ahead.Accessing {
	return s.locate.Accessing(o.Process.Via, trap.Ip, trap.Stack)
}

// measure takes the profiler's own cost out of the time between two traps:
// the constant of a pair, as much again for each trap of another slot in
// between, and what the programs of these took.
func (s *watches) measure(o *observation, trap *sampler.Trap) {
	o.Native, o.BelowResolution = s.timing.between(o, trap)
	o.Smeared = s.timing.smeared(s.timing.clockBetween(o, trap), float64(trap.Traps-o.traps))
	o.Wall, o.End = s.timing.wallSince(trap), float64(trap.Time)
	s.over(o.Stack, o.Wall)
}

// over notes how long an observation took, Infinite if it was pruned.
func (s *watches) over(stack model.StackKind, wall float64) {
	h := s.lasted[stack]
	if h == nil {
		h = model.NewHist(model.LogBins(10))
		s.lasted[stack] = h
	}
	if wall == 0 {
		h.AddKind(model.Pruned, 0, 1)
		return
	}
	h.Add(uint64(wall), 1)
}

// noteEnd has what o's slot watches freed by clearEnded, where that is worth it.
func (s *watches) noteEnd(t *thread, trap *sampler.Trap) {
	switch e := (ended{t, int(trap.Slot), trap.Seq}); {
	case t.group != nil:
		s.ended = append(s.ended, e)
	case s.copyCost.perByte > 0 || s.moves:
		if s.halves {
			e.slot, e.seq = 0, t.slots[0].seq // which the others go with
		}
		s.ended = append(s.ended, e)
	}
}
