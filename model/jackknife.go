package model

import "math"

// jackknife is an estimate with one group of clusters left out after the other (Quenouille and
// Tukey; Wolter, Introduction to Variance Estimation, chapter 4): how much the results differ tells
// the error of whatever was made of the observations, Kaplan-Meier, the extrapolation of half lines and
// the conversion to stack distances included.
type jackknife struct {
	e        *estimate
	clusters int
	parts    [JackknifeGroups]*part
}

// part is what one group of clusters has seen.
type part struct {
	seen    []*endings // by stratum
	halves  *halfLines
	reuse   []float64
	counted *counted
}

func (p *Profile) newJackknife(e *estimate) *jackknife {
	j := &jackknife{e: e}
	n, counts := e.bins.Len(), p.countedAlone(e)
	j.clusters = p.clusterGroups(func(r *Record, group int, share float64) {
		x := j.parts[group]
		if x == nil {
			x = &part{seen: make([]*endings, len(e.strata)), halves: newHalfLines(e.bins, e.halves.first), reuse: make([]float64, n), counted: newCounted(e.bins)}
			j.parts[group] = x
		}
		s := e.stratum[e.groups.group(r)]
		if x.seen[s] == nil {
			x.seen[s] = newEndings(e.bins)
		}
		e.each(r, func(i int, at float64) {
			w := r.Accesses * share * at
			x.seen[s].add(r.Kind, i, w)
			if r.Kind == Reuse {
				x.reuse[i] += w
			}
		})
		x.halves.add(e, r, share)
		if counts {
			x.counted.add(e, r, share)
		}
	})
	for _, x := range j.parts {
		if x != nil {
			x.counted.sort()
		}
	}
	return j
}

// variances are those of the numbers that f computes from the estimated masses, see endings.solve.
// f gets histograms that it must not keep. Where there is but one group nothing is known:
// they are infinite.
func (j *jackknife) variances(n int, f func(out []float64, m masses) error) ([]float64, error) {
	mass, net := NewHist(j.e.bins), NewHist(j.e.bins)
	partMass, partNet := NewHist(j.e.bins), NewHist(j.e.bins)
	rest, none := newEndings(j.e.bins), newEndings(j.e.bins)
	reuse := make([]float64, j.e.bins.Len())
	out := make([]float64, n)
	sum, squares, groups := make([]float64, n), make([]float64, n), 0.0
	for _, x := range j.parts {
		if x == nil {
			continue
		}
		mass.Reset()
		net.Reset()
		subtract(reuse, j.e.reuse, x.reuse)
		rest.raise = j.e.halves.without(x.halves).raise(reuse)
		for k, s := range j.e.strata {
			left := x.seen[k]
			if left == nil {
				left = none
			}
			rest.less(s.seen, left)
			partMass.Reset()
			partNet.Reset()
			rest.solve(partMass, partNet)
			if err := mass.Merge(partMass); err != nil {
				return nil, err
			}
			if err := net.Merge(partNet); err != nil {
				return nil, err
			}
		}
		if !(mass.Total() > 0) {
			continue
		}
		if err := f(out, masses{mass, net, j.e.counted, x.counted}); err != nil {
			return nil, err
		}
		groups++
		for i, v := range out {
			sum[i] += v
			squares[i] += v * v
		}
	}
	for i := range out {
		if groups < 2 {
			out[i] = math.Inf(1)
			continue
		}
		mean := sum[i] / groups
		out[i] = max(0, squares[i]/groups-mean*mean) * (groups - 1)
	}
	return out, nil
}
