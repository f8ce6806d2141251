package model

import "math"

// maybeReused is how much of the unfinished weight may be reused, for all that 95 % confidence
// can tell, before a cache of each of the given sizes has filled, although no reuse was seen so late.
//
// Kaplan-Meier takes what outlives the last reuse for never reused, and the
// bootstrap, which draws no reuse where there was none, is sure of it. But if k
// observations were followed from there to the age at which the cache is full, and none was
// reused, then as little as a share of 0.05^(1/k) may outlive that age: with
// 1 it is a twentieth, with 20 it is 86 %. What was seen to be touched since counts as a cache that is full, too.
func (e *estimate) maybeReused(blocks []uint64) []float64 {
	out := make([]float64, len(blocks))
	var x SSX
	if !(e.unfinished > 0) || x.Reset(e.net) != nil {
		return out
	}
	for i, size := range blocks {
		full := e.bins.Len() - 1 // bin of the age at which the cache is full
		for b := range x.bin {
			if x.bin[b].c >= float64(size) {
				full = b
				break
			}
		}
		for _, s := range e.strata {
			if full <= s.tail {
				continue // what outlives the last reuse has a larger distance
			}
			out[i] += (s.unfinished - s.surely(size)) * (1 - math.Pow(0.05, 1/s.followed(full)))
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
