package model

import (
	"math"
	"math/rand/v2"
)

// The accesses of one hold lie close together and tell much the same, so that what is independent
// is not the observation but the hold: errors are those of a sample of clusters. A record without
// a Hold is as many clusters as it has independent observations, see Profile.independent.

// byHold is something of each hold, in the order in which these come: what is summed over them is the same to the last bit
// whenever it is.
type byHold[T any] struct {
	index map[uint64]int
	all   []T
}

func (b *byHold[T]) of(hold uint64) *T {
	if b.index == nil {
		b.index = make(map[uint64]int)
	}
	i, ok := b.index[hold]
	if !ok {
		i = len(b.all)
		b.index[hold] = i
		b.all = append(b.all, *new(T))
	}
	return &b.all[i]
}

// clusterSums is the sum over clusters of the square of the sum of value over each one's records.
// Of records with a Group it is estimated: from the squares of their weights, or by how much the groups'
// sums differ, whichever is more, as the first knows nothing of clusters that are in several records.
func (p *Profile) clusterSums(records []*Record, value func(*Record) float64) (squares float64) {
	var holds byHold[float64]
	var groups [JackknifeGroups + 1]float64
	last := 0
	for _, r := range records {
		v := value(r)
		if r.Group > 0 && r.Group <= JackknifeGroups {
			groups[r.Group] += v
			last = max(last, r.Group)
		}
		if r.Hold == 0 {
			squares += v * v / p.independent(r)
		} else {
			*holds.of(r.Hold) += v
		}
	}
	for _, v := range holds.all {
		squares += v * v
	}
	return max(squares, groupVariance(groups[1:last+1]))
}

// groupVariance is the variance of the sum of the parts of a whole that were put together by chance.
func groupVariance(parts []float64) float64 {
	n := len(parts)
	if n < 2 {
		return 0
	}
	var sum, squares float64
	for _, v := range parts {
		sum += v
		squares += v * v
	}
	return max(0, squares-sum*sum/float64(n)) * float64(n) / float64(n-1)
}

// Holds is how many clusters the profile's outcomes were sampled in: what a "sample" is to a
// statistician.
func (p *Profile) Holds() int64 {
	var c holdCount
	for i := range p.Records {
		if r := &p.Records[i]; r.outcome() {
			c.add(p, r)
		}
	}
	return c.n
}

// holdCount counts the clusters of records, of which all have an outcome.
type holdCount struct {
	n    int64
	seen map[uint64]bool
}

func (c *holdCount) add(p *Profile, r *Record) {
	switch {
	case r.Hold == 0:
		c.n += p.clusters(r)
	case !c.seen[r.Hold]:
		if c.seen == nil {
			c.seen = map[uint64]bool{}
		}
		c.seen[r.Hold] = true
		c.n++
	}
}

// clusters is how many a record without a Hold stands for.
func (p *Profile) clusters(r *Record) int64 { return max(1, int64(math.Round(p.independent(r)))) }

// JackknifeGroups is into how many parts clusters are put at most, by chance: each is left out once.
const JackknifeGroups = 48

// clusterGroups puts each cluster into one of JackknifeGroups groups. f is called with
// each record that has an outcome and the share of it that belongs to a group. It returns the number
// of clusters.
func (p *Profile) clusterGroups(f func(r *Record, group int, share float64)) (clusters int) {
	rng := rand.New(rand.NewPCG(0x9e3779b97f4a7c15, uint64(len(p.Records)))) // the same profile, the same bands
	of := map[uint64]int{}
	grouped := map[int]bool{} // counted as clusters, for that is all that their differences tell
	draw := func() int {
		clusters++
		return rng.IntN(JackknifeGroups) // each by itself: evenly filled groups of like ones would differ too little
	}
	for i := range p.Records {
		r := &p.Records[i]
		if !r.outcome() {
			continue
		}
		if r.Group > 0 && r.Group <= JackknifeGroups {
			grouped[r.Group] = true
			f(r, r.Group-1, 1)
			continue
		}
		if r.Hold != 0 {
			g, ok := of[r.Hold]
			if !ok {
				g = draw()
				of[r.Hold] = g
			}
			f(r, g, 1)
			continue
		}
		n := p.clusters(r)
		var share [JackknifeGroups]float64
		for range n {
			share[draw()]++
		}
		for g, s := range share {
			if s > 0 {
				f(r, g, s/float64(n))
			}
		}
	}
	return clusters + len(grouped)
}
