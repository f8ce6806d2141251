package estimate

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
)

// What two traps take by themselves varies, by a microsecond or more. A single reuse that is not
// much longer can't be told from one that is not much shorter, but of many it can
// be told how long they are together: the times seen are the true ones and a draw each from what
// was measured of immediate reuses. The distribution without that is found by
// the EM algorithm (Richardson 1972, Lucy 1974), with a step of smoothing after each of
// its steps, without which it would make spikes of few observations (EMS: Silverman, Jones,
// Wilson & Nychka 1990). The observations then take, in their order, the quantiles of that
// distribution: each keeps its weight.

const (
	// Times beyond so many times the spread are left as they are: there it is less than a tenth of an
	// octave.
	unsmearUpTo = 16
	// leastUnsmeared observations there must be.
	leastUnsmeared = 20
	unsmearBins    = 8 // an octave
	unsmearSteps   = 60
	// noiseWidth smooths what was measured of the noise: by a share of its spread.
	noiseWidth = 0.125
	noiseDraws = 64 // of the noise, evenly spaced among those measured
)

// smeared is a timed reuse.
type smeared struct {
	time   float64 // ns, with noise; may be negative
	least  float64 // it is known to be at least so long, ns
	weight float64
}

// unsmear gives the times of all, without noise where that matters; nil
// where these are too few. noise are single draws, of which the constant is taken out, and spread is
// how far they lie apart.
func unsmear(all []smeared, noise []float64, spread float64) []float64 {
	top := unsmearUpTo * spread
	times := make([]float64, len(all))
	var near []smeared
	var which []int
	for i, o := range all {
		if times[i] = o.time; o.time < top && o.least < top {
			near, which = append(near, o), append(which, i)
		}
	}
	if len(near) < leastUnsmeared || len(noise) == 0 {
		return nil
	}
	for i, x := range deconvolve(near, noise, noiseWidth*spread, top) {
		times[which[i]] = x
	}
	return times
}

// deconvolve gives the times without noise, of reuses that took less than top.
func deconvolve(all []smeared, noise []float64, width, top float64) []float64 {
	from := top / 2
	for _, o := range all {
		from = min(from, max(o.least, 1))
	}
	// Bins reach beyond top, for noise can be negative, too.
	n := max(int(math.Ceil(unsmearBins*math.Log2(2*top/from))), 1)
	edge := func(j float64) float64 { return from * math.Exp2(j/unsmearBins) }
	seen := likelihoods(all, noise, width, n, edge)
	g, next := make([]float64, n), make([]float64, n)
	sum := 0.0
	for _, o := range all {
		sum += o.weight
	}
	for j := range g {
		g[j] = sum / float64(n)
	}
	for range unsmearSteps {
		clear(next)
		for i, row := range seen {
			p := 0.0
			for j, k := range row {
				p += g[j] * k
			}
			for j, k := range row {
				next[j] += all[i].weight * g[j] * k / p
			}
		}
		for j := range g {
			before, after := max(j-1, 0), min(j+1, n-1)
			g[j] = next[before]/4 + next[j]/2 + next[after]/4
		}
	}
	return quantiles(all, g, sum, edge)
}

// likelihoods are those of each time for a true one in each bin.
func likelihoods(all []smeared, noise []float64, width float64, n int, edge func(float64) float64) [][]float64 {
	const faint = 1e-9 // lest a time that no bin explains has none
	out := make([][]float64, len(all))
	noise = slices.Sorted(slices.Values(noise))
	if len(noise) > noiseDraws {
		few := make([]float64, noiseDraws)
		for k := range few {
			few[k] = noise[(2*k+1)*len(noise)/(2*noiseDraws)]
		}
		noise = few
	}
	for i, o := range all {
		out[i] = make([]float64, n)
		for j := range n {
			lo, hi := edge(float64(j)), edge(float64(j+1))
			if hi <= o.least {
				continue
			}
			// A true time uniform in the bin, noise of that width around each draw.
			near, far := o.time-hi-4*width, o.time-max(lo, o.least)+4*width
			p := faint
			for k := sort.SearchFloat64s(noise, near); k < len(noise) && noise[k] <= far; k++ {
				p += (distuv.UnitNormal.CDF((o.time-noise[k]-lo)/width) - distuv.UnitNormal.CDF((o.time-noise[k]-hi)/width)) / (hi - lo) * width
			}
			out[i][j] = p
		}
		if slices.Max(out[i]) == 0 {
			out[i][n-1] = faint
		}
	}
	return out
}

// quantiles of the distribution at the middles of the observations' weights.
func quantiles(all []smeared, g []float64, sum float64, edge func(float64) float64) []float64 {
	out := make([]float64, len(all))
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case all[a].time < all[b].time:
			return -1
		case all[a].time > all[b].time:
			return 1
		}
		return 0
	})
	j, below, passed := 0, 0.0, 0.0
	for _, i := range order {
		at := passed + all[i].weight/2
		passed += all[i].weight
		for j < len(g)-1 && below+g[j] < at {
			below += g[j]
			j++
		}
		within := min(max((at-below)/max(g[j], 1e-12*sum), 0), 1)
		out[i] = max(edge(float64(j)+within), all[i].least)
	}
	return out
}

// unsmear takes the noise of the traps out of timed reuses. What was read ahead of them says
// how long they take at least.
func (s *stage) unsmear() {
	if s.Clock.Counted != nil || !(s.touchesIn(1) > 0) {
		return
	}
	var noise []float64
	for _, t := range s.Calibration.Times {
		noise = append(noise, t-s.Calibration.P50)
	}
	var all []smeared
	var timed []*record.Observation
	for _, o := range s.Seen {
		// What was seen before time was taken is not in it.
		if o.State == record.Done && o.Kind == model.Reuse && o.Counted == 0 && o.After > 0 && o.Stack != model.StackShared {
			all = append(all, smeared{o.Smeared, float64(o.After+1-o.Lead) / s.touchesOf(o, 1), o.Weight()})
			timed = append(timed, o)
		}
	}
	for i, x := range unsmear(all, noise, s.Calibration.Resolution()) {
		o := timed[i]
		if x == o.Smeared {
			continue
		}
		if o.PairNative <= o.Native {
			o.PairNative = x
		}
		o.Native, o.PairNative, o.BelowResolution = x, max(o.PairNative, x), false
		s.unsmeared++
	}
}
