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
	ended  []float64 // weight of uses by the time of their reuse, in bins of footprintBins
	left   []float64 // likewise, of those that had none until then
	weight float64
	n      int

	curve *model.Footprint // nil before fit
}

var footprintBins = model.LogBins(32)

// leastFootprint is how many observations of a thread tell more than those of all threads.
const leastFootprint = 100

func newFootprint(tid int) *footprint {
	return &footprint{tid: tid, ended: make([]float64, footprintBins.Len()), left: make([]float64, footprintBins.Len())}
}

// footprints takes all that was read ahead.
func (s *Session) footprints() *footprints {
	f := &footprints{threads: make(map[*process][]*footprint), all: newFootprint(0)}
	for _, o := range s.seen {
		if o.state != done || o.ownTime() == 0 {
			continue
		}
		f.all.add(o)
		f.of(o).add(o)
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
	t := newFootprint(o.tid)
	f.threads[o.process] = append(threads, t)
	return t
}

// ownTime is until when the observation's own thread, by what was read ahead, touched the datum again, or did not; 0 if
// nothing was.
func (o *observation) ownTime() int { return max(o.soon, o.after) }

func (p *footprint) add(o *observation) {
	w := o.epoch.perObservation() * o.touches()
	i := footprintBins.Index(uint64(o.ownTime()))
	if o.soon > 0 {
		p.ended[i] += w
	} else {
		p.left[i] += w
	}
	p.weight += w
	p.n++
}

// at is how many different blocks n touches go to, 0 if that is not known.
func (p *footprint) at(n float64) float64 {
	if p.curve == nil {
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
