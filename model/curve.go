package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Quote says whether a point of a curve may be quoted as a number.
type Quote uint8

const (
	Quoted Quote = iota
	// TooRare: what was seen says only that it is small. High is still an upper bound.
	TooRare
	// BelowResolution: reuses in a cache this small are faster than the clock
	// can tell.
	BelowResolution
	// BeyondObservation: none, or too few, of the observations were followed
	// long enough to see such a cache fill: the ratio is an upper bound, Low counts as hits
	// what was cut off and may be reused.
	BeyondObservation
	// TooWide: the access rate, or the conversion of times, is known too roughly: the ratio may be anything between Low and High.
	TooWide
)

// Unknown says that nothing is known of the point beside its band. Of others that are not quoted High is a bound.
func (q Quote) Unknown() bool { return q == BelowResolution || q == TooWide }

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
	case TooWide:
		return "known too roughly to quote"
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

	hot uint64 // blocks of the hot set by which it is bounded, 0: by none
}

// Local names the conversion by epochs and threads, see TimeLocal.
const Local = "local"

// CurveModels are the names CurveOptions take, the best first.
var CurveModels = append([]string{Local}, ModelNames...)

// CurveOptions say how a profile's miss ratio curve is made; the zero value is
// Local, fully associative.
type CurveOptions struct {
	Model string // of CurveModels, "" for Local
	Ways  int    // 0 for fully associative; else Smith's correction

	// certain leaves the conversion's error out of the bands: a test's, whose truth is converted, too.
	certain bool
}

// Curve is a miss ratio curve.
type Curve struct {
	Points []Point
	// Holds is in how many independent places the program was looked at.
	Holds int
	// MaybeHits is Profile.MaybeHits.
	MaybeHits []float64
}

const (
	// sure is how many clusters of equal weight must have missed, as R^2/V, for a ratio to be more than nothing for certain, and for a
	// number: a watch may have missed a touch, or the host may have taken the processor away meanwhile. A threshold above it
	// would pass the sessions that met too many. Simulated sessions of 70 holds are off by a third at the median.
	sure = 3
	// conversionError is the standard error of a distance that was converted from a time, as the logarithm: root
	// mean square over sizes of simulated sessions of recorded programs, docs/explanation/accuracy.md.
	conversionError = 0.25
	// telling and tellingBelow are by how much the upper and the lower end of a band may differ from the ratio, as factors, for the ratio to be
	// quoted although rate and conversion are uncertain. Where a curve is steep lower ends reach far, and numbers are right within
	// a factor of two in 99 of 100 simulated sessions of 200 holds.
	telling, tellingBelow = 5, 30
)

// MissRatios is the miss ratio curve at the given cache sizes, in blocks, with
// 95 % confidence bands.
//
// The bands are those of a sample of holds: Fay and Feuer's, see gammaBand, with the variance by the
// jackknife. They cover the chance of sampling, the error of the access rate and that of the
// conversion to distances: each of the latter two as what the ratio would be in a cache as much smaller
// or larger; and they are joined as independent errors (Zou and Donner 2008), as factors of what three holds or more tell, but for a rate that is
// assumed: over all that are possible the band reaches from end to end. What laps behind holds tell of cold caches goes with the
// rate. It holds, too, what the ratio would be if they were off
// together, in the direction in which that is likeliest: a ratio that falls in one step can depend on all of them. Where few observations
// were followed until such a cache is full, see maybeReused, it reaches lower. With Local the variance
// is that of SSX, as if all epochs were one, in proportion.
//
// No band reaches higher than that of a smaller one of the profile's caches, nor lower than that of a larger one.
//
// A ratio that can't be quoted is bounded by hot sets, see hotset.go, where these tell more.
//
// A ratio is quoted if three holds of equal weight are behind it, the upper end is within a factor of five and the lower one of thirty.
//
// It errs on an unknown model, a broken profile or one with no observations.
func (p *Profile) MissRatios(sizes []uint64, o CurveOptions) (*Curve, error) {
	e, err := p.Estimated()
	if err != nil {
		return nil, fmt.Errorf("miss ratios: %w", err)
	}
	return e.MissRatios(sizes, o)
}

func (p *Profile) curve(e *estimate, sizes []uint64, o CurveOptions) (*Curve, error) {
	if e.empty() {
		return nil, errNoObservations
	}
	if p.ExactDistances {
		return p.exactCurve(e, sizes, o.Ways)
	}
	blocks := p.cacheBlocks()
	all := slices.Concat(sizes, blocks)
	slices.Sort(all)
	all = slices.Compact(all)
	known, err := p.points(e, all, o)
	if err == nil {
		err = p.withoutHot(known, e.mass.Total())
	}
	if err != nil {
		return nil, err
	}
	// A larger cache misses no more: what the profile's own caches tell holds for others, too. These alone, so that a
	// size has the same band whichever others are asked for.
	of := func(sizes []uint64) []Point {
		points := make([]Point, len(sizes))
		for i, s := range sizes {
			at, _ := slices.BinarySearch(all, s)
			points[i] = known[at]
		}
		return points
	}
	caches := of(blocks)
	c := &Curve{Points: of(sizes), Holds: int(p.Holds())}
	for i := range c.Points {
		c.Points[i].within(caches)
	}
	return c, nil
}

// points are those of the sizes, each by itself: what is in hot sets is still among the misses of those that these bound.
func (p *Profile) points(e *estimate, sizes []uint64, o CurveOptions) ([]Point, error) {
	conv, err := p.newConverter(e, o)
	if err != nil {
		return nil, err
	}
	x := &bander{p: p, e: e, conv: conv, sizes: sizes}
	if err := x.measure(o); err != nil {
		return nil, err
	}
	points := make([]Point, len(sizes))
	seen, blind := p.sizesSeen(e)
	late := e.maybeReused(sizes)
	total := e.mass.Total()
	for i, s := range sizes {
		q := x.point(i)
		q.Low = min(q.Low, remainder(q.MissRatio, late[i]/total))
		if conv.most > 0 && s >= conv.most && e.mass.Invalidated == 0 && conv.last < e.mass.Endless() {
			q.High = min(conv.last/total*p.Clock.slowest(), 1)
		}
		switch {
		case float64(s) <= blind:
			q.Quote, q.Low = BelowResolution, 0
		case float64(s) > seen && e.unfinished > 0 || late[i] > q.MissRatio*total/2:
			q.Quote = BeyondObservation
		}
		points[i] = q
	}
	return points, p.boundByHotSets(points, total, o)
}

// within has the band reach no higher than that of a smaller cache, nor lower than that of a larger one.
func (q *Point) within(caches []Point) {
	for _, c := range caches {
		if c.Blocks <= q.Blocks {
			q.High = max(min(q.High, c.High), q.MissRatio)
		}
		if c.Blocks >= q.Blocks {
			q.Low = min(max(q.Low, c.Low), q.MissRatio)
		}
	}
}

var errNoObservations = errors.New("the profile has no observations")

// exactCurve needs no model and has no chance in it: its bands are points.
// Within a bin of the profile distances are taken as uniform.
func (p *Profile) exactCurve(e *estimate, sizes []uint64, ways int) (*Curve, error) {
	h, err := p.stacks(e, e.bins)
	if err != nil {
		return nil, err
	}
	c := &Curve{Holds: int(e.holds.n)}
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
	for _, s := range e.strata {
		for _, f := range s.far {
			seen = max(seen, float64(f.blocks))
		}
	}
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

// PlainMissRange is the miss ratios at the given cache sizes, in blocks, without bands, as if all epochs were one: as high as they are
// taken to be, at most as a hot set bounds them, and as low as they are if all hit that may, as it was not followed for long enough. It
// errs as MissRatios does.
func (p *Profile) PlainMissRange(sizes []uint64) (low, high []float64, err error) {
	ranges, err := p.PlainMissRanges(sizes, nil)
	if err != nil {
		return nil, nil, err
	}
	return ranges[0].Low, ranges[0].High, nil
}

// MissRange is of miss ratios, one for each size of a cache.
type MissRange struct{ Low, High []float64 }

// PlainMissRanges are PlainMissRange, and then of the accesses of each part of the records: the empty range where it has none that ended.
// Times are converted as those of all. Hot sets bound nothing of a part.
func (p *Profile) PlainMissRanges(sizes []uint64, parts []func(*Record) bool) ([]MissRange, error) {
	e, err := p.estimate()
	if err == nil && e.empty() {
		err = errNoObservations
	}
	if err != nil {
		return nil, fmt.Errorf("miss ratios: %w", err)
	}
	conv, err := p.newConverter(e, CurveOptions{Model: ModelNames[0]})
	if err != nil {
		return nil, fmt.Errorf("miss ratios: %w", err)
	}
	conv.counts = p.countedAlone(e)
	bounds, err := p.hotBounds(e.mass.Total(), func(q *Profile, sizes []uint64) ([]float64, error) {
		_, high, err := q.PlainMissRange(sizes)
		return high, err
	})
	if err != nil {
		return nil, err
	}
	plain := func(e *estimate, bounds []hotBound) (r MissRange, err error) {
		r = MissRange{make([]float64, len(sizes)), make([]float64, len(sizes))}
		if err := conv.missRatios(r.High, e.masses(), sizes, 1); err != nil {
			return r, fmt.Errorf("miss ratios: %w", err)
		}
		for i, late := range e.maybeReused(sizes) {
			if b, ok := hotBoundAt(bounds, sizes[i]); ok {
				r.High[i] = min(r.High[i], b.high)
			}
			r.Low[i] = max(r.High[i]-late/e.mass.Total(), 0)
			if i > 0 {
				r.Low[i] = min(r.Low[i], r.Low[i-1])
			}
		}
		return r, nil
	}
	all, err := plain(e, bounds)
	out := []MissRange{all}
	for _, in := range parts {
		if err != nil {
			break
		}
		q := *p
		q.Records = nil
		for i := range p.Records {
			if in(&p.Records[i]) {
				q.Records = append(q.Records, p.Records[i])
			}
		}
		var part *estimate
		var r MissRange
		if part, err = q.estimate(); err == nil && !part.empty() {
			part.net = e.net
			r, err = plain(part, nil)
		}
		out = append(out, r)
	}
	return out, err
}
