package collector

import "github.com/rdx-profiler/rdx/model"

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
	process *process
	stack   model.StackKind
	use     uint64
}

type checked struct {
	watched, all float64
	foreign      bool
}

func (s *Session) checkWeights() *checkWeights {
	c := &checkWeights{code: make(map[checkedCode]*checked)}
	for _, o := range s.seen {
		if o.soon == 0 || o.state != done || o.stack == model.StackOwn {
			continue
		}
		key := checkedCode{o.process, o.stack, o.pc}
		k := c.code[key]
		if k == nil {
			k = &checked{}
			c.code[key] = k
		}
		w := o.epoch.perObservation() * o.touches()
		k.all += w
		if o.checked {
			k.watched += w
			k.foreign = k.foreign || o.endTID != 0
		}
	}
	return c
}

// of is the factor of an observation, 0 if others stand for it.
func (c *checkWeights) of(o *observation) float64 {
	if o.soon == 0 {
		return 1
	}
	k := c.code[checkedCode{o.process, o.stack, o.pc}]
	switch {
	case k == nil || !k.foreign:
		return 1
	case !o.checked:
		c.dropped++
		return 0
	}
	return k.all / k.watched
}
