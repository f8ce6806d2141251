package model

import "fmt"

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

// MissesAt calls f with each record's expected misses in fully associative LRU caches of the
// given sizes, in blocks and increasing: Record.Misses as Derive makes them, or, where distances
// are exact, as MissWeights counts them. misses is of len(sizes), decreases, and is not to be
// kept. Records that tell no outcome have none. As Derive, it is for profiles of one kind of stack.
func (p *Profile) MissesAt(sizes []uint64, f func(i int, misses []float64)) error {
	e, err := p.estimate()
	if err != nil {
		return fmt.Errorf("misses: %w", err)
	}
	d, err := p.newDeriver(e, sizes)
	if err != nil {
		return fmt.Errorf("misses: %w", err)
	}
	misses := make([]float64, len(sizes))
	for i := range p.Records {
		r := p.Records[i]
		r.Misses = misses
		d.fill(&r)
		f(i, misses)
	}
	return nil
}

// ClusterSquares is the sum over clusters of the square of what values, by record of the list, add
// up to in each: of PerAccess's band the part that depends on them. values has n numbers for each
// record, such as its misses in n caches.
func (p *Profile) ClusterSquares(records []*Record, n int, values func(k int) []float64) []float64 {
	out := make([]float64, n)
	holds := map[uint64][]float64{}
	var groups [JackknifeGroups + 1][]float64
	add := func(sum []float64, v []float64) []float64 {
		if sum == nil {
			sum = make([]float64, n)
		}
		for i, x := range v {
			sum[i] += x
		}
		return sum
	}
	last := 0
	for k, r := range records {
		v := values(k)
		if r.Group > 0 && r.Group <= JackknifeGroups {
			groups[r.Group] = add(groups[r.Group], v)
			last = max(last, r.Group)
		}
		if r.Hold != 0 {
			holds[r.Hold] = add(holds[r.Hold], v)
			continue
		}
		by := 1 / p.independent(r)
		for i, x := range v {
			out[i] += x * x * by
		}
	}
	for _, sum := range holds {
		for i, x := range sum {
			out[i] += x * x
		}
	}
	parts := make([]float64, last)
	for i := range out {
		for g := range parts {
			if parts[g] = 0; groups[g+1] != nil {
				parts[g] = groups[g+1][i]
			}
		}
		out[i] = max(out[i], groupVariance(parts))
	}
	return out
}

// CountBand is the exact 95 % band of the mean of a Poisson count of which k were seen; k need not
// be whole (Garwood 1936).
func CountBand(k float64) (low, high float64) { return garwood(k, 0.05) }
