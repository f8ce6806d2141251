package estimate

import (
	"fmt"

	"github.com/rdx-profiler/rdx/model"
)

// A timer's samples are random moments of CPU time, and where nothing counts accesses it
// must be assumed how many each stands for: here, for as many touches of blocks as any
// other. That it were as many accesses makes too much of code that copies and fills
// memory, whose accesses have 16 to 64 bytes and last the longer: zstd's main thread makes
// 0.8 % of the accesses, 2.8 % of the touches, in 2.7 % of the time. (Vectors that are
// computed on in the first cache are not slower than single words: their touches are
// too few then.) Of lines, which few accesses overlap two of, both are the same.

// Overlaps are how many blocks an access overlaps, by hold.
type Overlaps struct {
	Latest   float64 // of the hold at work
	perTouch float64 // accesses, summed over holds that came by time
	holds    int     // of these
}

// Note takes what was read ahead in a hold, one of whose accesses overlaps that many blocks; timed: it came at a
// random moment of CPU time, and nothing counts accesses.
func (o *Overlaps) Note(blocks, touches, accesses int, timed bool) {
	if o.Latest = float64(blocks); accesses > 0 {
		o.Latest = float64(touches) / float64(accesses)
	}
	if timed {
		o.perTouch += 1 / o.Latest
		o.holds++
	}
}

// weighByOverlap has each hold that came by time stand for as many touches, unless it is known how many
// accesses it stands for.
func (s *stage) weighByOverlap() {
	if s.Rates.byCode() || s.Overlaps.holds == 0 {
		return
	}
	for _, o := range s.Seen {
		if o.Overlap > 0 {
			o.Even = s.touchesPerAccess() / o.Overlap
		}
	}
}

// touchesPerAccess is how many blocks an access overlaps on average, by what was read
// ahead; 0 if nothing was. Holds with the same number of touches have the fewer
// accesses the more blocks each of these overlaps, so that it is the harmonic mean.
func (s *stage) touchesPerAccess() float64 {
	if s.Overlaps.holds > 0 && !s.Rates.byCode() {
		return float64(s.Overlaps.holds) / s.Overlaps.perTouch
	}
	return float64(s.touched) / float64(max(s.readAhead, 1))
}

// overlapComment says what was assumed.
func (s *stage) overlapComment(p *model.Profile) {
	if s.Overlaps.holds > 0 && !s.Rates.byCode() {
		p.Comments = append(p.Comments, fmt.Sprintf("each hold is taken to stand for as many touches of blocks of %d bytes, of which an access overlaps %.2f on average", s.Block, s.touchesPerAccess()))
	}
}
