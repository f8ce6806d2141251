package collector

import (
	"math"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// times is how many observations o counts for, of those that its hold should have
// given.
func (o *observation) times() float64 {
	if o.instead == 0 {
		return 1 // a hold of one
	}
	return o.instead
}

// touches is how many touches of blocks o counts for: an access to several blocks touches
// each, and one at random is observed. And where accesses come faster a moment of CPU time
// stands for more of them.
func (o *observation) touches() float64 {
	n := o.times() * float64(max(o.blocks, 1))
	if o.rate > 0 {
		n *= o.rate
	} else if o.even > 0 {
		n *= o.even
	}
	return n
}

type obsState uint8

const (
	armed obsState = iota
	used
	done // reuse seen, or censored
	void // lost
)

// observation is one use, from its arming on.
type observation struct {
	process *process
	tid     int
	op      model.Op
	blocks  int    // that the access overlaps, one of which is sampled; 0: taken as one
	pc      uint64 // of the accessing instruction
	next    uint64 // where it leads, as the trap will report
	epoch   *epoch
	instead float64   // observations that it stands for, of those its hold should have given
	hold    int       // its number, from 1; 0 without
	place   codePlace // of the access that was sampled; none if its source reports accesses
	rate    float64   // of accesses there, by the mean over time; 0: not known
	pace    float64   // of the thread at that time, likewise
	overlap float64   // blocks that an access of its hold overlaps, on average; 0: not known
	even    float64   // what its accesses count, so that all holds stand for as many touches; 0: 1

	state    obsState
	kind     model.Kind
	addr     uint64 // of the datum, within the word watched
	data     model.Data
	placeBy  int              // process.readings at which data is given up if no mapping has it
	block    int              // in stackTable: where data's block was allocated, plus one; 0: not known
	searched bool             // for data and block
	use      *unwind.Snapshot // from the hold, until the use was seen
	useStack int              // in stackTable
	reuse    int
	useClock uint64
	lag      uint64 // of the clock at the use
	traps    uint32
	spent    uint64  // ns in traps' programs until the use
	counted  int     // reuse time in accesses, if it was read ahead
	soon     int     // its thread's reuse time, if that was read ahead, whoever ended it; else 0
	checked  bool    // it was, and other threads are watched all the same
	passed   bool    // found no slot; counted is when it was left
	after    int     // accesses read ahead without a reuse
	lead     int     // of these, before the time was taken: it is not the use's
	distinct int     // blocks touched until then, or among after
	native   float64 // reuse time or age, ns, if it was timed
	below    bool    // sooner than the clock resolves
	smeared  float64 // native with the noise of two traps, even where it is below

	// Of a half line:
	half       bool
	pair       model.Kind // how its pair of words ended
	pairEnded  bool
	pairNative float64

	// What came after the reuse, if that was soon; and the reuse's access.
	again     *secondLook
	reuseBy   ahead.Accessing
	reuseSlot uint32
	latest    *latest
	first     *firstLook // what again has taken the place of; nil if it has not, or without a line

	// Where other threads are watched, too:
	stack     model.StackKind
	word      uint64
	endTID    int        // of another thread that ended it, else 0
	beside    *merged    // with what was read ahead of others; nil: not known
	threads   float64    // of its process that ran at the hold, its own among them; 0: not known
	wall, end float64    // from use to end, and the end, in ns of sampler.Monotonic
	age       float64    // the thread's own time when the end was learnt of, 0: unknown
	line      []lineWord // other words of the line that are watched
	lined     bool       // they are, as far as slots and registers were free: other threads may write them
	byWall    bool       // cut off at a time known by the wall clock alone
	latency   uint32     // cycles the use took, 0 if its source does not tell
	source    string     // where its data came from, "" likewise
}

// loseObserved counts an observation as lost, once, and all that it stands for.
func (s *Session) loseObserved(o *observation, reason string) {
	if o.state == void {
		return
	}
	o.state = void
	s.losses["lost: "+reason] += int64(max(math.Round(o.times()), 1))
	if o.epoch != nil { // it had been entered
		o.epoch.accepted -= o.times()
	}
}

// drain reads all traps that are waiting.
func (s *Session) drain() {
	for {
		ok, err := s.kernel.ReadTrap(&s.trap)
		if err != nil {
			s.fail(err)
		}
		if !ok {
			return
		}
		s.pair(&s.trap)
	}
}

// pair takes one trap to its observation.
func (s *Session) pair(trap *sampler.Trap) {
	t := s.byIndex[trap.Index]
	if t == nil || trap.Slot >= uint32(len(t.slots)) {
		s.lose("trap of a thread that is gone")
		return
	}
	if trap.Kind == sampler.TrapSample {
		s.report(t, trap)
		return
	}
	switch trap.Kind {
	case sampler.RequestGap:
		t.endFirst(s, time.Duration(trap.Time))
		return
	case sampler.RequestHold:
		s.interrupt(t)
		return
	}
	w := &t.slots[trap.Slot]
	o := w.obs
	blind := trap.Kind == sampler.TrapBlind || trap.Kind == sampler.TrapBlindLine
	others := trap.Kind == sampler.TrapOther || trap.Kind == sampler.TrapLine || blind
	if o == nil || w.seq != trap.Seq || !others && t.tid != int(trap.Tid) {
		s.lose("trap of a watchpoint that is gone")
		return
	}
	if trap.Kind == sampler.TrapReuse || trap.Kind == sampler.TrapOther || trap.Kind == sampler.TrapBlind {
		s.noteEnd(t, trap, o)
	}
	if trap.Kind == sampler.TrapReuse && w.single {
		w.silent = time.Duration(trap.Time)
	}
	switch {
	case trap.Kind == sampler.TrapUse && o.state == armed:
		if trap.Ip != o.next && trap.Ip != o.pc {
			// Another instruction came first: a signal handler, or code
			// that changed under us.
			s.loseObserved(o, "use by another instruction")
			return
		}
		if trap.ClockLag == sampler.ClockFailed {
			s.loseObserved(o, "clock not readable") // counted in BPF, too
			return
		}
		s.timed++
		s.noteResume(t, trap)
		o.state = used
		o.useClock = trap.Clock
		o.lag = trap.ClockLag
		o.traps = trap.Traps
		o.spent = trap.Spent
		if trap.Stack != nil {
			o.use = trap.Stack
		}
		o.useStack = s.stacks.add(t, o.pc, o.use, o.addr)
		o.use = nil
		s.seen = append(s.seen, o)
	case others && o.state == used:
		if age, ok := s.read(t, w).since(o.useClock, o.lag); ok {
			o.age = float64(age)
		}
		if blind {
			s.blindTrap(o, trap)
		} else {
			s.otherTrap(o, trap)
		}
	case (trap.Kind == sampler.TrapOther || trap.Kind == sampler.TrapBlind) && o.state == armed:
		s.loseObserved(o, "record of the use dropped")
	case others: // ended by now: two threads came at the same time
	case trap.Kind == sampler.TrapReuse && o.state == used && t.shared.Slots[trap.Slot].Blind&sampler.Blind != 0:
		s.loseObserved(o, "not watched in all threads")
	case trap.Kind == sampler.TrapReuse && o.state == used && trap.ClockLag != o.lag:
		s.loseObserved(o, "clock stood still between use and reuse")
	case trap.Kind == sampler.TrapReuse && o.state == used && trap.Clock < o.useClock:
		s.loseObserved(o, "clock ran backwards between use and reuse")
	case trap.Kind == sampler.TrapReuse && o.state == used:
		o.state = done
		o.kind = model.Reuse
		o.reuseBy, o.reuseSlot = s.accessing(o, trap), trap.Slot
		// The reuse may turn out to be the use, see settle: then its stack tells where the datum lies.
		o.reuse = s.stacks.addTrap(t, o.reuseBy, trap, o.addr)
		s.measure(o, trap)
		s.pairs++
		if o.half && trap.Slot < 2 {
			o.endPair(o.native)
		}
	case trap.Kind == sampler.TrapReuse && o.state == done && o.kind == model.Reuse:
		if o.half && trap.Slot < 2 && !o.pairEnded && trap.ClockLag == o.lag {
			native, _ := s.between(o, trap)
			o.endPair(max(native, o.native))
		}
		if trap.Again > 0 {
			s.lookAgain(o, t, trap)
		}
	case trap.Kind == sampler.TrapReuse && o.state == armed:
		s.loseObserved(o, "record of the use dropped")
	}
}

// accessing is the instruction that has trapped at o's datum.
func (s *Session) accessing(o *observation, trap *sampler.Trap) ahead.Accessing {
	return s.locate.Accessing(o.process.via, trap.Ip, trap.Stack)
}

// between is the time from the use to a later trap.
func (s *Session) between(o *observation, trap *sampler.Trap) (native float64, below bool) {
	return s.elapsed(s.clockBetween(o, trap), float64(trap.Traps-o.traps))
}

// clockBetween is without what the programs of other traps took.
func (s *Session) clockBetween(o *observation, trap *sampler.Trap) uint64 {
	diff := trap.Clock - o.useClock
	if s.clock.Counted == nil {
		diff -= min(trap.Spent-o.spent, diff)
	}
	return diff
}

// measure takes the profiler's own cost out of the time between two traps:
// the constant of a pair, as much again for each trap of another slot in
// between, and what the programs of these took.
func (s *Session) measure(o *observation, trap *sampler.Trap) {
	o.native, o.below = s.between(o, trap)
	o.smeared = s.smeared(s.clockBetween(o, trap), float64(trap.Traps-o.traps))
	o.wall, o.end = s.wallSince(trap), float64(trap.Time)
	s.over(o.stack, o.wall)
}

// outlived makes an observation that was cut off, as its thread or its memory is
// gone, one that is known to have no reuse. Of half a line it is not known of the other half.
func (s *Session) outlived(o *observation) {
	if o.state == done && o.kind == model.Censored && !o.half {
		o.kind = model.Cold
		s.never++
	}
}

// censor ends the observation at an age in the clock's unit.
func (o *observation) censor(age uint64, s *Session) {
	o.state = done
	o.kind = model.Censored
	o.native, _ = s.elapsed(age, 1)
}
