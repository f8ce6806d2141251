package estimate

import (
	"maps"
	"slices"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
)

// Look is the profile as far as miss ratios go of what a session has seen so far: without call stacks, data and what
// is told of how it went. What is still watched is not in it.
func Look(in Input, caches []model.Cache, binsPerOctave int) *model.Profile {
	s := NewStage(in)
	p := &model.Profile{Caches: caches, BinsPerOctave: binsPerOctave}
	s.foretold = s.findForetold(p)
	s.bare = true
	s.fillRecords(p)
	return p
}

// Apart is a copy of what estimating changes, and what a session goes on to change: for a draft, and for a Look by another
// goroutine.
func (in Input) Apart() Input {
	epochs := make(map[*record.Epoch]*record.Epoch)
	seen := make([]*record.Observation, len(in.Seen))
	for i, o := range in.Seen {
		c := *o
		if e := o.Epoch; e != nil {
			if epochs[e] == nil {
				copied := *e
				epochs[e] = &copied
			}
			c.Epoch = epochs[e]
		}
		seen[i] = &c
	}
	in.Seen, in.Holds = seen, slices.Clone(in.Holds)
	p := &in.Probes
	p.Values, p.Later, p.Before, p.Legs = slices.Clone(p.Values), slices.Clone(p.Later), slices.Clone(p.Before), slices.Clone(p.Legs)
	p.Failed = maps.Clone(p.Failed)
	return in
}
