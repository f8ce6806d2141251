package collector

import (
	"math"
	"time"

	"github.com/rdx-profiler/rdx/collector/callstack"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// observations are what has been observed so far. It belongs to the tracing thread.
type observations struct {
	account *account

	seen     []*record.Observation
	stacks   callstack.Queue
	pairs    int
	timed    uint64         // uses whose time could be read
	unplaced []*observation // whose data's mapping is not known yet
}

// place has the data of an observation found, when its thread runs.
func (s *observations) place(o *observation) { s.unplaced = append(s.unplaced, o) }

// keep keeps what a use was, whatever becomes of it.
func (s *observations) keep(o *observation) { s.seen = append(s.seen, &o.Observation) }

// paired counts a reuse that was seen.
func (s *observations) paired() { s.pairs++ }

// timeRead counts a use of which the clock could be read.
func (s *observations) timeRead() { s.timed++ }

// observation is one use, from its arming on: what will be kept of it, and what is needed to
// tell its end.
type observation struct {
	record.Observation

	next     uint64           // where the instruction leads, as the trap will report
	use      *unwind.Snapshot // from the hold, until the use was seen
	useClock uint64
	lag      uint64 // of the clock at the use
	traps    uint32
	spent    uint64 // ns in traps' programs until the use

	dataBy   int  // Process.Readings at which its data is given up if no mapping has it
	searched bool // for data and block
	placed   bool // its data's mapping is known
}

// loseObserved counts an observation as lost, once, and all that it stands for.
func (s *account) loseObserved(o *record.Observation, why model.Reason) {
	if o.State == record.Void {
		return
	}
	o.State = record.Void
	s.losses[model.LostBecause.Of(why)] += int64(max(math.Round(o.Times()), 1))
	if o.Epoch != nil { // it had been entered
		o.Epoch.Accepted -= o.Times()
	}
}

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
		s.pair(&s.read)
	}
}

// pair takes one trap, or request, to whom it is for.
func (s *traps) pair(trap *sampler.Trap) {
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

// take takes a trap of a thread's to the observation that its slot serves.
func (s *watches) take(t *thread, trap *sampler.Trap) {
	w := &t.slots[trap.Slot]
	o := w.obs
	blind := trap.Kind == sampler.TrapBlind || trap.Kind == sampler.TrapBlindLine
	others := trap.Kind == sampler.TrapOther || trap.Kind == sampler.TrapLine || blind
	if o == nil || w.seq != trap.Seq || !others && t.tid != int(trap.Tid) {
		s.account.lose(model.TrapOfGoneWatch)
		return
	}
	if t.counter == nil && w.point != nil && !others && trap.ClockLag != sampler.ClockFailed {
		// The words of half a line have each a clock of its own, which is to begin at the same moment.
		trap.Clock = w.point.AgeAt(trap.Clock)
	}
	if trap.Kind == sampler.TrapReuse || trap.Kind == sampler.TrapOther || trap.Kind == sampler.TrapBlind {
		s.noteEnd(t, trap)
	}
	if trap.Kind == sampler.TrapReuse && w.single {
		w.silent = time.Duration(trap.Time)
	}
	switch {
	case trap.Kind == sampler.TrapUse && o.State == record.Armed:
		if o.next != 0 && trap.Ip != o.next && trap.Ip != o.PC {
			// Another instruction came first: a signal handler, or code
			// that changed under us.
			s.account.loseObserved(&o.Observation, model.UseElsewhere)
			return
		}
		if trap.ClockLag == sampler.ClockFailed {
			s.account.loseObserved(&o.Observation, model.ClockUnread) // counted in BPF, too
			return
		}
		s.kept.timeRead()
		s.timing.noteResume(t, trap)
		o.State = record.Used
		o.useClock = trap.Clock
		o.lag = trap.ClockLag
		o.traps = trap.Traps
		o.spent = trap.Spent
		if trap.Stack != nil {
			o.use = trap.Stack
		}
		o.UseStack = s.kept.stacks.Add(t, t.process, o.PC, o.use, o.Addr)
		o.use = nil
		s.kept.keep(o)
	case others && o.State == record.Used:
		if age, ok := s.timing.read(t, w).since(o.useClock, o.lag); ok {
			o.Age = float64(age)
		}
		if blind {
			s.blindTrap(o, trap)
		} else {
			s.otherTrap(o, trap)
		}
	case (trap.Kind == sampler.TrapOther || trap.Kind == sampler.TrapBlind) && o.State == record.Armed:
		s.account.loseObserved(&o.Observation, model.UseDropped)
	case others: // ended by now: two threads came at the same time
	case trap.Kind == sampler.TrapReuse && o.State == record.Used && o.Stack != model.StackPrivate && t.shared.Slots[trap.Slot].Blind&sampler.Blind != 0:
		s.account.loseObserved(&o.Observation, model.NotInAllThreads)
	case trap.Kind == sampler.TrapReuse && o.State == record.Used && trap.ClockLag != o.lag:
		s.account.loseObserved(&o.Observation, model.ClockStood)
	case trap.Kind == sampler.TrapReuse && o.State == record.Used && trap.Clock < o.useClock:
		s.account.loseObserved(&o.Observation, model.ClockBackwards)
	case trap.Kind == sampler.TrapReuse && o.State == record.Used:
		o.State = record.Done
		o.Kind = model.Reuse
		o.Blind = t.shared.Slots[trap.Slot].Blind&sampler.Blind != 0
		o.ReuseStack = s.kept.stacks.AddTrap(t, t.process, s.accessing(o, trap), trap.Stack)
		s.measure(o, trap)
		s.kept.paired()
		if o.Half && trap.Slot < 2 {
			o.EndPair(o.Native)
		}
	case trap.Kind == sampler.TrapReuse && o.State == record.Done && o.Kind == model.Reuse:
		if o.Half && trap.Slot < 2 && !o.PairEnded && trap.ClockLag == o.lag {
			native, _ := s.timing.between(o, trap)
			o.EndPair(max(native, o.Native))
		}
	case trap.Kind == sampler.TrapReuse && o.State == record.Armed:
		s.account.loseObserved(&o.Observation, model.UseDropped)
	}
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

// outlived makes an observation that was cut off, as its thread or its memory is
// gone, one that is known to have no reuse. Of half a line it is not known of the other half.
func (s *account) outlived(o *record.Observation) {
	if o.State == record.Done && o.Kind == model.Censored && !o.Half {
		o.Kind = model.Cold
		s.outlivedN++
	}
}

// censor ends the observation at an age in the clock's unit.
func (o *observation) censor(age uint64, s *timing) {
	o.State = record.Done
	o.Kind = model.Censored
	o.Native, _ = s.elapsed(age, 1)
}
