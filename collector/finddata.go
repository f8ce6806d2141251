package collector

import "github.com/rdx-profiler/rdx/model"

// placeReadings is how often the mappings are read again for an address that is in
// none of them.
const placeReadings = 3

// findData says where the data sampled last lie, while the mappings and blocks are
// those of the sample: soon others may have their place.
func (s *targets) findData() {
	for i := len(s.kept.unplaced) - 1; i >= 0 && !s.kept.unplaced[i].searched; i-- {
		o := s.kept.unplaced[i]
		o.searched = true
		o.Data = o.Process.Datum(o.Addr)
		o.Process.Unknown = o.Process.Unknown || o.Data.Kind == model.DataUnknown
		o.dataBy = o.Process.Readings + placeReadings
		s.findBlock(o)
	}
}

// findDataAgain looks for those data that were in no mapping. One that is in none in
// so many readings, or whose process has ended, is given up.
func (s *targets) findDataAgain() {
	s.findData()
	var again []*observation
	for _, o := range s.kept.unplaced {
		if o.Data.Kind != model.DataUnknown {
			continue
		}
		p := o.Process
		o.Data = p.Datum(o.Addr)
		if o.Data.Kind == model.DataUnknown && p.Readings < o.dataBy && s.processes.Alive[p.PID] == p {
			p.Unknown = true
			again = append(again, o)
		}
	}
	s.kept.unplaced = again
}
