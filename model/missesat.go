package model

import "fmt"

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
