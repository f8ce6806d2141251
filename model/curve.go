package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
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

// replicator redraws an estimate's observations.
type replicator struct {
	e          *estimate
	local      *local // nil unless that is the model; m is then SSX
	m          Model
	ways       int
	replicates int
	rng        *rand.Rand

	drawn             *endings
	mass, net, stacks *Hist
	part              struct{ mass, net *Hist } // of one stratum
}

func (p *Profile) newReplicator(e *estimate, o CurveOptions) (*replicator, error) {
	var l *local
	var err error
	if o.Model == "" || o.Model == Local {
		if l, err = p.local(e); err != nil {
			return nil, err
		}
		o.Model = ModelNames[0]
	}
	m, err := NewModel(o.Model)
	if err != nil {
		return nil, err
	}
	if o.Ways < 0 {
		return nil, fmt.Errorf("%d ways", o.Ways)
	}
	if o.Replicates <= 0 {
		o.Replicates = 500
	}
	x := &replicator{e: e, local: l, m: m, ways: o.Ways, replicates: o.Replicates,
		rng:   rand.New(rand.NewPCG(o.Seed, 0x5851f42d4c957f2d)),
		drawn: newEndings(e.bins), mass: NewHist(e.bins), net: NewHist(e.bins), stacks: NewHist(LogBins(20))}
	x.part.mass, x.part.net = NewHist(e.bins), NewHist(e.bins)
	return x, nil
}

// missRatios fills out for the given sizes.
func (r *replicator) missRatios(out []float64, mass, net *Hist, sizes []uint64) error {
	if err := r.m.Reset(net); err != nil {
		return err
	}
	if r.ways == 0 {
		for i, s := range sizes {
			out[i] = r.m.MissRatio(mass, s)
		}
		return nil
	}
	r.stacks.Reset()
	if err := r.m.Stacks(r.stacks, mass); err != nil {
		return err
	}
	for i, s := range sizes {
		out[i] = SetAssociative(r.stacks, s, r.ways)
	}
	return nil
}

// localMissRatios fills out for the given sizes, from the observations as they
// are.
func (r *replicator) localMissRatios(out []float64, sizes []uint64) error {
	if r.ways > 0 {
		r.stacks.Reset()
		if err := r.local.stacks(r.stacks); err != nil {
			return err
		}
		r.stacks.addEndless(r.e.mass)
		for i, s := range sizes {
			out[i] = SetAssociative(r.stacks, s, r.ways)
		}
		return nil
	}
	r.local.missed(out, sizes)
	for i := range out {
		out[i] = (out[i] + r.e.mass.endless()) / r.e.mass.Total()
	}
	return nil
}

// move replaces the shares of the stationary conversion by better ones and moves
// their bands along. A share that becomes larger rests on more observations,
// and its band is widened as that of a count; where the stationary one rests on
// fewer than ten, to that of the count which the better one is. What the choice
// of epochs adds to the chance of sampling is left out: in TestBandsCoverLocal
// 94 % are covered on average, 83 % at the size that fewest reuses reach.
func (r *replicator) move(base, low, high, better []float64) {
	n := r.e.effective()
	for i, b := range better {
		widen, lo, hi := 1.0, b, b
		if base[i]*n >= 10 {
			widen = math.Sqrt(max(1, b/base[i]))
		} else {
			lo, hi = poissonBand(b*n, n)
		}
		low[i] = max(0, min(lo, b-(base[i]-low[i])*widen))
		high[i] = min(1, max(hi, b+(high[i]-base[i])*widen))
		base[i] = b
	}
}

// draw fills mass and net from a fresh draw of the observations; ok is false
// if it has none.
func (r *replicator) draw() (ok bool, err error) {
	r.mass.Reset()
	r.net.Reset()
	for _, s := range r.e.strata {
		r.drawn.reset()
		r.part.mass.Reset()
		r.part.net.Reset()
		redraw := func(to []float64, w, squares []float64) {
			for i := range w {
				to[i] = r.poisson(w[i], squares[i])
			}
		}
		redraw(r.drawn.reuse, s.seen.reuse, s.squares.reuse)
		redraw(r.drawn.invalid, s.seen.invalid, s.squares.invalid)
		redraw(r.drawn.cut, s.seen.cut, s.squares.cut)
		r.drawn.cold = r.poisson(s.seen.cold, s.squares.cold)
		r.drawn.raise = s.seen.raise
		r.drawn.solve(r.part.mass, r.part.net)
		if err := r.mass.Merge(r.part.mass); err != nil {
			return false, err
		}
		if err := r.net.Merge(r.part.net); err != nil {
			return false, err
		}
	}
	return r.mass.Total() > 0, nil
}

// poisson draws the weight w of observations whose squared weights add up to
// squares: of equal ones exactly a Poisson number, of unequal ones the same
// mean and variance.
func (r *replicator) poisson(w, squares float64) float64 {
	if w == 0 {
		return 0
	}
	unit := squares / w
	return unit * distuv.Poisson{Lambda: w / unit, Src: r.rng}.Rand()
}

// total is all weight.
func (t *endings) total() float64 {
	s := t.cold
	for i, w := range t.reuse {
		s += w + t.invalid[i] + t.cut[i]
	}
	return s
}

// bands are 95 % bands of the numbers f computes, whose values for the
// observations as they are is base: Efron's BCa percentiles, for the plain ones
// are too low where few observations make the distribution skew.
func (r *replicator) bands(base []float64, f func(out []float64, mass, net *Hist) error) (low, high []float64, err error) {
	draws := make([][]float64, len(base))
	out := make([]float64, len(base))
	for range r.replicates {
		ok, err := r.draw()
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		if err := f(out, r.mass, r.net); err != nil {
			return nil, nil, err
		}
		for i, v := range out {
			draws[i] = append(draws[i], v)
		}
	}
	low, high = make([]float64, len(base)), make([]float64, len(base))
	for i, d := range draws {
		if len(d) == 0 {
			high[i] = 1
			continue
		}
		slices.Sort(d)
		low[i], high[i] = bca(d, base[i])
	}
	return low, high, nil
}

// bca is the 95 % band of an estimate from its sorted bootstrap draws. The
// acceleration is a sixth of their skewness, as for a sum.
func bca(draws []float64, estimate float64) (low, high float64) {
	mean, sd := stat.MeanStdDev(draws, nil)
	n := float64(len(draws))
	if !(sd > 1e-12*math.Abs(mean)) || n < 10 {
		return draws[0], draws[len(draws)-1]
	}
	a := stat.Skew(draws, nil) / 6
	below, _ := slices.BinarySearch(draws, estimate)
	upTo, _ := slices.BinarySearch(draws, math.Nextafter(estimate, math.Inf(1)))
	share := (float64(below) + float64(upTo)) / 2 / n
	normal := distuv.UnitNormal
	z0 := normal.Quantile(min(max(share, 0.5/n), 1-0.5/n))
	at := func(z float64) float64 {
		q := normal.CDF(z0 + (z0+z)/math.Max(0.1, 1-a*(z0+z)))
		return stat.Quantile(min(max(q, 0), 1), stat.LinInterp, draws, nil)
	}
	return at(-1.959964), at(1.959964)
}
