package collector

import (
	"fmt"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// Pruning is Schuff et al.'s, section 3.3: once pruneAfter observations are
// over, one that is older than pruneQuantile of them gives way. Those pruned
// count as longer than all, so that their share stays below 1-pruneQuantile.
const (
	pruneAfter    = 100
	pruneQuantile = 0.99
)

// prune ends what has lasted longer than nearly all that is over.
func (s *watches) prune() {
	now := uint64(sampler.Monotonic())
	for _, g := range s.groupOf {
		for i := range g.slots {
			w := &g.slots[i]
			if w.owner == nil || w.main != i {
				continue
			}
			slot, o := &w.owner.shared.Slots[i], w.owner.slots[i].obs
			if o == nil || slot.State != sampler.SlotUsed {
				continue
			}
			past := s.lasted[o.Stack]
			if past == nil || past.N < pruneAfter || past.Above(now-slot.UseTime) >= 1-pruneQuantile {
				continue
			}
			s.retire(w.owner, i)
			if o.Kind == model.Censored {
				o.Kind = model.Pruned
				s.pruned++
				s.over(o.Stack, 0)
			}
			g.shared.Slots[i].N = 0
		}
	}
}

// wordsWatched is how many other words of a datum's line were watched, on
// average.
func (s *observations) wordsWatched() float64 {
	words, all := 0, 0
	for _, o := range s.seen {
		if o.State == record.Done && o.Stack == model.StackPrivate && o.Word != 0 {
			words += len(o.Line)
			all++
		}
	}
	return float64(words) / float64(max(all, 1))
}

// lined is of how many observations other words of the line were watched, and of
// how many not, there being no slot or register.
func (s *observations) lined() (lined, not int) {
	for _, o := range s.seen {
		switch {
		case o.State != record.Done || !o.Lined:
		case len(o.Line) > 0:
			lined++
		default:
			not++
		}
	}
	return lined, not
}

// countLined is of how many observations other words of the line were not watched.
func (s *observations) countLined(count count) {
	switch lined, not := s.lined(); {
	case lined == 0:
		count(model.FalseSharingUnknown, uint64(not))
	default:
		count(model.LinesUnwatched, uint64(not))
	}
}

func (s *observations) linedComment() string {
	return fmt.Sprintf("false sharing: %.1f of the other %d words of a line were watched on average; writes seen are weighted by how likely their word was to be", s.wordsWatched(), estimate.LineWords-1)
}

// otherComment says why not all threads could be watched, "" if all could.
func (s *groupWatches) otherComment() string {
	if s.otherFailed == nil {
		return ""
	}
	return "not watched in all threads, because: " + s.otherFailed.Error()
}

// counts are of what was watched in other threads.
func (s *watches) counts(stats sampler.Stats, count count) {
	count(model.TrapsElsewhere, stats.OtherTraps)
	count(model.TrapsEarly, stats.OtherEarly)
	count(model.TrapsOtherSpaces, stats.OtherProcess)
	count(model.WordsUnwatched, uint64(s.unwatched))
	count(model.WatchesPruned, uint64(s.pruned))
	count(model.CutOff, uint64(s.silenced))
}
