package collector

import (
	"iter"
	"slices"
)

// placeReadings is how often the mappings are read again for an address that is in
// none of them.
const placeReadings = 3

// findData says where the data sampled last lie, while the mappings and blocks are
// those of the sample: soon others may have their place.
func (s *targets) findData() {
	for o := range s.kept.latestUnplaced() {
		o.placed = o.Process.Place(o.Addr, &o.Data)
		o.Process.Unknown = o.Process.Unknown || !o.placed
		o.dataBy = o.Process.Readings + placeReadings
		s.findBlock(o)
	}
}

// findDataAgain looks for those data that were in no mapping. One that is in none in
// so many readings, or whose process has ended, is given up.
func (s *targets) findDataAgain() {
	s.findData()
	s.kept.leaveUnplaced(func(o *observation) bool {
		if o.placed {
			return false
		}
		p := o.Process
		o.placed = p.Place(o.Addr, &o.Data)
		again := !o.placed && p.Readings < o.dataBy && s.processes.Alive[p.PID] == p
		p.Unknown = p.Unknown || again
		return again
	})
}

// latestUnplaced are those that were not searched for yet, the latest first.
func (s *observations) latestUnplaced() iter.Seq[*observation] {
	return func(yield func(*observation) bool) {
		for i := len(s.unplaced) - 1; i >= 0 && !s.unplaced[i].searched; i-- {
			s.unplaced[i].searched = true
			if !yield(s.unplaced[i]) {
				return
			}
		}
	}
}

// leaveUnplaced keeps those that wait for the next reading.
func (s *observations) leaveUnplaced(waits func(*observation) bool) {
	s.unplaced = slices.DeleteFunc(s.unplaced, func(o *observation) bool { return !waits(o) })
}
