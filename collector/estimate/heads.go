package estimate

import (
	"math"
	"slices"
	"sort"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
)

// A hold begins at a random moment, and tells of touches from there on. What it tells of stands for the program where
// that is as long a time in each hold, however many touches are made in it: each touch is told of by holds that begin up to
// that long before it, and none by more of them than another. If each told of as many touches instead, and stood for as many as are
// made in the time they take, then of a program whose slow and fast phases are about as long those holds would count most that begin at
// the end of a slow one (TestHeadsOfPhases).

const (
	// headQuantile of the holds tell of less time than is taken of each; these count whole. So do those that were cut short.
	headQuantile = 0.1
	// cutShort is what tells of less than that part of what others tell of.
	cutShort = 0.5
)

// head is the beginning of what a hold tells of.
type head struct {
	touches      float64
	instructions float64
	met          float64 // blocks that are first touched in it
	begun        float64 // of these, such as were not touched for long
	open         float64 // touches without a reuse in what was read ahead
}

// between is such a part of the way from one head to another.
func (h head) between(o head, part float64) head {
	of := func(from, to float64) float64 { return from + part*(to-from) }
	return head{of(h.touches, o.touches), of(h.instructions, o.instructions), of(h.met, o.met), of(h.begun, o.begun), of(h.open, o.open)}
}

// heads are a hold's.
type heads struct {
	all   []head
	times *pipeline.Times // of the hold's beginning
	met   float64         // blocks that are first touched in that
	each  float64         // accesses that a touch takes
	upTo  float64         // how much of them counts: so many heads
	class int
	probed
}

// newHeads are of the holds of which it is known what comes when, by hold.
func (s *stage) newHeads() map[int]*heads {
	out := make(map[int]*heads)
	begun := s.newBegun()
	if begun == nil {
		return out
	}
	for i := range s.Holds {
		h := &s.Holds[i]
		if h.Heads == nil || h.Times == nil || !(h.Times.Accesses > 0 && h.Times.Near > 0) {
			continue
		}
		x := &heads{all: make([]head, len(h.Heads.Instructions)), times: h.Times, each: float64(h.Heads.Accesses) / float64(h.Heads.Touches)}
		for k, touches := range ahead.HeadSizes(h.Heads.Touches) {
			x.all[k].touches, x.all[k].instructions = float64(touches), float64(h.Heads.Instructions[k])
		}
		for _, m := range h.Heads.Met {
			x.all[m.Head].met += float64(m.N)
			x.all[m.Head].begun += begun[m.Uses] * float64(m.N)
		}
		out[i+1] = x
	}
	for _, o := range s.Seen {
		if x := out[o.Hold]; x != nil && o.State != record.Void && o.Soon == 0 && len(o.Heads) == len(x.all) {
			for k, n := range o.Heads {
				x.all[k].open += float64(n)
			}
		}
	}
	for _, x := range out {
		x.sum()
	}
	return out
}

// sum adds to each head what those before it have.
func (x *heads) sum() {
	for k := 1; k < len(x.all); k++ {
		h, before := &x.all[k], &x.all[k-1]
		h.met, h.begun, h.open = h.met+before.met, h.begun+before.begun, h.open+before.open
	}
	x.upTo = float64(len(x.all))
	told := float64(x.times.Accesses) / x.each
	k := sort.Search(len(x.all), func(k int) bool { return x.all[k].touches >= told })
	x.met = max(x.all[min(k, len(x.all)-1)].met, 1)
}

// taken is as much of a hold as counts.
func (x *heads) taken() head { return x.at(x.upTo) }

// at is what there is in so many heads, none or more.
func (x *heads) at(n float64) head {
	whole, part := math.Modf(n)
	var h head
	if whole > 0 {
		h = x.all[int(whole)-1]
	}
	if part > 0 {
		h = h.between(x.all[int(whole)], part)
	}
	return h
}

// window is a head as if it were all that the hold tells of: the processor takes as long for an instruction, and as long
// for a block that was not touched before, as in the hold's beginning.
func (x *heads) window(h head) foretoldWindow {
	blocks := h.met / x.met
	t := pipeline.Times{
		Instructions: int(math.Round(h.instructions)), Accesses: int(math.Ceil(h.touches * x.each)), Cold: int(math.Round(blocks * float64(x.times.Cold))), Lone: int(math.Ceil(blocks * float64(x.times.Lone))),
		Near: x.times.Near * h.instructions / float64(x.times.Instructions),
	}
	for level := range t.Far {
		for i, ns := range x.times.Far[level] {
			t.Far[level][i] = blocks * ns
		}
	}
	for degree, n := range x.times.Crowded {
		t.Crowded[degree] = int(math.Round(blocks * float64(n)))
	}
	return foretoldWindow{times: &t, open: h.begun / h.touches, class: x.class, probed: x.probed}
}

// lasts is how long the first so many heads take, in ns.
func (f *foretold) lasts(x *heads, n int) float64 {
	w := x.window(x.all[n-1])
	return f.perAccess(w, 1) * float64(w.times.Accesses)
}

// takeHeads has each hold tell of as long a time.
func (f *foretold) takeHeads() {
	if len(f.heads) == 0 {
		return
	}
	most := 0.0 // touches
	for _, x := range f.heads {
		most = max(most, x.all[len(x.all)-1].touches)
	}
	var all []float64
	for _, x := range f.heads {
		if x.all[len(x.all)-1].touches >= cutShort*most {
			all = append(all, f.lasts(x, len(x.all)))
		}
	}
	slices.Sort(all)
	limit := all[int(headQuantile*float64(len(all)-1))]
	for hold, x := range f.heads {
		n := 1 + sort.Search(len(x.all), func(k int) bool { return f.lasts(x, k+1) >= limit })
		switch {
		case n > len(x.all):
			x.upTo = float64(len(x.all))
		case n == 1:
			x.upTo = 1
		default:
			before, after := f.lasts(x, n-1), f.lasts(x, n)
			x.upTo = float64(n) - max(0, after-limit)/max(after-before, math.SmallestNonzeroFloat64)
		}
		f.windows[hold] = x.window(x.taken())
	}
}

// late is the share of what an observation stands for that comes too late in its hold to count; less than none where it comes early.
func (f *foretold) late(o *record.Observation) float64 {
	x := f.heads[o.Hold]
	if x == nil || len(o.Heads) != len(x.all) {
		return 0
	}
	whole, part := math.Modf(x.upTo)
	var early, all float64
	for k, n := range o.Heads {
		switch {
		case k < int(whole):
			early += float64(n)
		case k == int(whole):
			early += part * float64(n)
		}
		all += float64(n)
	}
	return 1 - early/x.taken().touches/(all/x.all[len(x.all)-1].touches)
}

// openShare is what part of the touches has no reuse in what was read ahead, by as much of each hold as counts.
func (f *foretold) openShare() float64 {
	var open, all float64
	for hold, x := range f.heads {
		rate := 1 / f.perAccess(f.windows[hold], 1)
		h := x.taken()
		open, all = open+rate*h.open/h.touches, all+rate
	}
	return open / max(all, math.SmallestNonzeroFloat64)
}

// begun tells blocks that a hold's thread comes to after a long time from those that it was just using when it was held: by how
// often they are touched from there on. Of those that it comes to in the midst of what was read it is known that they were not touched
// shortly before: they tell how often a block is touched then. It is the probability that one that is touched so often, by
// ahead.UsesOf, was not touched before.
type begun [len(ahead.Uses{})]float64

// newBegun is nil where no hold has come to such blocks.
func (s *stage) newBegun() *begun {
	var all ahead.Uses
	for i := range s.Holds {
		if h := s.Holds[i].Heads; h != nil {
			for k, n := range h.Begun {
				all[k] += n
			}
		}
	}
	var b begun
	more := 0.0 // are touched as often or oftener
	for k := len(all) - 1; k >= 0; k-- {
		if more += float64(all[k]); more > 0 {
			b[k] = float64(all[k]) / more
		}
	}
	if more == 0 {
		return nil
	}
	return &b
}
