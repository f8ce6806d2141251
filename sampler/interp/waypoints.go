package interp

// A Waypoint is a state that a thread was seen in: its instruction pointer, and its
// general registers by number. Flags and vector registers are not looked at.
type Waypoint struct {
	PC   uint64
	Regs [32]uint64
	// Mask has a bit for each of Regs that counts.
	Mask uint32
	// Slack is how many of those may be others.
	Slack int
}

// Waypoints end a Run, with Arrived, each time the thread comes to one of them.
type Waypoints struct {
	all    []Waypoint
	mask   uint64 // a bit for each PC modulo 64
	passed bool   // the last Run has ended here
	which  int
	regs   []uint64 // then, and until the next one
}

// Set replaces them. Those of a Machine are gone after Start.
func (s *Waypoints) Set(all []Waypoint) {
	s.all, s.mask, s.passed = append(s.all[:0], all...), 0, false
	for i := range all {
		s.mask |= 1 << (all[i].PC % 64)
	}
}

// Others is how many registers were not those of one of the waypoints when the last Run ended, of no more than one too many; false
// if it is elsewhere.
func (s *Waypoints) Others(i int) (n int, here bool) {
	w := &s.all[i]
	return w.others(s.regs), w.PC == s.all[s.which].PC
}

// At says whether there may be one at pc.
func (s *Waypoints) At(pc uint64) bool { return s.mask>>(pc%64)&1 != 0 }

// Arrived says whether there is one with these registers that the last Run has not
// ended at.
func (s *Waypoints) Arrived(pc uint64, regs []uint64) bool {
	if s.passed {
		s.passed = false
		return false
	}
	for i := range s.all {
		if s.all[i].PC != pc {
			continue
		}
		if s.all[i].others(regs) <= s.all[i].Slack {
			s.which, s.regs, s.passed = i, regs, true
			return true
		}
	}
	return false
}

// others counts the registers that are not the waypoint's, of no more than one too many.
func (s *Waypoint) others(regs []uint64) (n int) {
	for i := range s.Regs {
		if s.Mask>>i&1 != 0 && s.Regs[i] != regs[i] {
			if n++; n > s.Slack {
				break
			}
		}
	}
	return n
}
