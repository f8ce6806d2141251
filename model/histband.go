package model

import (
	"fmt"

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
	r, err := p.newReplicator(e, o)
	if err != nil {
		return nil, fmt.Errorf("stack distances: %w", err)
	}
	out := &HistBand{H: NewHist(b)}
	if err := r.m.Reset(e.net); err != nil {
		return nil, fmt.Errorf("stack distances: %w", err)
	}
	if err := r.m.Stacks(out.H, e.mass); err != nil {
		return nil, fmt.Errorf("stack distances: %w", err)
	}
	n, total := b.Len(), out.H.Total()
	base := make([]float64, n+1) // shares, the last one cold
	for i, w := range out.H.W {
		base[i] = w / total
	}
	base[n] = out.H.Cold / total
	scratch := NewHist(b)
	low, high, err := r.bands(base, func(share []float64, mass, net *Hist) error {
		scratch.Reset()
		if err := r.m.Reset(net); err != nil {
			return err
		}
		if err := r.m.Stacks(scratch, mass); err != nil {
			return err
		}
		total := mass.Total()
		for i, w := range scratch.W {
			share[i] = w / total
		}
		share[n] = scratch.Cold / total
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("stack distances: %w", err)
	}
	if r.local != nil {
		out.H.Reset()
		if err := r.local.stacks(out.H); err != nil {
			return nil, fmt.Errorf("stack distances: %w", err)
		}
		out.H.addEndless(e.mass)
		better := make([]float64, n+1)
		for i, w := range out.H.W {
			better[i] = w / total
		}
		better[n] = base[n]
		r.move(base, low, high, better)
	}
	for i := range low {
		w := out.H.Cold
		if i < n {
			w = out.H.W[i]
		}
		// As for miss ratios: few observations make the bootstrap's band too
		// narrow, none makes it a point.
		l, h := low[i], high[i]
		if eff := e.effective(); w/total < 10/eff {
			pl, ph := poissonBand(w/total*eff, eff)
			l, h = min(l, pl), max(h, ph)
		}
		low[i], high[i] = min(l*total, w), max(h*total, w)
	}
	out.Low, out.High = low[:n], high[:n]
	out.ColdLow, out.ColdHigh = low[n], high[n]
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

// poissonBand is the 95 % band of a ratio when k of n observations have the
// property.
func poissonBand(k, n float64) (low, high float64) {
	if !(n > 0) {
		return 0, 1
	}
	low, high = garwood(k, 0.05)
	return min(1, low/n), min(1, high/n)
}

// garwood is the exact confidence band of the mean of a Poisson count of which
// k were seen; it is wrong with probability alpha.
func garwood(k, alpha float64) (low, high float64) {
	if k > 0 {
		low = distuv.ChiSquared{K: 2 * k}.Quantile(alpha/2) / 2
	}
	return low, distuv.ChiSquared{K: 2 * (k + 1)}.Quantile(1-alpha/2) / 2
}
