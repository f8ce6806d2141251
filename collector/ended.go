package collector

import (
	"github.com/rdx-profiler/rdx/collector/record"
)

// ended is an observation whose watchpoints are not needed any more. Those in
// other threads cost these threads traps until they are taken down, and all slow copying where that is so; and what is taken down before the next hold need not be in it.
type ended struct {
	t    *thread
	slot int
	seq  uint32
}

// clearEnded frees what is not needed any more.
func (s *watches) clearEnded() {
	var kept []ended
	for len(s.ended) > 0 {
		e := s.ended[0]
		s.ended = s.ended[1:]
		w := &e.t.slots[e.slot]
		if w.seq != e.seq || s.waitsForPair(w.obs) {
			continue
		}
		if e.t.stepping != nil { // its watches tell the burst's time
			kept = append(kept, e)
			continue
		}
		s.retire(e.t, e.slot)
	}
	s.ended = kept
}

// waitsForPair says of a half line that was touched whether its pair of words was not, whose first touch is another end.
func (s *watches) waitsForPair(o *observation) bool {
	return s.halves && o != nil && o.Half && o.State == record.Done && !o.PairEnded
}
