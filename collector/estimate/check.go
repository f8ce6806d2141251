package estimate

import (
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
)

// Of reuses that were read ahead it is not known whether another thread comes first.
// Some, chosen by chance, are watched all the same. Where in one of these another thread did
// come first, only those of the same code that were watched count, and stand for the
// others, too: data that threads fight for is used and reused by few instructions. Elsewhere
// all count.

// checkWeights are the factors of observations that are, or stand for, ones
// whose reuse was read ahead.
type checkWeights struct {
	code    map[checkedCode]*checked
	dropped int // observations that others stand for
}

type checkedCode struct {
	process *target.Process
	stack   model.StackKind
	use     uint64
}

type checked struct {
	watched, all float64
	foreign      bool
}

func (s *stage) checkWeights() *checkWeights {
	c := &checkWeights{code: make(map[checkedCode]*checked)}
	for _, o := range s.Seen {
		if o.Soon == 0 || o.State != record.Done || o.Stack == model.StackOwn {
			continue
		}
		key := checkedCode{o.Process, o.Stack, o.PC}
		k := c.code[key]
		if k == nil {
			k = &checked{}
			c.code[key] = k
		}
		w := o.Weight()
		k.all += w
		if o.Checked {
			k.watched += w
			k.foreign = k.foreign || o.EndTID != 0
		}
	}
	return c
}

// of is the factor of an observation, 0 if others stand for it.
func (c *checkWeights) of(o *record.Observation) float64 {
	if o.Soon == 0 {
		return 1
	}
	k := c.code[checkedCode{o.Process, o.Stack, o.PC}]
	switch {
	case k == nil || !k.foreign:
		return 1
	case !o.Checked:
		c.dropped++
		return 0
	}
	return k.all / k.watched
}
