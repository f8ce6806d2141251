package model

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// HistBand is a histogram with 95 % bands: Low and High are weights per bin of
// H, and ColdLow and ColdHigh those of H.Cold.
type HistBand struct {
	H                 *Hist
	Low, High         []float64
	ColdLow, ColdHigh float64
}

// StackBands is Stacks, by the model of the options, with confidence bands
// as in MissRatios. Where distances are exact the bands are points.
func (p *Profile) StackBands(b *Bins, o CurveOptions) (*HistBand, error) {
	e, err := p.estimate()
	if err != nil {
		return nil, fmt.Errorf("stack distances: %w", err)
	}
	if e.empty() {
		return nil, fmt.Errorf("stack distances: the profile has no observations")
	}
	if p.ExactDistances {
		h, err := p.Stacks(b)
		if err != nil {
			return nil, err
		}
		return &HistBand{H: h, Low: h.W, High: h.W, ColdLow: h.Cold, ColdHigh: h.Cold}, nil
	}
	c, err := p.newConverter(e, o)
	if err != nil {
		return nil, fmt.Errorf("stack distances: %w", err)
	}
	n := b.Len()
	out := &HistBand{H: NewHist(b), Low: make([]float64, n), High: make([]float64, n)}
	if out.H, err = p.Stacks(b); err != nil {
		return nil, err
	}
	scratch := NewHist(b)
	j := p.newJackknife(e)
	variances, err := j.variances(n+1, func(share []float64, m masses) error {
		scratch.Reset()
		if err := c.m.Reset(m.net); err != nil {
			return err
		}
		if err := c.m.Stacks(scratch, m.mass); err != nil {
			return err
		}
		total := m.mass.Total()
		for i, w := range scratch.W {
			share[i] = w / total
		}
		share[n] = m.mass.Cold / total
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("stack distances: %w", err)
	}
	total, unit := out.H.Total(), 1/e.effective()
	wider := studentFactor(j.clusters)
	band := func(w, variance float64) (low, high float64) {
		if math.IsInf(variance, 1) {
			return 0, total
		}
		share := w / total
		low, high = gammaBand(share, max(variance, share*unit/max(1, float64(j.clusters))), unit)
		return max(0, share-(share-low)*wider) * total, min(1, share+(high-share)*wider) * total
	}
	for i, w := range out.H.W {
		out.Low[i], out.High[i] = band(w, variances[i])
	}
	out.ColdLow, out.ColdHigh = band(out.H.Cold, variances[n])
	return out, nil
}

// effective is (sum w)^2 / sum w^2 over the observations.
func (e *estimate) effective() float64 {
	w, w2 := e.seen(), 0.0
	for _, s := range e.strata {
		w2 += s.squares.total()
	}
	if !(w2 > 0) {
		return 0
	}
	return w * w / w2
}

// garwood is the exact confidence band of the mean of a Poisson count of which
// k were seen; it is wrong with probability alpha.
func garwood(k, alpha float64) (low, high float64) {
	if k > 0 {
		low = distuv.ChiSquared{K: 2 * k}.Quantile(alpha/2) / 2
	}
	return low, distuv.ChiSquared{K: 2 * (k + 1)}.Quantile(1-alpha/2) / 2
}
