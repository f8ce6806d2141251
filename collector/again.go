package collector

import (
	"fmt"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// After a hold the program runs slowly for a while: its caches are cold. By the
// clock of CPU time a reuse that comes soon is too late then, by a factor of
// two or more on virtual machines. But the access after a random access to the
// same datum is as random: each access has one before it, so that each is as
// likely to be it (the map from an access to the datum's next keeps the
// uniform law). So a reuse that comes soon is watched further, and the time from
// it to the one after it, in caches that are warm again, is taken for the pair.
//
// Which of the two intervals is taken must not depend on how long they are, or
// short ones would win. So the second one counts only if both lie between the
// clock's resolution and againWithin; else the first does. As many pairs step
// from inside to outside of these bounds as the other way, and the shares of
// what lies inside and outside remain what they are.

// againWithin is where cold caches no longer matter: a random walk over 8 MB loses
// 0.6 ms after a hold, which is a few percent of this. With 4 ms, those it pushed
// beyond the bound were 20 % of its reuses instead of 14.
const againWithin = 16 * time.Millisecond

// looksAgain says whether soon reuses are watched further: by a counter of
// accesses, cold caches make no difference.
func (s *Session) looksAgain() bool {
	return s.clock.Counted == nil && s.source.Reports() == sampler.NoAccess && !s.groups()
}

// oneAgain is how many more traps a watchpoint is armed for.
func (s *Session) oneAgain() int {
	if s.looksAgain() {
		return 1
	}
	return 0
}

// secondLook is the interval that follows an observation's.
type secondLook struct {
	native  float64 // ns
	below   bool
	smeared float64
	reuse   int // in stackTable

	pairEnded  bool // of a half line: its pair of words was touched
	pairNative float64
}

// secondLooks are for the user.
type secondLooks struct {
	taken, outside int
	first, again   float64 // ns, of those taken
}

// lookAgain takes the first reuse after the observation's, or of a half line
// the first touch of the pair that it began with.
func (s *Session) lookAgain(o *observation, t *thread, trap *sampler.Trap) {
	native, below := s.elapsed(trap.Again, float64(trap.AgainTraps))
	again := o.again
	if again == nil {
		again = &secondLook{native: native, below: below, smeared: s.smeared(trap.Again, float64(trap.AgainTraps))}
		again.reuse = s.stacks.addTrap(t, s.accessing(o, trap), trap, 0)
		o.again = again
	}
	if o.half && !again.pairEnded && trap.Slot/2 == o.reuseSlot/2 {
		again.pairEnded, again.pairNative = true, max(native, again.native)
	}
}

// endAgain ends the watch for the pair of a second look at an age of it.
func (s *Session) endAgain(o *observation, age uint64) {
	if again := o.again; again != nil && o.half && !again.pairEnded {
		native, _ := s.elapsed(age, 1)
		again.pairNative = max(native, again.native)
	}
}

// settle takes the second look at a pair for the first, if both are within
// bounds.
func (s *Session) settle(o *observation) {
	again := o.again
	if again == nil || o.kind != model.Reuse {
		return
	}
	if o.below || again.below || again.native >= float64(againWithin) {
		s.second.outside++
		return
	}
	s.second.taken++
	s.second.first += o.native
	s.second.again += again.native
	o.pc, o.useStack, o.reuse, o.native, o.smeared = o.reuseBy.PC, o.reuse, again.reuse, again.native, again.smeared
	o.distinct, o.lead = 0, 0 // were counted behind the first use
	o.op = model.Load
	if o.reuseBy.Store {
		o.op = model.Store
	}
	if o.half {
		o.pair, o.pairNative = model.Censored, again.pairNative
		if again.pairEnded {
			o.pair = model.Reuse
		}
	}
}

func (s *Session) secondLookComments(p *model.Profile) {
	l := &s.second
	if l.taken > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("reuses within %v of a use were timed by the next ones of their data, after which caches are warm again: %d of %d; they took %.2f times as long at first",
			againWithin, l.taken, l.taken+l.outside, l.first/l.again))
	}
}
