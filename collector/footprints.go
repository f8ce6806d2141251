package collector

import (
	"math"

	"github.com/rdx-profiler/rdx/model"
)

// footprints are how many different blocks threads touch in a number of touches of their own, by
// how many of those observed are not touched again as far as was read ahead: what a
// thread that runs beside another brings between its uses and reuses.
type footprints struct {
	threads map[*process][]*footprint
	all     *footprint // of the session, for threads of which too little is known
}

// footprint is that of a thread.
type footprint struct {
	tid    int
	ended  []float64 // weight of uses by the time of their reuse, in bins of footprintBins; nil if there are too few
	left   []float64 // likewise, of those that had none until then
	weight float64
	n      int // observations

	curve *model.Footprint // nil before fit
}

var footprintBins = model.LogBins(32)

// leastFootprint is how many observations of a thread tell more than those of all threads.
const leastFootprint = 100

// footprints takes all that was read ahead.
func (s *Session) footprints() *footprints {
	f := &footprints{threads: make(map[*process][]*footprint), all: &footprint{}}
	for _, o := range s.seen {
		if o.state == done && o.ownTime() > 0 {
			t := f.of(o)
			t.weight += o.footprintWeight()
			t.n++
		}
	}
	// Of many threads few have a histogram of their own.
	for _, o := range s.seen {
		if o.state == done && o.ownTime() > 0 {
			f.all.add(o)
			if t := f.of(o); t.n >= leastFootprint {
				t.add(o)
			}
		}
	}
	return f
}

// of is the footprint of an observation's thread.
func (f *footprints) of(o *observation) *footprint {
	threads := f.threads[o.process]
	for _, t := range threads {
		if t.tid == o.tid {
			return t
		}
	}
	t := &footprint{tid: o.tid}
	f.threads[o.process] = append(threads, t)
	return t
}

// ownTime is until when the observation's own thread, by what was read ahead, touched the datum again, or did not; 0 if
// nothing was.
func (o *observation) ownTime() int { return max(o.soon, o.after) }

// footprintWeight is for how many touches the observation stands.
func (o *observation) footprintWeight() float64 { return o.epoch.perObservation() * o.touches() }

func (p *footprint) add(o *observation) {
	if p.ended == nil {
		p.ended, p.left = make([]float64, footprintBins.Len()), make([]float64, footprintBins.Len())
	}
	if i := footprintBins.Index(uint64(o.ownTime())); o.soon > 0 {
		p.ended[i] += o.footprintWeight()
	} else {
		p.left[i] += o.footprintWeight()
	}
}

// at is how many different blocks n touches go to, 0 if that is not known.
func (p *footprint) at(n float64) float64 {
	if p.curve == nil {
		if p.ended == nil {
			return 0 // nothing was read ahead
		}
		times := model.NewHist(footprintBins)
		times.Cold = model.KaplanMeier(times.W, footprintBins, p.ended, p.left, 0)
		p.curve = &model.Footprint{}
		if p.curve.Reset(times) != nil {
			return 0 // no weight
		}
	}
	return p.curve.At(n)
}

// beside is how many different blocks one of the other threads of o's process touches in n
// touches, on average.
func (f *footprints) beside(o *observation, n float64) float64 {
	var blocks, weight float64
	for _, t := range f.threads[o.process] {
		if t.tid == o.tid {
			continue
		}
		of := t
		if t.n < leastFootprint {
			of = f.all
		}
		blocks += t.weight * of.at(n)
		weight += t.weight
	}
	if weight == 0 {
		return math.Min(f.all.at(n), n)
	}
	return math.Min(blocks/weight, n)
}
