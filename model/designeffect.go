package model

import "math"

// Clustered is an observation that was made together with others: the accesses
// until the reuse, and how many of its cluster it stands for.
type Clustered struct {
	Time  uint64 // math.MaxUint64: longer than could be seen
	Times float64
}

const (
	fewestClusters = 10 // to tell how alike their members are
	fewestEachSide = 10 // observations on each side of a threshold
)

// DesignEffect is how many observations of clusters tell as much as one
// independent one: the variance of the share of longer reuses, as it is between
// clusters, by that of as many independent observations (Kish, Survey Sampling,
// 8.2). Of all thresholds, the powers of two, it is the largest with observations
// enough on both sides, and at least 1. Where the clusters are too few to tell,
// their members are taken to be alike: it is then their mean number.
func DesignEffect(clusters [][]Clustered) float64 {
	var all, used float64
	for _, c := range clusters {
		if len(c) > 0 {
			used++
		}
		for _, o := range c {
			all += o.Times
		}
	}
	if used == 0 {
		return 1
	}
	effect, known := 1.0, false
	for t := uint64(1); t < math.MaxInt64 && used >= fewestClusters; t *= 2 {
		longer := 0.0
		of := make([]float64, len(clusters))
		for i, c := range clusters {
			for _, o := range c {
				if o.Time > t {
					of[i] += o.Times
				}
			}
			longer += of[i]
		}
		if min(longer, all-longer) < fewestEachSide {
			continue
		}
		share, squares := longer/all, 0.0
		for i, c := range clusters {
			size := 0.0
			for _, o := range c {
				size += o.Times
			}
			d := of[i] - share*size
			squares += d * d
		}
		effect = max(effect, squares*used/(used-1)/(all*share*(1-share)))
		known = true
	}
	if !known {
		return max(1, all/used)
	}
	return effect
}

// Squares is the sum of the squares of what the independent observations behind a record
// stand for. Unlike their number it can be added up where records of sessions of different
// weight are merged, so that bands are known of the sum: (sum w)^2 / sum w^2 is how many
// equally weighted ones a merge is worth.
func (p *Profile) Squares(r *Record) float64 { return r.Accesses * r.Accesses / p.independent(r) }

// SetDesignEffect works it out from the records: from their holds, or, where sessions were packed to be merged, from
// what is left of these, their squares. What has neither keeps what it has.
func (p *Profile) SetDesignEffect() {
	var n, sum, squares float64
	holds := map[uint64]int{}
	var clusters [][]Clustered
	for i := range p.Records {
		r := &p.Records[i]
		if !r.outcome() {
			continue
		}
		if r.Squares > 0 {
			n += float64(r.Observations)
			sum += r.Accesses
			squares += r.Squares
		}
		if r.Hold == 0 || r.Observations == 0 {
			continue
		}
		c, ok := holds[r.Hold]
		if !ok {
			c = len(clusters)
			holds[r.Hold] = c
			clusters = append(clusters, nil)
		}
		o := Clustered{Time: math.MaxUint64, Times: float64(r.Observations)}
		if r.Kind == Reuse && r.Exact {
			o.Time = r.Time
		}
		clusters[c] = append(clusters[c], o)
	}
	switch {
	case squares > 0 && sum > 0:
		p.DesignEffect = max(1, n/(sum*sum/squares))
	case len(clusters) > 0:
		p.DesignEffect = DesignEffect(clusters)
	}
}
