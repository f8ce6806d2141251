package coverage

import (
	"math/bits"
	"math/rand/v2"

	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
)

// What a hold reads, as collector's holds.window and sampler/ahead do by default.
const (
	// Where a clock counts accesses:
	countedClassified, countedMost = 1024, 3071
	// By time, and where holds read farther:
	timedClassified, timedMost, farMost = 8192, 24574, 73726
	firstCache                          = 32 << 10

	readAtOnce = 256
	perHold    = 8 // observations wanted
	// mostForetold instructions of a window are passed through the model of the processor, perTouch for each touch.
	mostForetold, perTouch = 3072, 3
	// endsEarly is the share of the holds in which something ends the reading before.
	endsEarly = 0.1
)

// window is what one hold reads ahead.
type window struct {
	from, length, first int   // touches; first: of these it is told what became of them
	opens               []int // those without another of the line
	chosen              int   // one of them, or -1
	distinct            int   // lines from it on
	octaves             [16]octave
	heads               *ahead.Heads // where the model foretells how long they take
	sizes               []int        // of these
}

// octave is a touch whose reuse was read, of so many with about as many lines in between.
type octave struct {
	n, at, after, distinct int
	touches                []int // all of them
}

// within counts touches in each of the window's heads, but not in the one before.
func (w *window) within(touches []int) []uint16 {
	if w.heads == nil {
		return nil
	}
	n := make([]uint16, len(w.sizes))
	for _, q := range touches {
		n[ahead.HeadOf(w.sizes, q-w.from)]++
	}
	return n
}

// setHeads says what comes when in the window.
func (s *Stream) setHeads(w *window) {
	w.sizes = ahead.HeadSizes(w.first)
	w.heads = &ahead.Heads{Touches: w.first, Accesses: w.first}
	for _, n := range w.sizes {
		w.heads.Instructions = append(w.heads.Instructions, int32(perTouch*n))
	}
	seen := make(map[uint32]struct{})
	length := min(w.length, ahead.HeadsReach*w.first)
	for q := w.from; q < w.from+max(length/2, w.first); q++ {
		line := s.line[s.at(q)]
		if _, ok := seen[line]; ok {
			continue
		}
		seen[line] = struct{}{}
		n := 1
		for p := s.after(q); p < min(q+length/2, w.from+length); p = s.after(p) {
			n++
		}
		uses := ahead.UsesOf(n)
		if at := q - w.from; at >= length/3 && at < length/2 {
			w.heads.Begun[uses]++
		}
		if q-w.from < w.first {
			w.heads.Met = append(w.heads.Met, ahead.Met{Head: uint8(ahead.HeadOf(w.sizes, q-w.from)), Uses: uint8(uses), N: 1})
		}
	}
}

// linesOf is how many lines so many touches go to.
func (s *Stream) linesOf(from, n int) (lines int) {
	for q := from; q < from+n; q++ {
		if s.after(q) >= from+n {
			lines++
		}
	}
	return lines
}

// read is a hold's window that begins at touch p, of so many touches at most, of which it is told what became of the first ones.
func (s *Stream) read(p, classified, most int, rng *rand.Rand) (w window) {
	limit := most
	if rng.Float64() < endsEarly {
		limit = 1 + rng.IntN(most-1)
	}
	w.from, w.first, w.length, w.chosen = p, min(classified, limit), min(classified, limit), -1
	s.extend(&w, limit)
	end := p + w.length
	for q := p; q < end; q++ {
		next := s.after(q)
		if q >= p+w.first {
			break
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
		o.touches = append(o.touches, q)
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

// extend reads on, as far as anything of what is told of has no reuse yet.
func (s *Stream) extend(w *window, limit int) {
	for w.length < limit && s.anyOpen(w) {
		w.length = min(w.length+readAtOnce, limit)
	}
}

// behind is how many lines are touched behind what a window tells of, in twice as many touches; ok says that nearly so much was read.
func (s *Stream) behind(w *window) (lines int, ok bool) {
	to := min(w.length, ahead.HeadsReach*w.first)
	return s.linesOf(w.from+w.first, to-w.first), ahead.ReadsAll(to, w.first)
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
	n := min(w.length, mostForetold/perTouch)
	cold := s.linesOf(w.from, n)
	t := &pipeline.Times{Instructions: perTouch * n, Accesses: n, Cold: cold}
	for q := w.from; q < w.from+n; q++ {
		t.Near += s.kinds[s.at(q)].plain() * off
	}
	for l := range t.Far {
		all := waits[l+1] * meanAlone * float64(cold) * off
		t.Far[l] = [2]float64{all / 8, all}
	}
	return t
}
