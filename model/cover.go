package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// MissWeights is the predicted misses of each code location in a fully
// associative LRU cache of the given number of bytes: low-locality PC
// selection (Schuff et al., section 6). key names the location of a stack,
// leaf first.
//
// A miss is counted where it happens: a reuse's at the reuse. Where none was
// seen (cold, censored, pruned, invalidated) the use stands for it, which is
// right for cold accesses and the best there is for the others. Weights are
// accesses; lost records have none. Where distances are exact, those of a record
// count as their mean: they lie in one bin, which an edge of the profile's own
// caches does not cut.
func MissWeights[K comparable](p *Profile, bytes int64, key func(stack []*Location) K) (map[K]float64, error) {
	if bytes < int64(p.Block) {
		return nil, fmt.Errorf("a cache of %d bytes holds no block of %d", bytes, p.Block)
	}
	q := *p
	q.Caches = []Cache{{Size: bytes}}
	q.Records = slices.Clone(p.Records)
	if err := q.Derive(); err != nil {
		return nil, err
	}
	weights := map[K]float64{}
	for i := range q.Records {
		r := &q.Records[i]
		misses := 0.0
		if p.ExactDistances {
			misses = r.exactMisses(p.Block, bytes)
		} else {
			misses = r.Misses[0]
		}
		if !(misses > 0) {
			continue
		}
		stack := r.Use
		if r.Kind == Reuse {
			stack = r.Reuse
		}
		weights[key(stack)] += misses
	}
	return weights, nil
}

// exactMisses are those of an exact profile's record in a cache of that many bytes.
func (r *Record) exactMisses(block int, bytes int64) float64 {
	weight, n := r.exactReach(block, []uint64{uint64(bytes / int64(block))})
	return weight * float64(n)
}

// exactReach says of how many of some sizes, in blocks and increasing, an exact profile's record misses in, and its
// misses there.
func (r *Record) exactReach(block int, sizes []uint64) (weight float64, n int) {
	if !r.outcome() {
		return 0, 0
	}
	if r.Kind != Reuse {
		return r.Accesses, len(sizes)
	}
	mean, ok := r.MeanDistance()
	if !ok {
		return 0, 0
	}
	n, _ = slices.BinarySearch(sizes, uint64(math.Round(mean/float64(block)))+1)
	return r.Reuses, n
}

// Cover is the fewest keys that make up the share of all weight, from 0 to 1,
// the heaviest first. Ties go to the smaller key, so that the answer does not
// depend on map order.
func Cover[K cmp.Ordered](weights map[K]float64, share float64) []K {
	keys := heaviest(weights, len(weights))
	var total float64
	for _, k := range keys {
		total += weights[k]
	}
	var sum float64
	for i, k := range keys {
		// Of many parts the sum may be less than the whole by rounding.
		if sum >= share*total*(1-1e-12) {
			return keys[:i]
		}
		sum += weights[k]
	}
	return keys
}
