package why

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rdx-profiler/rdx/model"
)

// misled is the probability that how slow a program is tells nothing of how much it waits: that probes of its rate met other code than
// windows, or that the model of the processor is wrong in what it does.
const misled = 0.05

// slowdown is the likelihood of shares of time that are waited for, by cell, by how many times as slow the program is as a model of the
// processor says of code whose lines are near; nil where that is not known. Time that waits is all that it is slower by: where that is
// a share m it is 1/(1-m) times as slow.
func slowdown(c *model.Clock) *[cells]float64 {
	if !(c.WaitsError > 0) {
		return nil
	}
	slower := func(share float64) float64 { return -math.Log(1 - min(share, 1-0.5/cells)) }
	measured := distuv.Normal{Mu: slower(c.WaitsHigh) - 1.96*c.WaitsError, Sigma: c.WaitsError}
	if c.WaitsLow > 0 {
		measured = distuv.Normal{Mu: (slower(c.WaitsLow) + slower(c.WaitsHigh)) / 2, Sigma: max((slower(c.WaitsHigh)-slower(c.WaitsLow))/(2*1.96), 0.05)}
	}
	var out [cells]float64
	for i := range out {
		out[i] = measured.Prob(slower((float64(i) + 0.5) / cells))
	}
	most := slices.Max(out[:])
	if !(most > 0) {
		return nil
	}
	for i := range out {
		out[i] = out[i]/most + misled
	}
	return &out
}

const (
	// wide is a band that is worth asking more.
	wide = 0.1
	// nearlyAll of the time is one group's, whose share of waiting is then as good as the program's.
	nearlyAll = 0.8
)

// given is what becomes of a share and its band by a likelihood of the cells.
func given(s Share, likely *[cells]float64) Share {
	if likely == nil || s.High-s.Low < wide {
		return s
	}
	// Of the band a half is below the estimate, and each half is a normal's. Where it begins at nothing, or ends at all, that is as likely.
	before := func(share float64) float64 {
		end := s.Low
		if share > s.Value {
			end = s.High
		}
		if end <= 0.5/cells || end >= 1-0.5/cells {
			return 1
		}
		x := 1.96 * (share - s.Value) / max(math.Abs(end-s.Value), 0.5/cells)
		return math.Exp(-x * x / 2)
	}
	var weights [cells]float64
	all := 0.0
	for i := range weights {
		weights[i] = before((float64(i) + 0.5) / cells)
		all += weights[i]
	}
	for i := range weights {
		weights[i] = (weights[i]/all + openMinded/cells) * likely[i]
	}
	out := shareOf(&weights)
	if most := slices.Max(weights[:]); weights[0] > most/8 {
		out.Low = 0
	} else if weights[cells-1] > most/8 {
		out.High = 1
	}
	return out
}

// shareOf is the mean of a distribution, and the band that leaves out a fortieth on each side.
func shareOf(weights *[cells]float64) (s Share) {
	sum := 0.0
	for i, w := range weights {
		sum += w
		s.Value += w * float64(i) / (cells - 1) // ends at 0 and 1
	}
	s.Value /= sum
	part := 0.0
	s.High = 1
	for i, w := range weights {
		before := part
		part += w / sum
		if before < 0.025 {
			s.Low = float64(i) / cells
		}
		if before < 0.975 {
			s.High = float64(i+1) / cells
		}
	}
	s.Low, s.High = min(s.Low, s.Value), max(s.High, min(s.Value+unseen, 1))
	return s
}

// moved is a share as much likelier, by odds, as the whole became.
func moved(share, from, to float64) float64 {
	const end = 1e-4
	within := func(x float64) float64 { return min(max(x, end), 1-end) }
	if share < end {
		return share
	}
	return 1 / (1 + math.Exp(-(logit(within(share)) + logit(within(to)) - logit(within(from)))))
}
