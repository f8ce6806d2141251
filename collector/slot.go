package collector

import (
	"errors"
	"time"

	"github.com/rdx-profiler/rdx/sampler"
)

// watch is what a slot watches.
type watch struct {
	point  *sampler.Watchpoint
	seq    uint32
	obs    *observation
	helper bool // watches a further word of slot 0's obs
	// stamp traps where the thread goes on after a burst of steps: time is taken from
	// there, as from a use.
	stamp *sampler.Watchpoint
	// single: a reuse is its last trap, and no thread but its own watches.
	single bool
	// since is when it was armed, silent, by sampler.Monotonic, too, when it took its last trap, 0 if it has more.
	since, silent time.Duration
}

// arm watches word, or its line, in a slot, by way of open, for traps accesses of which the first skip do
// not count. What failed, if anything did, is the caller's to count.
func (s *Session) arm(t *thread, slot int, word uint64, state sampler.SlotState, skip, traps int, open armLine) (failed string) {
	if g := t.process.group; g != nil {
		s.vacate(g, slot)
		g.occupy(slot, t)
	}
	s.retire(t, slot)
	point, err := open(s.kernel, t.tid, slot, word, traps)
	if err != nil && t.process.group != nil {
		t.process.group.release(s, t, slot)
	}
	if errors.Is(err, sampler.ErrNoSlot) {
		return sampler.ErrNoSlot.Error()
	} else if err != nil {
		if !gone(err) { // killed while held
			s.fail(err)
		}
		return "watchpoint not armed"
	}
	shared := &t.shared.Slots[slot]
	shared.Seq++
	shared.Skip = uint32(skip)
	shared.Stacks = 0
	shared.Blind = 0
	shared.AgainClock, shared.AgainTime = 0, 0
	shared.State = state
	t.slots[slot] = watch{point: point, seq: shared.Seq, since: sampler.Monotonic(),
		single: s.trapsAgain() == 0 && !s.halves && t.process.group == nil}
	s.copying.points++
	return ""
}

// retire ends what the slot watches: a use still without its reuse becomes a
// censored observation of the age it reached.
//
// In a group the thread may be running: the clock is read before and the state
// looked at after the watchpoint is gone.
func (s *Session) retire(t *thread, slot int) {
	w := &t.slots[slot]
	if w.point == nil {
		return
	}
	shared := &t.shared.Slots[slot]
	var clock reading
	if shared.State == sampler.SlotUsed || shared.State == sampler.SlotArmed || s.halves && shared.AgainClock != 0 {
		clock = s.read(t, w)
	}
	if err := w.point.Close(); err != nil {
		s.fail(err)
	}
	s.closeStamp(w)
	if g := t.process.group; g != nil {
		g.release(s, t, slot)
	}
	now := sampler.Monotonic()
	// The traps it has seen are still to be read.
	s.drain()
	if w.silent > 0 {
		now = w.silent
	}
	t.spans = append(t.spans, span{w.since, now})
	s.copying.points--
	switch {
	case w.helper, w.obs == nil: // or could not be watched in all threads
	case w.obs.half && w.obs.state == done:
		s.censorPair(w.obs, clock.since)
		if age, ok := clock.since(shared.AgainClock, w.obs.lag); ok {
			s.endAgain(w.obs, age)
		}
	case shared.State == sampler.SlotUsed && w.obs.state == used:
		if age, ok := clock.since(shared.UseClock, w.obs.lag); !ok {
			s.loseObserved(w.obs, "watchpoint clock not readable")
		} else if shared.Blind&sampler.Blind != 0 {
			s.loseObserved(w.obs, "not watched in all threads")
		} else {
			w.obs.censor(age, s)
			w.obs.pairNative = w.obs.native
			w.obs.end = float64(sampler.Monotonic())
			w.obs.wall = max(w.obs.end-float64(shared.UseTime)-s.calibration.Cost, 1)
		}
	case shared.State == sampler.SlotArmed:
		s.loseObserved(w.obs, "use not seen")
	}
	shared.State = sampler.SlotFree
	*w = watch{}
	if s.halves && slot == 0 {
		for i := 1; i < sampler.NumSlots; i++ {
			s.retire(t, i)
		}
	}
}
