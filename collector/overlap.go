package collector

import (
	"fmt"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// A timer's samples are random moments of CPU time, and where nothing counts accesses it
// must be assumed how many each stands for: here, for as many touches of blocks as any
// other. That it were as many accesses makes too much of code that copies and fills
// memory, whose accesses have 16 to 64 bytes and last the longer: zstd's main thread makes
// 0.8 % of the accesses, 2.8 % of the touches, in 2.7 % of the time. (Vectors that are
// computed on in the first cache are not slower than single words: their touches are
// too few then.) Of lines, which few accesses overlap two of, both are the same.

// overlaps are how many blocks an access overlaps, by hold.
type overlaps struct {
	latest   float64 // of the hold at work; 0: not known
	perTouch float64 // accesses, summed over holds
	holds    int
}

// noteOverlap takes what was read ahead in a hold.
func (s *Session) noteOverlap(ahead *ahead.Ahead) {
	o := &s.overlaps
	o.latest = 0
	if s.source.Unit() != sampler.Nanoseconds || s.clock.Counted != nil {
		return
	}
	if o.latest = float64(ahead.Use.Blocks(s.block())); ahead.Accesses > 0 {
		o.latest = float64(ahead.Touches) / float64(ahead.Accesses)
	}
	o.perTouch += 1 / o.latest
	o.holds++
}

// weighByOverlap has each hold stand for as many touches, unless it is known how many
// accesses it stands for.
func (s *Session) weighByOverlap() {
	if s.rates.byCode() {
		return
	}
	for _, o := range s.seen {
		if o.overlap > 0 {
			o.even = s.touchesPerAccess() / o.overlap
		}
	}
}

// touchesPerAccess is how many blocks an access overlaps on average, by what was read
// ahead; 0 if nothing was. Holds with the same number of touches have the fewer
// accesses the more blocks each of these overlaps, so that it is the harmonic mean.
func (s *Session) touchesPerAccess() float64 {
	if s.overlaps.holds > 0 && !s.rates.byCode() {
		return float64(s.overlaps.holds) / s.overlaps.perTouch
	}
	return float64(s.touched) / float64(max(s.readAhead, 1))
}

// overlapComment says what was assumed.
func (s *Session) overlapComment(p *model.Profile) {
	if s.overlaps.holds > 0 && !s.rates.byCode() {
		p.Comments = append(p.Comments, fmt.Sprintf("each hold is taken to stand for as many touches of blocks of %d bytes, of which an access overlaps %.2f on average", s.block(), s.touchesPerAccess()))
	}
}
