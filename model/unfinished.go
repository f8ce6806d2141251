package model

import (
	"cmp"
	"math"
	"slices"
)

// maybeReused is how much of the unfinished weight may be reused, for all that 95 % confidence
// can tell, before a cache of each of the given sizes has filled, although no reuse was seen so late.
//
// Kaplan-Meier takes what outlives the last reuse for never reused, and the
// bootstrap, which draws no reuse where there was none, is sure of it. But if k
// observations were followed from there to the age at which the cache is full, and none was
// reused, then as little as a share of 0.05^(1/k) may outlive that age: with
// 1 it is a twentieth, with 20 it is 86 %. What was seen to be touched since counts as a cache that is full, too. And of what was read
// ahead to its end it is known that no more was touched: a loop over a few blocks fills no cache, however long it takes.
func (e *estimate) maybeReused(blocks []uint64) []float64 {
	out := make([]float64, len(blocks))
	var x SSX
	if !(e.unfinished > 0) || x.Reset(e.net) != nil {
		return out
	}
	read := e.readAhead()
	for i, size := range blocks {
		full := e.bins.Len() - 1 // bin of the age at which the cache is full
		for b := range x.bin {
			if x.bin[b].c >= float64(size) {
				full = b
				break
			}
		}
		for _, s := range e.strata {
			late := s.unfinished * read.mayHit(s, size)
			if full > s.tail { // else what outlives the last reuse has a larger distance, as far as its time tells
				late = max(late, (s.unfinished-s.surely(size))*(1-math.Pow(0.05, 1/s.followed(full))))
			}
			out[i] += late
		}
	}
	return out
}

// MaybeHits is, for each of Caches, how many of the accesses predicted to miss may hit, for
// all that can be told with 95 % confidence: they were not seen reused, and too few of them
// were followed until such a cache is full.
func (p *Profile) MaybeHits() ([]float64, error) {
	e, err := p.estimate()
	if err != nil {
		return nil, err
	}
	return e.maybeReused(p.cacheBlocks()), nil
}

// surely is how much of the unfinished weight misses in a cache of so many blocks, whatever comes.
func (s *stratum) surely(blocks uint64) (w float64) {
	for _, f := range s.far {
		if f.bin >= s.tail && f.blocks >= blocks {
			w += s.endless * f.weight
		}
	}
	return min(w, s.unfinished)
}

// followed is as how many independent observations those count that were cut
// off in a bin or later.
func (s *stratum) followed(bin int) float64 {
	var w, squares float64
	for i := bin; i < len(s.seen.cut); i++ {
		w += s.seen.cut[i]
		squares += s.squares.cut[i]
	}
	if !(squares > 0) {
		return 0
	}
	return w * w / squares
}

// readAhead is what reading ahead tells of uses without a reuse by how many blocks were touched since: Kaplan-Meier by distances in place of
// times. A loop over a few blocks touches no more of them, however long it takes.
type readAhead struct {
	bins  *Bins
	far   []readUse // the nearest first
	near  []uint64  // distances at which reuses were counted, increasing
	alive []float64 // by these: what share of uses has no reuse up to there
}

// readUse is a use without a reuse, and what share of uses has none so near.
type readUse struct {
	farUse
	alive float64
}

func (e *estimate) readAhead() *readAhead {
	c := &e.counted.blocks
	r := &readAhead{bins: e.bins, near: c.values, alive: make([]float64, len(c.values))}
	for _, s := range e.strata {
		if s.timed {
			continue
		}
		for _, f := range s.far {
			r.far = append(r.far, readUse{farUse: f})
		}
	}
	slices.SortFunc(r.far, func(a, b readUse) int {
		return cmp.Or(cmp.Compare(a.blocks, b.blocks), cmp.Compare(a.bin, b.bin), cmp.Compare(a.weight, b.weight))
	})
	risk := c.from(0)
	for i := range r.far {
		risk += r.far[i].weight
	}
	alive, at := 1.0, 0
	for i, d := range r.near {
		for ; at < len(r.far) && r.far[at].blocks < d; at++ {
			risk -= r.far[at].weight
		}
		alive *= max(1-c.weight[i]/risk, 0)
		risk -= c.weight[i]
		r.alive[i] = alive
	}
	for i := range r.far {
		r.far[i].alive = r.survive(r.far[i].blocks)
	}
	return r
}

// survive is what share of uses has no reuse before so many blocks are touched.
func (r *readAhead) survive(blocks uint64) float64 {
	if i, _ := slices.BinarySearch(r.near, blocks); i > 0 {
		return r.alive[i-1]
	}
	return 1
}

// hitsWithin is the factor within which the hits are known that are to be expected of what is not reused so far.
const hitsWithin = 2

// mayHit is what share of a stratum's uses that are not seen reused may be so before a cache of so many blocks is full, where nothing
// was followed farther than it was read ahead: as of those that were read half as far as any or farther. What ended sooner stands for others.
func (r *readAhead) mayHit(s *stratum, blocks uint64) float64 {
	if s.timed {
		return 0
	}
	var all, near, hits, beyond, squares float64
	end := r.survive(blocks)
	for _, f := range r.far {
		if 2*r.bins.Lo(f.bin) < r.bins.Lo(s.longest) {
			continue
		}
		if all += f.weight; f.blocks < blocks {
			near += f.weight
			hits += f.weight * (1 - end/f.alive)
		} else {
			beyond, squares = beyond+f.weight, squares+f.weight*f.weight
		}
	}
	if all == 0 {
		return 1
	}
	chance := 1.0
	if squares > 0 {
		chance = 1 - math.Pow(0.05, squares/(beyond*beyond))
	}
	return min(near, hitsWithin*hits+chance*near) / all
}
