package model

import (
	"fmt"
	"math"
)

// Quote says whether a point of a curve may be quoted as a number.
type Quote uint8

const (
	Quoted Quote = iota
	// TooRare: below about 10/n, where n observations say only that it is
	// small. High is still an upper bound.
	TooRare
	// BelowResolution: reuses in a cache this small are faster than the clock
	// can tell.
	BelowResolution
	// BeyondObservation: none, or too few, of the observations were followed
	// long enough to see such a cache fill: the ratio is an upper bound, Low counts as hits
	// what was cut off and may be reused.
	BeyondObservation
)

func (q Quote) String() string {
	switch q {
	case Quoted:
		return ""
	case TooRare:
		return "too rare to quote"
	case BelowResolution:
		return "below the clock's resolution"
	case BeyondObservation:
		return "beyond what was observed"
	}
	return "unknown"
}

// Point is the miss ratio of one cache size with its 95 % confidence band.
type Point struct {
	Blocks    uint64
	MissRatio float64
	Low, High float64
	Quote     Quote
	Misses    float64 // MissRatio in accesses
}

// Local names the conversion by epochs and threads, see TimeLocal.
const Local = "local"

// CurveModels are the names CurveOptions take, the best first.
var CurveModels = append([]string{Local}, ModelNames...)

// CurveOptions say how a profile's miss ratio curve is made; the zero value is
// Local, fully associative, 500 replicates.
type CurveOptions struct {
	Model      string // of CurveModels, "" for Local
	Ways       int    // 0 for fully associative; else Smith's correction
	Replicates int    // of the bootstrap; 0 means 500
	Seed       uint64 // of the bootstrap
}

// Curve is a miss ratio curve.
type Curve struct {
	Points []Point
	// Observations is how many equally weighted independent observations the
	// profile is worth: (sum w)^2 / sum w^2.
	Observations float64
}

// MissRatios is the miss ratio curve at the given cache sizes, in blocks, with
// 95 % confidence bands.
//
// The bands are BCa intervals of a bootstrap: each observation is drawn anew a
// Poisson number of times, and Kaplan-Meier and the conversion are repeated.
// They cover the chance of sampling. They do not cover the error of the
// conversion itself (about half a point of miss ratio on real programs), of
// the clock's rate, or dependence between observations. A point below 10/n is
// marked, and its band is widened to that of a Poisson count. Where few observations
// were followed until such a cache is full, see maybeReused, it reaches lower. With Local, the
// bootstrap is that of SSX, as if all epochs were one, and its bands are moved,
// see replicator.move.
//
// It errs on an unknown model, a broken profile or one with no observations.
func (p *Profile) MissRatios(sizes []uint64, o CurveOptions) (*Curve, error) {
	e, err := p.estimate()
	if err != nil {
		return nil, fmt.Errorf("miss ratios: %w", err)
	}
	if e.empty() {
		return nil, fmt.Errorf("miss ratios: the profile has no observations")
	}
	if p.ExactDistances {
		return p.exactCurve(e, sizes, o.Ways)
	}
	r, err := p.newReplicator(e, o)
	if err != nil {
		return nil, fmt.Errorf("miss ratios: %w", err)
	}
	c := &Curve{Points: make([]Point, len(sizes)), Observations: e.effective()}
	base := make([]float64, len(sizes))
	if err := r.missRatios(base, e.mass, e.net, sizes); err != nil {
		return nil, fmt.Errorf("miss ratios: %w", err)
	}
	low, high, err := r.bands(base, func(out []float64, mass, net *Hist) error {
		return r.missRatios(out, mass, net, sizes)
	})
	if err != nil {
		return nil, fmt.Errorf("miss ratios: %w", err)
	}
	if r.local != nil {
		better := make([]float64, len(sizes))
		if err := r.localMissRatios(better, sizes); err != nil {
			return nil, fmt.Errorf("miss ratios: %w", err)
		}
		r.move(base, low, high, better)
	}
	total := e.mass.Total()
	seen, blind := p.sizesSeen(e)
	late := e.maybeReused(sizes)
	for i, s := range sizes {
		q := Point{Blocks: s, MissRatio: base[i], Low: min(low[i], base[i]), High: max(high[i], base[i]), Misses: base[i] * total}
		q.Low = min(q.Low, max(0, base[i]-late[i]/total))
		lo, hi := poissonBand(base[i]*c.Observations, c.Observations)
		switch n := c.Observations; {
		case float64(s) <= blind:
			q.Quote = BelowResolution
			q.Low = 0
		case float64(s) > seen && e.unfinished > 0 || late[i] > base[i]*total/2:
			q.Quote = BeyondObservation
			q.High = max(q.High, hi)
		case base[i] < 10/n:
			q.Quote = TooRare
			q.Low, q.High = min(q.Low, lo), max(q.High, hi)
		}
		c.Points[i] = q
	}
	return c, nil
}

// exactCurve needs no model and has no chance in it: its bands are points.
// Within a bin of the profile distances are taken as uniform.
func (p *Profile) exactCurve(e *estimate, sizes []uint64, ways int) (*Curve, error) {
	h, err := p.Stacks(e.bins)
	if err != nil {
		return nil, fmt.Errorf("miss ratios: %w", err)
	}
	c := &Curve{Observations: e.effective()}
	for _, s := range sizes {
		ratio := h.MissRatio(s)
		if ways > 0 {
			ratio = SetAssociative(h, s, ways)
		}
		c.Points = append(c.Points, Point{Blocks: s, MissRatio: ratio, Low: ratio, High: ratio, Misses: ratio * h.Total()})
	}
	return c, nil
}

// blurred is the share of observed weight below the clock's resolution that
// makes small caches not worth a number.
const blurred = 0.01

// sizesSeen are the largest cache, in blocks, that any observation can have
// seen fill, and the smallest that the clock's resolution cannot blur.
func (p *Profile) sizesSeen(e *estimate) (seen, blind float64) {
	var x SSX
	if x.Reset(e.net) != nil {
		return math.Inf(1), 0
	}
	seen, _ = x.Mean(p.Longest())
	var below float64
	for i := range p.Records {
		if r := &p.Records[i]; r.BelowResolution && r.Kind == Reuse {
			c, _ := x.Mean(r.Time)
			blind = max(blind, c)
			below += r.Accesses
		}
	}
	if below < blurred*e.seen() {
		blind = 0
	}
	return seen, blind
}
