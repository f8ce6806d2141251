package model

import "iter"

// Quotable is the index of the largest cache with predicted misses worth
// looking at: with at least 10 independent observations behind them, below which
// a miss ratio is chance. It is -1 if there is none. Derive must have run.
func (p *Profile) Quotable() int {
	return p.QuotableOf(func(yield func(*Record) bool) {
		for i := range p.Records {
			if !yield(&p.Records[i]) {
				return
			}
		}
	})
}

// worthLooking is how many independent observations make a miss ratio more than chance.
const worthLooking = 10

// QuotableOf is Quotable for records that are not in the profile.
func (p *Profile) QuotableOf(records iter.Seq[*Record]) int {
	seen := make([]float64, len(p.Caches)) // misses, in independent observations
	largest := len(seen) - 1
	for r := range records {
		if largest < 0 || seen[largest] >= worthLooking {
			break // nothing that follows can change it
		}
		if !r.outcome() || !(r.Accesses > 0) {
			continue
		}
		for c := range min(len(seen), len(r.Misses)) {
			if !(r.Misses[c] > 0) {
				continue
			}
			seen[c] += min(r.Misses[c]/r.Accesses, 1) * p.independent(r)
		}
	}
	for c := largest; c >= 0; c-- {
		if seen[c] >= worthLooking {
			return c
		}
	}
	return -1
}

// independent is as how many independent observations a record's count: those
// that were read ahead share their hold with others, see DesignEffect.
func (p *Profile) independent(r *Record) float64 {
	if r.Squares > 0 && r.Accesses > 0 {
		return r.Accesses * r.Accesses / r.Squares
	}
	n := float64(max(r.Observations, 1))
	if r.Exact {
		n /= max(p.DesignEffect, 1)
	}
	return n
}

// Independent is the least number of independent observations that n of the
// profile's can be taken for.
func (p *Profile) Independent(n int64) float64 { return float64(n) / max(p.DesignEffect, 1) }
