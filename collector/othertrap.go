package collector

import (
	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// takeOthers takes a trap of another thread, or of a CPU's register, to an observation that is not
// over: where it is, two threads came at the same time.
func (s *watches) takeOthers(t *thread, w *watch, o *observation, trap *sampler.Trap) {
	switch o.State {
	case record.Armed:
		if endsWatch(trap) {
			s.account.loseObserved(&o.Observation, model.UseDropped)
		}
	case record.Used:
		if age, ok := s.timing.read(t, w).since(o.useClock, o.lag); ok {
			o.Age = float64(age)
		}
		if isBlind(trap) {
			s.blindTrap(o, trap)
		} else {
			s.otherTrap(o, trap)
		}
	}
}

// otherTrap takes a trap of another thread at what o's slot watches.
func (s *watches) otherTrap(o *observation, trap *sampler.Trap) {
	writer := func() int {
		by := s.accessing(o, trap)
		if t := s.threadAt(trap.From); t != nil && t.tid == int(trap.Tid) {
			return s.kept.stacks.AddTrap(t, t.process, by, trap.Stack)
		}
		return s.kept.stacks.AddTrap(nil, o.Process, by, trap.Stack) // has exited
	}
	if trap.Kind == sampler.TrapLine {
		for i := range o.Line {
			if w := &o.Line[i]; w.Addr == trap.Addr && w.Seen == nil {
				w.Seen = &record.LineWrite{TID: int(trap.Tid), PC: trap.Ip, Stack: writer(), Wall: s.timing.wallSince(trap)}
				if g := s.groupOf[o.Process]; g != nil {
					g.noteWritten(o.Word, w.Addr)
				}
			}
		}
		return
	}
	o.State, o.Kind = record.Done, model.Reuse
	if o.Stack == model.StackPrivate {
		o.Kind = model.Invalidated
	}
	o.ReuseStack, o.EndTID = writer(), int(trap.Tid)
	o.Wall, o.End, o.Counted = s.timing.wallSince(trap), float64(trap.Time), 0
	s.over(o.Stack, o.Wall)
	s.kept.paired()
}

// noteWritten counts a write that was seen to a word of a watched one's line.
func (g *group) noteWritten(watched, word uint64) {
	g.written[estimate.WordAt(watched)][estimate.WordAt(word)]++
}

// blindTrap ends what was watched by a CPU's register that is silent now: it is cut off, at the wall
// clock's time.
func (s *watches) blindTrap(o *observation, trap *sampler.Trap) {
	wall := s.timing.wallSince(trap)
	if trap.Kind == sampler.TrapBlindLine {
		s.cutLine(o, trap.Addr, wall)
		return
	}
	o.State, o.Kind, o.ByWall = record.Done, model.Censored, true
	o.Wall, o.End, o.Counted = wall, float64(trap.Time), 0
	s.silenced++
}

// cutBlind notes whether of a word of the line of the datum in a thread's slot, watched by another
// slot of the group, the watchpoints were used up before the use.
func (s *groupWatches) cutBlind(g *group, t *thread, slot, other int) {
	o := t.slots[slot].obs
	if o == nil || t.shared.Slots[slot].Blind&sampler.BlindWord(other) == 0 {
		return
	}
	o.BlindLine = true
	s.cutLine(o, g.shared.Slots[other].Addr, 1)
}

// cutLine notes that the word at addr of a datum's line, if nobody was seen to write it, was watched
// until that long after the use, in ns of the wall clock, and no longer.
func (s *groupWatches) cutLine(o *observation, addr uint64, at float64) {
	for i := range o.Line {
		if w := &o.Line[i]; w.Addr == addr && w.Seen == nil && w.CutAt == 0 {
			w.CutAt = at
			s.unwatched++
		}
	}
}
