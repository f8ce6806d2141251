package collector

import (
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// What Config.Granularity may say, besides Auto.
const (
	Word = "word"
	Line = "line"
)

const wordBytes = 8

// chooseLines says whether samples are of lines: the four words that a thread's
// debug registers can watch are half of one, from which the model extrapolates
// if reading ahead has seen the first accesses. Of an access that its source
// reports nothing is read ahead.
func (c *Config) chooseLines(reports sampler.Report) bool {
	if c.Granularity == Auto {
		return reports == sampler.NoAccess && c.Stack == OwnStack && c.Slots == sampler.NumSlots && c.Burst != 0
	}
	return c.Granularity == Line
}

// block that counts as one datum, in bytes.
func (s *Session) block() int {
	if s.lines {
		return lineBytes
	}
	return wordBytes
}

// armLine watches the whole line that word is in, by one debug register.
type armLine func(k *sampler.Kernel, tid, slot int, word uint64, traps int) (*sampler.Watchpoint, error)

// chooseHalves says whether lines are watched by halves: not where a debug register
// can watch a whole one. Then each sample takes one slot, as those of words do, and
// no model has to say what the other half would have shown.
func (s *Session) chooseHalves() {
	if s.cfg.armLine == nil && s.points.WholeLine {
		s.cfg.armLine = (*sampler.Kernel).ArmLine
	}
	s.halves = s.lines && s.cfg.armLine == nil
}

// watchHalf watches the half line with the sampled word for o: until one of its
// words is touched, and then its pair until that is. Each word traps once, and
// once more for a second look, the sampled one for the use, too.
func (s *Session) watchHalf(t *thread, ahead *ahead.Ahead, o *observation) {
	for _, part := range ahead.Half {
		if part.Before > beforeMost {
			s.loseObserved(o, "half line touched too often before the use")
			return
		}
	}
	s.retire(t, 0)
	if failed := s.arm(t, 0, ahead.Word, sampler.SlotArmed, ahead.Before, 2+ahead.Before+s.trapsAgain(), (*sampler.Kernel).Arm); failed != "" {
		s.loseObserved(o, failed)
		return
	}
	o.half, o.pair, o.use = true, model.Censored, ahead.Stack
	t.shared.Slots[0].Stacks = sampler.TrapStacks
	t.enterEpoch(o)
	t.slots[0].obs = o
	for i, part := range ahead.Half[1:] {
		if failed := s.arm(t, 1+i, part.Word, sampler.SlotUsed, part.Before, 1+part.Before+s.trapsAgain(), (*sampler.Kernel).Arm); failed != "" {
			s.loseObserved(o, failed)
			t.slots[0].helper = true // of nothing any more
			s.retire(t, 0)
			return
		}
		t.slots[1+i].obs, t.slots[1+i].helper = o, true
		t.shared.Slots[1+i].Stacks = sampler.TrapStacks
	}
}

// endPair notes when the pair was touched.
func (o *observation) endPair(native float64) {
	o.pair, o.pairEnded, o.pairNative = model.Reuse, true, native
}

// censorPair gives up the pair of a half line that was touched before; since is
// reading.since, of a reading before the watchpoint was closed.
func (s *Session) censorPair(o *observation, since func(use, lag uint64) (uint64, bool)) {
	if o.pairEnded {
		return
	}
	o.pairEnded, o.pairNative = true, o.native
	if age, ok := since(o.useClock, o.lag); ok {
		native, _ := s.elapsed(age, 1)
		o.pairNative = max(native, o.native)
	}
}
