package collector

import (
	"errors"
	"time"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// watches are the slots: what is armed, for whom, and what comes of it. It belongs to the tracing
// thread.
type watches struct {
	account  *account
	timing   *timing
	kept     *observations
	cfg      *Config
	kernel   *sampler.Kernel
	locate   *ahead.Locator
	drain    func() // reads what traps are waiting
	threadAt func(index uint32) *thread

	points   sampler.Watchpoints // what they can do here
	none     error               // why there are none, nil if there are
	moves    bool                // watchpoints are kept and moved where they can be
	holding  bool                // a thread is held: what can wait does
	halves   bool                // watched by half, so that each takes all slots of its thread
	silenced int                 // observations cut off, as other processes had used a CPU's traps up
	ended    []ended             // not yet cleared
	lasted   [3]*model.Hist      // by stack, wall time from use to end in ns
	pruned   int
	copyCost copyCost
	groupWatches
}

// newWatches has none.
func newWatches() watches {
	return watches{groupWatches: groupWatches{groupOf: make(map[*target.Process]*group)}, copyCost: copyCost{of: make(map[*target.Process]*copies)}}
}

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
func (s *watches) arm(t *thread, slot int, word uint64, state sampler.SlotState, skip, traps int, open armLine) (failed model.Reason) {
	if g := t.group; g != nil {
		s.vacate(g, slot)
		g.occupy(slot, t)
	}
	s.retire(t, slot)
	point, err := s.again(t, slot, word, traps), error(nil)
	if point == nil {
		point, err = open(s.kernel, t.tid, slot, word, traps)
	}
	if err != nil && t.group != nil {
		t.group.release(&s.groupWatches, t, slot)
	}
	if errors.Is(err, sampler.ErrNoSlot) {
		return model.NoRegister
	} else if err != nil {
		if !gone(err) { // killed while held
			s.account.fail(err)
		}
		return model.NotArmed
	}
	shared := &t.shared.Slots[slot]
	point.CountCopies(shared)
	shared.Seq++
	shared.Skip = uint32(skip)
	shared.Stacks = 0
	shared.Blind = 0
	shared.State = state
	t.arm(slot, watch{point: point, seq: shared.Seq, since: sampler.Monotonic(), single: !s.halves && t.group == nil})
	s.copyCost.opened()
	return ""
}

// putAway ends what a watchpoint watches, and keeps it for the slot's next datum where that is sooner than to open one.
// Where other threads' data are watched, too, or a burst's steps stop the thread, they need the registers.
func (s *watches) putAway(t *thread, slot int, point *sampler.Watchpoint) error {
	if !s.moves || t.group != nil || t.parked[slot] != nil || point.Park() != nil {
		return point.Close()
	}
	if t.park(slot, point); !s.holding {
		s.renew(t)
	}
	return nil
}

// hold is told when a thread is held, and when it no longer is.
func (s *watches) hold(held bool) { s.holding = held }

// renew has the watchpoints that are kept for a thread, which runs, ready to be moved. Where that fails the next is opened
// when it is needed.
func (s *watches) renew(t *thread) {
	for slot, point := range t.parked {
		if point != nil {
			renewed, _ := s.kernel.Renew(point, t.tid, slot)
			t.park(slot, renewed)
		}
	}
}

// again moves the watchpoint that was kept for a slot to a word; nil if there is none, or it can't be.
func (s *watches) again(t *thread, slot int, word uint64, traps int) *sampler.Watchpoint {
	point := t.unpark(slot)
	if point == nil {
		return nil
	}
	if point.Move(word, traps) == nil {
		return point
	}
	if err := point.Close(); err != nil {
		s.account.fail(err)
	}
	return nil
}

// closeParked frees the registers that were kept for a thread.
func (s *watches) closeParked(t *thread) {
	for slot := range t.parked {
		point := t.unpark(slot)
		if point == nil {
			continue
		}
		if err := point.Close(); err != nil {
			s.account.fail(err)
		}
	}
}

// retire ends what the slot watches: a use still without its reuse becomes a
// censored observation of the age it reached.
//
// In a group the thread may be running: the clock is read before and the state
// looked at after the watchpoint is gone.
func (s *watches) retire(t *thread, slot int) {
	w := &t.slots[slot]
	if w.point == nil {
		return
	}
	shared := &t.shared.Slots[slot]
	var clock reading
	if shared.State == sampler.SlotUsed || shared.State == sampler.SlotArmed || s.waitsForPair(w.obs) {
		clock = s.timing.read(t, w)
	}
	s.copyCost.closed(w.point)
	if err := s.putAway(t, slot, w.point); err != nil {
		s.account.fail(err)
	}
	s.closeStamp(w)
	if g := t.group; g != nil {
		g.release(&s.groupWatches, t, slot)
	}
	now := sampler.Monotonic()
	// The traps it has seen are still to be read.
	s.drain()
	if w.silent > 0 {
		now = w.silent
	}
	t.watched(span{w.since, now})
	switch {
	case w.helper, w.obs == nil: // or could not be watched in all threads
	case w.obs.Lap != nil:
		if w.obs.State != record.Done {
			s.account.loseObserved(&w.obs.Observation, model.EndUnknown)
		}
	case w.obs.Half && w.obs.State == record.Done:
		s.censorPair(w.obs, clock.since)
	case shared.State == sampler.SlotUsed && w.obs.State == record.Used:
		if age, ok := clock.since(w.obs.useClock, w.obs.lag); !ok {
			s.account.loseObserved(&w.obs.Observation, model.WatchClockUnread)
		} else if w.obs.Blind = shared.Blind&sampler.Blind != 0; w.obs.Blind && w.obs.Stack != model.StackPrivate {
			s.account.loseObserved(&w.obs.Observation, model.NotInAllThreads)
		} else {
			w.obs.censor(s.timing.withoutTraps(w.obs, age, t.shared.Spent), s.timing)
			w.obs.PairNative = w.obs.Native
			w.obs.End = float64(sampler.Monotonic())
			w.obs.Wall = max(w.obs.End-float64(shared.UseTime)-s.timing.calibration.Cost, 1)
		}
	case shared.State == sampler.SlotArmed:
		s.account.loseObserved(&w.obs.Observation, model.UseNotSeen)
	}
	shared.State = sampler.SlotFree
	*w = watch{}
	if s.halves && slot == 0 {
		for i := 1; i < sampler.NumSlots; i++ {
			s.retire(t, i)
		}
	}
}
