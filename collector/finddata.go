package collector

// placeReadings is how often the mappings are read again for an address that is in
// none of them.
const placeReadings = 3

// findData says where the data sampled last lie, while the mappings and blocks are
// those of the sample: soon others may have their place.
func (s *targets) findData() {
	for i := len(s.kept.unplaced) - 1; i >= 0 && !s.kept.unplaced[i].searched; i-- {
		o := s.kept.unplaced[i]
		o.searched = true
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
	var again []*observation
	for _, o := range s.kept.unplaced {
		if o.placed {
			continue
		}
		p := o.Process
		o.placed = p.Place(o.Addr, &o.Data)
		if !o.placed && p.Readings < o.dataBy && s.processes.Alive[p.PID] == p {
			p.Unknown = true
			again = append(again, o)
		}
	}
	s.kept.unplaced = again
}
