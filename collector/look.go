package collector

import (
	"time"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// While a session runs it is looked, where Config.Look asks for it, how well a miss ratio is known by now. The tracing thread makes a
// copy of what it has seen, and the goroutine that waits for the session estimates.

const (
	lookFirst = time.Second
	// lookGrows is by which share of the time so far it is looked again: what is known grows with the root of it.
	lookGrows = 0.15
)

// toLookAt is a copy of what was seen so far, if it is time for a look. It is called on the tracing thread.
func (s *sampling) toLookAt(now time.Duration) *estimate.Input {
	begun := sampler.Monotonic() - time.Since(s.tracing.start)
	if s.cfg.Look == 0 || !s.handover.looksAfter(max(lookFirst, time.Duration(lookGrows*float64(now-begun))), now) {
		return nil
	}
	in := s.input(s.ticks.total(true), s.latest)
	in = in.Apart()
	return &in
}

// look is how well the miss ratio is known by what was seen, nil where it is not at all. Windows and the memory that
// the target has are not known yet.
func (b *backlog) look(in *estimate.Input) *model.Point {
	if in == nil {
		return nil
	}
	in.Stacks = b.table
	p := estimate.Look(*in, b.cfg.Caches, b.cfg.BinsPerOctave)
	c, err := p.MissRatios([]uint64{max(uint64(b.cfg.Look)/uint64(p.Block), 1)}, model.CurveOptions{})
	if err != nil {
		return nil // nothing was seen yet
	}
	return &c.Points[0]
}
