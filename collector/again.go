package collector

import (
	"fmt"
	"math"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// After a hold the program runs slowly for a while: its caches are cold. By the
// clock of CPU time a reuse that comes soon is too late then, by a factor of
// two or more on virtual machines. But the access after a random access to the
// same datum is as random: each access has one before it, so that each is as
// likely to be it (the map from an access to the datum's next keeps the
// uniform law). So a reuse that comes soon is watched further, and the time of a
// later interval of the datum, in caches that are warm again, is taken for the pair.
//
// Which of the two intervals is taken must not depend on how long they are, or
// short ones would win. So the later one counts only if both, and all between, are
// in the same bounds; else the first does. As many pairs step
// from inside to outside of these bounds as the other way, and the shares of
// what lies inside and outside remain what they are.
//
// Of half a line it is the next interval, and the bounds are the clock's resolution and
// againWithin. Of a word it is the furtherLooks-th, as a program that touches a
// thousand lines in between is slow for several rounds: those count that are
// longer than is read ahead, for so long the first one is known to be; what is shorter is
// passed over (among the longer ones alone each also has one before it). And all
// together must end within againWithin. Who else is to touch a datum that is watched in all threads
// ends the looking: then, too, the first interval counts.

const (
	// againWithin is where cold caches no longer matter: a random walk over 8 MB loses
	// 0.6 ms after a hold, which is a few percent of this. With 4 ms, those it pushed
	// beyond the bound were 20 % of its reuses instead of 14.
	againWithin = 16 * time.Millisecond
	// furtherLooks: a loop over 200 kB took 22, 13, 11, 9, 7 and 6 µs for its
	// rounds of 5 µs after a hold, half of pigz's reuses of 1 to 100 µs less than 73, 21, 16, 8 and 12.
	furtherLooks = 4
	// furtherTraps bounds what that costs the thread: a third of pigz's intervals are short.
	furtherTraps = 12
)

// looksAgain says whether soon reuses are watched further: by a counter of
// accesses, cold caches make no difference.
func (s *Session) looksAgain() bool {
	return s.clock.Counted == nil && s.source.Reports() == sampler.NoAccess
}

// trapsAgain is how many more traps a watchpoint is armed for.
func (s *Session) trapsAgain() int {
	switch {
	case !s.looksAgain():
		return 0
	case s.halves:
		return 1
	}
	return furtherTraps
}

// setAgain tells the programs which intervals count, by the latest constant of two traps.
func (s *Session) setAgain() error {
	if !s.looksAgain() {
		return nil
	}
	skip := max(s.calibration.P50, 0) + s.shortest()
	return s.kernel.SetAgain(againWithin, uint64(skip), furtherLooks, furtherTraps)
}

// secondLook is the later interval that may be taken for an observation's.
type secondLook struct {
	native    float64 // ns
	below     bool
	smeared   float64
	wall, end float64         // as observation's
	by        ahead.Accessing // which it begins with
	use       int             // its stack, in stackTable
	reuse     int             // likewise, of its end

	pairEnded  bool // of a half line: its pair of words was touched
	pairNative float64
}

// secondLooks are for the user.
type secondLooks struct {
	taken, outside int
	longer         lengths // first interval by the later one, in thousandths, of those taken
}

// times is a quantile of by how much the first intervals were longer: of their mean a few that took place
// while the thread waited would make anything.
func (l *secondLooks) times(q float64) float64 { return float64(l.longer.quantile(q)) / 1000 }

// lookAgain takes a reuse after the observation's, or of a half line
// the first touch of the pair that it began with.
func (s *Session) lookAgain(o *observation, t *thread, trap *sampler.Trap) {
	if !o.half && trap.Looks < furtherLooks-1 {
		return
	}
	native, below := s.elapsed(trap.Again, float64(trap.AgainTraps))
	again := o.again
	switch {
	case again != nil:
	case !o.half && trap.Looks < furtherLooks:
		by := s.accessing(o, trap)
		o.latest = &latest{by, s.stacks.addTrap(t, by, trap, 0), trap.Traps}
	case !o.half && (o.latest == nil || o.latest.traps != trap.Traps-trap.AgainTraps): // its beginning's record was dropped
	default:
		again = &secondLook{native: native, below: below, smeared: s.smeared(trap.Again, float64(trap.AgainTraps)), by: o.reuseBy, use: o.reuse}
		again.wall, again.end = s.wallSince(trap), float64(trap.Time)
		again.reuse = s.stacks.addTrap(t, s.accessing(o, trap), trap, 0)
		if !o.half {
			again.by, again.use = o.latest.by, o.latest.stack
		}
		o.again = again
	}
	if o.half && !again.pairEnded && trap.Slot/2 == o.reuseSlot/2 {
		again.pairEnded, again.pairNative = true, max(native, again.native)
	}
}

// latest is the access that the interval to be taken begins with.
type latest struct {
	by    ahead.Accessing
	stack int    // in stackTable
	traps uint32 // of its thread by then
}

// endAgain ends the watch for the pair of a second look at an age of it.
func (s *Session) endAgain(o *observation, age uint64) {
	if again := o.again; again != nil && o.half && !again.pairEnded {
		native, _ := s.elapsed(age, 1)
		again.pairNative = max(native, again.native)
	}
}

// outside says whether one of the two intervals is out of bounds.
func (s *Session) outside(o *observation) bool {
	again := o.again
	if o.half {
		return o.below || again.below || again.native >= float64(againWithin)
	}
	short := o.after < s.burst && o.native < s.shortest() // was not read ahead of as far as others
	return short || again.end-(o.end-o.wall) >= float64(againWithin)
}

// shortest is the time, in ns, that is read ahead, by the rate that is assumed while
// sampling.
func (s *Session) shortest() float64 {
	rate := s.cfg.AccessRate
	if rate == 0 {
		rate = DefaultAccessRate
	}
	return float64(s.burst) / rate
}

// settle takes a later look at a pair for the first, if both are within
// bounds.
func (s *Session) settle(o *observation) {
	again := o.again
	if again == nil || o.kind != model.Reuse || o.counted > 0 { // counted is exact
		return
	}
	if s.outside(o) {
		s.second.outside++
		return
	}
	s.second.taken++
	s.second.longer.add(int(min(1000*o.native/max(again.native, 1), math.MaxInt32)))
	if len(o.line) > 0 {
		o.first = &firstLook{o.pc, o.useStack, o.op, o.wall}
	}
	o.pc, o.useStack, o.reuse, o.native, o.smeared = again.by.PC, again.use, again.reuse, again.native, again.smeared
	o.below, o.wall, o.end = again.below, again.wall, again.end
	o.distinct, o.lead = 0, 0 // were counted behind the first use
	o.op = model.Load
	if again.by.Store {
		o.op = model.Store
	}
	if o.half {
		o.pair, o.pairNative = model.Censored, again.pairNative
		if again.pairEnded {
			o.pair = model.Reuse
		}
	}
}

// firstLook is the interval that was sampled, in the course of which the other words of its line were
// watched.
type firstLook struct {
	pc   uint64
	use  int // in stackTable
	op   model.Op
	wall float64 // ns
}

// watchedLook is the interval of an observation in which other threads and words were watched.
func (o *observation) watchedLook() firstLook {
	if o.first != nil {
		return *o.first
	}
	return firstLook{o.pc, o.useStack, o.op, o.wall}
}

func (s *Session) secondLookComments(p *model.Profile) {
	l := &s.second
	if l.taken > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("reuses within %v of a use were timed by later ones of their data, when caches are warm again: %d of %d; at first half of them took %.2f times as long or more, a quarter less than %.2f and a quarter more than %.2f",
			againWithin, l.taken, l.taken+l.outside, l.times(.5), l.times(.25), l.times(.75)))
	}
}
