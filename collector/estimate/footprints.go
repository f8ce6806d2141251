package estimate

import (
	"math"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
)

// footprints are how many different blocks threads touch in a number of touches of their own, by
// how many of those observed are not touched again as far as was read ahead: what a
// thread that runs beside another brings between its uses and reuses.
type footprints struct {
	threads map[*target.Process][]*footprint
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
func (s *stage) footprints() *footprints {
	f := &footprints{threads: make(map[*target.Process][]*footprint), all: &footprint{}}
	for _, o := range s.Seen {
		if o.State == record.Done && o.OwnTime() > 0 {
			t := f.of(o)
			t.weight += o.Weight()
			t.n++
		}
	}
	// Of many threads few have a histogram of their own.
	for _, o := range s.Seen {
		if o.State == record.Done && o.OwnTime() > 0 {
			f.all.add(o)
			if t := f.of(o); t.n >= leastFootprint {
				t.add(o)
			}
		}
	}
	return f
}

// of is the footprint of an observation's thread.
func (f *footprints) of(o *record.Observation) *footprint {
	threads := f.threads[o.Process]
	for _, t := range threads {
		if t.tid == o.TID {
			return t
		}
	}
	t := &footprint{tid: o.TID}
	f.threads[o.Process] = append(threads, t)
	return t
}

func (p *footprint) add(o *record.Observation) {
	if p.ended == nil {
		p.ended, p.left = make([]float64, footprintBins.Len()), make([]float64, footprintBins.Len())
	}
	if i := footprintBins.Index(uint64(o.OwnTime())); o.Soon > 0 {
		p.ended[i] += o.Weight()
	} else {
		p.left[i] += o.Weight()
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

// ofOthers is how many different blocks one of the other threads of o's process touches in n
// touches, on average.
func (f *footprints) ofOthers(o *record.Observation, n float64) float64 {
	var blocks, weight float64
	for _, t := range f.threads[o.Process] {
		if t.tid == o.TID {
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
