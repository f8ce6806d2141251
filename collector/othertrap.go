package collector

import (
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// otherTrap takes a trap of another thread at what o's slot watches.
func (s *Session) otherTrap(o *observation, trap *sampler.Trap) {
	writer := func() int {
		by := s.byIndex[trap.From]
		if by == nil || by.tid != int(trap.Tid) { // has exited
			by = &thread{process: o.process, index: noThread}
		}
		return s.stacks.addTrap(by, s.accessing(o, trap), trap, 0)
	}
	if trap.Kind == sampler.TrapLine {
		for i := range o.line {
			if w := &o.line[i]; w.addr == trap.Addr && w.seen == nil {
				w.seen = &lineWrite{int(trap.Tid), trap.Ip, writer(), s.wallSince(trap)}
				if g := o.process.group; g != nil {
					g.written[wordAt(o.word)][wordAt(w.addr)]++
				}
			}
		}
		return
	}
	o.state, o.kind = done, model.Reuse
	if o.stack == model.StackPrivate {
		o.kind = model.Invalidated
	}
	o.reuse, o.endTID = writer(), int(trap.Tid)
	o.wall, o.end, o.counted = s.wallSince(trap), float64(trap.Time), 0
	s.over(o.stack, o.wall)
	s.pairs++
}

// blindTrap ends what was watched by a CPU's register that is silent now: it is cut off, at the wall
// clock's time.
func (s *Session) blindTrap(o *observation, trap *sampler.Trap) {
	wall := s.wallSince(trap)
	if trap.Kind == sampler.TrapBlindLine {
		s.cutLine(o, trap.Addr, wall)
		return
	}
	o.state, o.kind, o.byWall = done, model.Censored, true
	o.wall, o.end, o.counted = wall, float64(trap.Time), 0
	s.silenced++
}

// cutBlind notes whether of a word of the line of the datum in a thread's slot, watched by another
// slot of the group, the watchpoints were used up before the use.
func (s *Session) cutBlind(g *group, t *thread, slot, other int) {
	o := t.slots[slot].obs
	if o == nil || t.shared.Slots[slot].Blind&sampler.BlindWord(other) == 0 {
		return
	}
	s.cutLine(o, g.shared.Slots[other].Addr, 1)
}

// cutLine notes that the word at addr of a datum's line, if nobody was seen to write it, was watched
// until that long after the use, in ns of the wall clock, and no longer.
func (s *Session) cutLine(o *observation, addr uint64, at float64) {
	for i := range o.line {
		if w := &o.line[i]; w.addr == addr && w.seen == nil && w.cutAt == 0 {
			w.cutAt = at
			s.unwatched++
		}
	}
}

// wallSince is the time from the use to a trap, in ns, without what the use's
// own trap took.
func (s *Session) wallSince(trap *sampler.Trap) float64 {
	return max(float64(trap.Wall)-s.calibration.Cost, 1)
}

// noThread is no index of a thread.
const noThread = ^uint32(0)
