package sharing

import (
	"math"
	"sort"

	"github.com/rdx-profiler/rdx/collector/record"
)

// segment is what a window has of a line.
type segment struct {
	window  *record.Stretch
	touches []record.LineTouch
}

// spans are the times, in instructions, at which a chance is worked out; in between it is interpolated.
var spans = func() (out []int) {
	for t := 1; t < 1<<14; t = max(t+1, t*5/4) {
		out = append(out, t)
	}
	return out
}()

// chance is the probability that a thread writes a line within so many of its instructions, from a random moment of its
// run on, by spans.
type chance struct {
	within []float64
	last   float64 // the probability of none per instruction, beyond these, as a logarithm
}

// none is of who was never seen to write it.
var none = &chance{}

// newChance takes the windows of the thread, of which segments have touched the line. Of these, writes
// says which count.
func newChance(windows []*record.Stretch, segments []segment, writes func(record.LineTouch) bool) *chance {
	at := make(map[*record.Stretch][]int)
	for _, s := range segments {
		for _, t := range s.touches {
			if of := at[s.window]; writes(t) && (len(of) == 0 || of[len(of)-1] != int(t.At)) {
				at[s.window] = append(of, int(t.At))
			}
		}
	}
	return chanceOf(windows, func(w *record.Stretch) (writes []int, length int) { return at[w], w.Length })
}

// chanceOf takes windows of a thread, of each of which of says when it writes and how long it is.
func chanceOf(windows []*record.Stretch, of func(w *record.Stretch) (writes []int, length int)) *chance {
	c := &chance{within: make([]float64, len(spans))}
	any, all := false, 0
	for _, w := range windows {
		at, length := of(w)
		all += length
		if len(at) > 0 && length > 0 {
			any = true
			c.add(at, length)
		}
	}
	if !any {
		return none
	}
	for i := range c.within {
		c.within[i] /= float64(len(windows))
	}
	// Beyond what windows show writes are taken to come by chance.
	mean := max(all/len(windows), 1)
	i := min(sort.SearchInts(spans, mean), len(spans)-1)
	c.last = math.Log1p(-min(c.within[i], 1-1e-9)) / float64(spans[i])
	for j := i + 1; j < len(spans); j++ {
		c.within[j] = max(-math.Expm1(c.last*float64(spans[j])), c.within[j-1])
	}
	return c
}

// add takes a window of so many instructions, with writes at some of them: of each span the share of its places in
// the window in which one falls. A span that has hardly any place goes by one half as long.
func (c *chance) add(at []int, length int) {
	missed := func(span int) float64 {
		starts, free, last := length-span+1, 0, -1
		for _, a := range at {
			free += max(0, a-span-last)
			last = a
		}
		free += max(0, length-span-last)
		return float64(free) / float64(starts)
	}
	half := max(length/2, 1)
	atHalf := missed(half)
	for i, span := range spans {
		if span <= length*4/5 {
			c.within[i] += 1 - missed(span)
		} else {
			c.within[i] += 1 - math.Pow(atHalf, float64(span)/float64(half))
		}
	}
}

// in is the chance within so many instructions.
func (c *chance) in(span float64) float64 {
	if c.within == nil || span <= 0 {
		return 0
	}
	last := len(spans) - 1
	if span >= float64(spans[last]) {
		return max(-math.Expm1(c.last*span), c.within[last])
	}
	i := sort.Search(len(spans), func(i int) bool { return float64(spans[i]) >= span })
	if i == 0 {
		return c.within[0] * span
	}
	from, to := float64(spans[i-1]), float64(spans[i])
	return c.within[i-1] + (c.within[i]-c.within[i-1])*(span-from)/(to-from)
}
