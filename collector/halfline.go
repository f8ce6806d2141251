package collector

import (
	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// What Config.Granularity may say, besides Auto.
const (
	Word = "word"
	Line = "line"
)

// chooseLines is called when source and clock are known.
func (s *holds) chooseLines() {
	s.lines = s.cfg.chooseLines(s.src.source.Reports())
	s.watches.chooseHalves(s.lines)
	s.hot.Block = s.block()
	if s.watches.none != nil && s.lines && s.burst == timedBurst && s.cfg.Burst == AutoBurst {
		s.farther.Begin(s.cfg.firstCache())
	}
	s.locate.FirstCache(s.cfg.firstCache())
	s.locate.Reserve(s.windowOf(s.farther.Begun())) // as much as they may come to
}

// usualCache is the first one where none is named, in bytes.
const usualCache = 48 << 10

func (c *Config) firstCache() int64 {
	if len(c.Caches) == 0 {
		return usualCache
	}
	return c.Caches[0].Size
}

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
func (s *holds) block() int {
	if s.lines {
		return estimate.LineBytes
	}
	return estimate.WordBytes
}

// armLine watches the whole line that word is in, by one debug register.
type armLine func(k *sampler.Kernel, tid, slot int, word uint64, traps int) (*sampler.Watchpoint, error)

// chooseHalves says whether lines are watched by halves: not where a debug register
// can watch a whole one. Then each sample takes one slot, as those of words do, and
// no model has to say what the other half would have shown.
func (s *watches) chooseHalves(lines bool) {
	if s.cfg.armLine == nil && s.points.WholeLine {
		s.cfg.armLine = (*sampler.Kernel).ArmLine
	}
	s.halves = lines && s.cfg.armLine == nil
}

// watchHalf watches the half line with the sampled word for o: until one of its
// words is touched, and then its pair until that is. Each word traps once,
// the sampled one for the use, too.
func (s *holds) watchHalf(t *thread, found *ahead.Ahead, o *observation) {
	for _, part := range found.Half {
		if part.Before > beforeMost {
			s.notWatched(o, model.TouchedOften)
			return
		}
	}
	s.watches.retire(t, 0)
	if failed := s.watches.arm(t, 0, found.Word, sampler.SlotArmed, found.Before, 2+found.Before, (*sampler.Kernel).Arm); failed != "" {
		s.settle()
		s.account.loseObserved(&o.Observation, failed)
		return
	}
	o.Half, o.Pair, o.use = true, model.Censored, found.Stack
	t.shared.Slots[0].Stacks = sampler.TrapStacks
	t.enterEpoch(&o.Observation)
	t.slots[0].obs = o
	for i, part := range found.Half[1:] {
		if failed := s.watches.arm(t, 1+i, part.Word, sampler.SlotUsed, part.Before, 1+part.Before, (*sampler.Kernel).Arm); failed != "" {
			s.settle()
			s.account.loseObserved(&o.Observation, failed)
			t.slots[0].helper = true // of nothing any more
			s.watches.retire(t, 0)
			return
		}
		t.slots[1+i].obs, t.slots[1+i].helper = o, true
		t.shared.Slots[1+i].Stacks = sampler.TrapStacks
	}
}

// censorPair gives up the pair of a half line that was touched before; since is
// reading.since, of a reading before the watchpoint was closed.
func (s *watches) censorPair(o *observation, since func(use, lag uint64) (uint64, bool)) {
	if o.PairEnded {
		return
	}
	o.PairEnded, o.PairNative = true, o.Native
	if age, ok := since(o.useClock, o.lag); ok {
		native, _ := s.timing.elapsed(age, 1)
		o.PairNative = max(native, o.Native)
	}
}
