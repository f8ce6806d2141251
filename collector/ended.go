package collector

import (
	"time"

	"github.com/rdx-profiler/rdx/sampler"
)

// ended is an observation whose watchpoints are not needed any more. Those in
// other threads cost these threads traps until they are taken down, and all slow copying where that is so.
type ended struct {
	t    *thread
	slot int
	seq  uint32
	soon bool // its reuse was read ahead: nothing is looked at again
}

// noteEnd has what o's slot watches freed by clearEnded, where that is worth it.
func (s *Session) noteEnd(t *thread, trap *sampler.Trap, o *observation) {
	switch e := (ended{t, int(trap.Slot), trap.Seq, o.soon > 0}); {
	case t.process.group != nil:
		s.ended = append(s.ended, e)
	case s.copying.perByte > 0:
		if s.halves {
			e.slot, e.seq = 0, t.slots[0].seq // which the others go with
		}
		s.ended = append(s.ended, e)
	}
}

// clearEnded frees what is not needed any more. While a datum is looked at again that is
// the other words of its line.
func (s *Session) clearEnded() {
	var again []ended
	for len(s.ended) > 0 {
		e := s.ended[0]
		s.ended = s.ended[1:]
		w := &e.t.slots[e.slot]
		if w.seq != e.seq || s.waitsForPair(w.obs) {
			continue
		}
		if s.looksOn(e) {
			if g := e.t.process.group; g != nil {
				g.releaseLine(s, e.t, e.slot)
			}
			again = append(again, e)
			continue
		}
		s.retire(e.t, e.slot)
	}
	s.ended = again
}

// waitsForPair says of a half line that was touched whether its pair of words was not, whose first touch is another end.
func (s *Session) waitsForPair(o *observation) bool {
	return s.halves && o != nil && o.state == done && !o.pairEnded
}

// looksOn says whether what has ended may still show something.
func (s *Session) looksOn(e ended) bool {
	slot, o := &e.t.shared.Slots[e.slot], e.t.slots[e.slot].obs
	age := sampler.Monotonic() - time.Duration(slot.UseTime)
	switch {
	case e.t.stepping != nil: // by the clock of its watches
		return true
	case !s.halves:
		return slot.State == sampler.SlotAgain && !e.soon && age < againWithin
	case o == nil || o.state != done:
		return false
	case o.again != nil && !o.again.pairEnded:
		return age < 2*againWithin // half of these by the first look
	}
	return age < againWithin
}
