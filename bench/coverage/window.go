package coverage

import (
	"math/bits"
	"math/rand/v2"

	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
)

// What a hold reads, as collector's holds.window and sampler/ahead do by default.
const (
	classified = 1024
	readMost   = 3071
	readAtOnce = 256
	perHold    = 8 // observations wanted
	// The same where nothing is watched.
	unwatchedClassified, unwatchedMost = 8192, 24574
	// endsEarly is the share of the holds in which something ends the reading before.
	endsEarly = 0.1
)

// window is what one hold reads ahead.
type window struct {
	from, length, first int   // touches; first: of these it is told what became of them
	opens               []int // those without another of the line
	chosen              int   // one of them, or -1
	distinct            int   // lines from it on
	cold                int   // touches of lines for the first time
	octaves             [16]octave
}

// octave is a touch whose reuse was read, of so many with about as many lines in between.
type octave struct{ n, at, after, distinct int }

// read is a hold's window that begins at touch p, of so many touches of which it is told what became of the first ones.
func (s *Stream) read(p, classified, most int, rng *rand.Rand) (w window) {
	limit := most
	if rng.Float64() < endsEarly {
		limit = 1 + rng.IntN(most)
	}
	w.from, w.first, w.length, w.chosen = p, min(classified, limit), min(classified, limit), -1
	for w.length < limit && s.anyOpen(&w) {
		w.length = min(w.length+readAtOnce, limit)
	}
	end := p + w.length
	for q := p; q < end; q++ {
		next := s.after(q)
		if next >= end {
			w.cold++ // as many lines are touched last as first
		}
		if q >= p+w.first {
			continue
		}
		if next >= end {
			w.opens = append(w.opens, q)
			if rng.IntN(len(w.opens)) == 0 {
				w.chosen = q
			}
			continue
		}
		d := int(s.distance[s.at(next)])
		o := &w.octaves[min(max(bits.Len(uint(d))-bits.Len(ahead.NearBlocks-1), 0), len(w.octaves)-1)]
		if o.n++; rng.IntN(o.n) == 0 {
			o.at, o.after, o.distinct = q, next-q, d+1
		}
	}
	if w.chosen >= 0 {
		w.distinct = s.distinctFrom(&w, w.chosen)
	}
	return w
}

// distinctFrom is how many lines are touched from a touch to the window's end.
func (s *Stream) distinctFrom(w *window, from int) (n int) {
	for q := from; q < w.from+w.length; q++ {
		if s.after(q) >= w.from+w.length {
			n++
		}
	}
	return n
}

func (s *Stream) anyOpen(w *window) bool {
	for q := w.from; q < w.from+w.first; q++ {
		if s.after(q) >= w.from+w.length {
			return true
		}
	}
	return false
}

// foretold is what the model of the processor says of a window, off by a factor.
func (s *Stream) foretold(w *window, off float64) *pipeline.Times {
	t := &pipeline.Times{Instructions: 3 * w.length, Accesses: w.length, Cold: w.cold}
	for q := w.from; q < w.from+w.length; q++ {
		t.Near += s.kinds[s.at(q)].plain() * off
	}
	for l := range t.Far {
		all := waits[l+1] * meanAlone * float64(w.cold) * off
		t.Far[l] = [2]float64{all / 8, all}
	}
	return t
}
