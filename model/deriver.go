package model

// deriver fills derived fields for caches of the given sizes, in blocks.
type deriver struct {
	p     *Profile
	e     *estimate
	x     *local
	sizes []uint64

	// Per epoch, bin and what is known of the window's beginning, so that
	// records that share them do not repeat the work.
	known   map[derivedPlace]*derivedBin
	scratch []float64
}

type derivedPlace struct {
	epoch, bin int
	begin      beginning
}

// derivedBin is what a reuse there has: its mean distance in blocks, and its probability of
// missing in each size. That is whole for sizes before from, and 0 behind the part that is kept.
type derivedBin struct {
	distance float64
	whole    float64
	from     int
	miss     []float64
}

func (p *Profile) newDeriver(e *estimate, sizes []uint64) (*deriver, error) {
	d := &deriver{p: p, e: e, sizes: sizes, known: map[derivedPlace]*derivedBin{}, scratch: make([]float64, len(sizes))}
	var err error
	if !e.empty() && !p.ExactDistances {
		d.x, err = p.local(e)
	}
	return d, err
}

func (d *deriver) at(r *Record, i int) *derivedBin {
	k := derivedPlace{d.x.group(r), i, r.beginning()}
	if b := d.known[k]; b != nil {
		return b
	}
	b := &derivedBin{}
	d.known[k] = b
	clear(d.scratch)
	d.x.spreads(k.epoch, i, k.begin, func(p *spread, share float64) {
		b.distance += share * (p.c0 + p.c1) / 2
		b.whole += share
		for k, s := range d.sizes {
			d.scratch[k] += share * (1 - p.below(float64(s)))
		}
	})
	to := len(d.scratch)
	for to > 0 && d.scratch[to-1] == 0 {
		to--
	}
	for b.from < to && d.scratch[b.from] == b.whole {
		b.from++
	}
	b.miss = append(b.miss, d.scratch[b.from:to]...)
	return b
}

// fill sets what is derived of one record, whose Misses have len(sizes). Of exact profiles the
// other fields stay.
func (d *deriver) fill(r *Record) {
	clear(r.Misses)
	if d.p.ExactDistances {
		for k, s := range d.sizes {
			r.Misses[k] = r.exactMisses(d.p.Block, int64(s)*int64(d.p.Block))
		}
		return
	}
	r.Reuses, r.Distance = 0, 0
	if !r.outcome() {
		return
	}
	everywhere := 0.0 // weight that misses at every size
	own := d.e.of(r)
	switch r.Kind {
	case Reuse:
		d.fillReuse(r)
	case Invalidated:
		everywhere = r.Accesses * own.grow[d.e.bins.Index(max(r.Time, 1))]
	case Cold:
		everywhere = r.Accesses * own.never
	case Censored, Pruned:
		if d.e.bins.Index(max(r.Time, 1)) >= own.tail {
			everywhere = r.Accesses * own.never
		}
	}
	for k := range r.Misses {
		r.Misses[k] += everywhere
	}
}

func (d *deriver) fillReuse(r *Record) {
	own := d.e.of(r)
	perObservation := 0.0
	if r.Accesses > 0 {
		perObservation = float64(r.Observations) / r.Accesses * float64(d.p.Block)
	}
	if blocks, ok := r.counted(); ok {
		r.Reuses = r.Accesses * own.grow[d.e.bins.Index(r.Time)]
		r.Distance = r.Reuses * perObservation * float64(blocks)
		for k, s := range d.sizes {
			if blocks >= s {
				r.Misses[k] = r.Reuses
			}
		}
		return
	}
	d.e.each(r, func(i int, share float64) {
		w := r.Accesses * share * own.grow[i]
		if w == 0 {
			return
		}
		b := d.at(r, i)
		r.Reuses += w
		r.Distance += w * perObservation * b.distance
		for k := range min(b.from, len(r.Misses)) {
			r.Misses[k] += w * b.whole
		}
		for k, m := range b.miss {
			r.Misses[b.from+k] += w * m
		}
	})
}
