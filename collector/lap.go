package collector

import (
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// Laps are timed in some of the holds that find their slot free: how long accesses take behind a hold that are known, for what comes
// later is not. Such a hold watches nothing, as if it had not drawn for the slot.

// wantsLap says whether a hold's slot is to time a lap.
func (s *holds) wantsLap(t *thread) bool {
	slot := t.shared.HoldSlot
	return s.heads && s.lines && t.group == nil && slot != sampler.NoSlot && t.shared.Slots[slot].N == 1 && s.watches.mayWatch() &&
		ahead.TimesLap(len(s.laps), s.rand.IntN)
}

// timeLap has the slot time a lap of what was read ahead, and says whether it does.
func (s *holds) timeLap(t *thread) bool {
	lap, ok := s.locate.Lap(s.rand.IntN)
	if !ok {
		return false
	}
	slot := int(t.shared.HoldSlot)
	o := &observation{lap: lap, next: lap.Use.Next, Observation: record.Observation{
		Process: t.process, TID: t.tid, PC: lap.Use.PC, Stack: model.StackOwn, OfHold: record.OfHold{Lap: &record.Lap{Hold: len(s.made), Accesses: lap.Accesses}}}}
	if failed := s.watches.arm(t, slot, lap.Word, sampler.SlotArmed, lap.Before, 2+lap.Before, (*sampler.Kernel).Arm); failed != "" {
		s.account.loseObserved(&o.Observation, failed)
		return false
	}
	t.slots[slot].obs = o
	t.undraw(slot)
	s.untold.lap = o
	return true
}

// tellLap says what a lap touches, when its thread runs.
func (s *holds) tellLap(o *observation) {
	o.Lap.Data, o.Lap.Code = s.locate.LapLines(o.lap)
	s.laps = append(s.laps, o.Lap)
}

// endLap takes the trap that ends it.
func (s *watches) endLap(o *observation, trap *sampler.Trap) {
	o.State = record.Done
	o.Lap.NS, o.Lap.Timed = s.timing.smeared(s.timing.clockBetween(o, trap), float64(trap.Traps-o.traps)), true
}
