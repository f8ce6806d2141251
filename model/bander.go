package model

import (
	"cmp"
	"math"
	"slices"
)

// bander makes the bands of a curve.
type bander struct {
	p     *Profile
	e     *estimate
	conv  *converter
	sizes []uint64

	clusters  int
	ratio     []float64
	variance  []float64 // of ratio, by chance
	unit      []float64 // what one more hold that misses would add to it
	near, far []float64 // in caches smaller and larger by the conversion's error
	slow      []float64 // at the lowest rate, by the stationary conversion as base is
	fast      []float64 // at the highest
	still     []float64 // were no access waiting for its data
	waiting   []float64 // were each waiting that may
	base      []float64
	warm      []float64               // were what came soon after a hold as much faster as caches may have been cold
	cool      []float64               // were it not, or by less
	more      [len(jointly)][]float64 // were rate, caches after holds and conversion off together, so far that there are most misses
	less      [len(jointly)][]float64 // and fewest

	cold float64 // the profile's coldReach
}

// jointly is how far, of their 95 %, errors that make distances longer or shorter are off together. Where reuses are by one distance,
// near that of the cache, none of them need tell of it that is off by itself.
var jointly = [...]float64{0.6, 1}

// measure fills all that the points are made of.
func (x *bander) measure(o CurveOptions) error {
	n := len(x.sizes)
	p := *x.p
	p.room = make([]Record, 0, len(p.Records))
	x.p = &p
	grow := math.Exp(distanceError)
	if o.certain {
		grow = 1
	}
	x.ratio, x.near, x.far, x.base = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for _, v := range []struct {
		out   []float64
		times float64
	}{{x.ratio, 1}, {x.near, grow}, {x.far, 1 / grow}} {
		if err := x.conv.best(v.out, x.sizes, v.times); err != nil {
			return err
		}
	}
	if err := x.conv.missRatios(x.base, x.e.masses(), x.sizes, 1); err != nil {
		return err
	}
	j := x.p.newJackknife(x.e)
	x.clusters = j.clusters
	var err error
	x.variance, err = j.variances(n, func(out []float64, m masses) error {
		return x.conv.missRatios(out, m, x.sizes, 1)
	})
	if err != nil {
		return err
	}
	x.unit = x.p.heaviest(x.e, x.sizes)
	for i, r := range x.ratio {
		if x.base[i] > 0 && !math.IsInf(x.variance[i], 1) {
			// As much of the ratio, whichever conversion made it.
			by := min(max(r/x.base[i], 0.25), 4)
			x.variance[i] *= by * by
		}
		if least := r * x.unit[i] / max(1, float64(j.clusters)); x.variance[i] < least {
			x.variance[i] = least
		}
	}
	x.slow, err = x.atRate(x.p.Clock.RateLow)
	if err == nil {
		x.fast, err = x.atRate(x.p.Clock.RateHigh)
	}
	if err == nil {
		x.still, err = x.waits(x.p.Clock.waitAtLeast())
	}
	if err == nil {
		x.waiting, err = x.waits(x.p.Clock.waitAtMost())
	}
	x.cool = x.base
	if err == nil {
		x.warm, err = x.of(x.p.warmest())
	}
	if err == nil && x.p.Clock.ColdNS > 0 {
		x.cool, err = x.of(x.p.colder(1 / x.p.Clock.coldWithin()))
	}
	if err != nil || x.p.Clock.RateSource == AssumedRate { // whose band reaches from end to end
		return err
	}
	return x.joint(math.Log(grow))
}

// joint finds more and less. conversion is the logarithm within which distances are known, with 95 %.
func (x *bander) joint(conversion float64) error {
	shorter, longer := x.p.reaches()
	x.cold = longer.cold
	for k, part := range jointly {
		var err error
		if x.more[k], err = x.off(part, longer, conversion); err != nil {
			return err
		}
		if x.less[k], err = x.off(-part, shorter, conversion); err != nil {
			return err
		}
	}
	return nil
}

// off is the miss ratios by the stationary conversion where the errors, as logarithms of a distance, are such a part of what they are
// with 95 % in the direction in which all together are likeliest to be as far off.
func (x *bander) off(part float64, r reach, conversion float64) ([]float64, error) {
	all := r.with(conversion)
	if all == 0 {
		return x.base, nil
	}
	by := func(within float64) float64 { return part * within * within / all }
	q := x.p
	if r.cold > 0 {
		q = q.colder(1 - by(r.cold)/x.cold)
	}
	if r.rate > 0 {
		q = q.atRate(math.Exp(by(r.rate)))
	}
	return x.longer(q, math.Exp(by(conversion)))
}

// coldReach is how much longer what was timed may be, as the mean of logarithms, were no block fetched again after a hold.
func (p *Profile) coldReach() float64 {
	if p.Clock.ColdNS == 0 {
		return 0
	}
	perNS := p.Clock.TouchRate()
	var sum, all float64
	for i := range p.Records {
		r := &p.Records[i]
		if !r.outcome() || r.Exact || !(r.Accesses > 0) {
			continue
		}
		if all += r.Accesses; float64(r.Native)*perNS > float64(r.Time) {
			sum += r.Accesses * math.Log(float64(r.Native)*perNS/max(float64(r.Time), 1))
		}
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

// reach is by how much, as logarithms, what was timed may be off in one direction, with 95 %: by the rate, and by what caches cost that are
// cold after a hold.
type reach struct{ rate, cold float64 }

// with is how far it may be off where the conversion may be, too.
func (r reach) with(conversion float64) float64 {
	return math.Sqrt(r.rate*r.rate + r.cold*r.cold + conversion*conversion)
}

// reaches are by how much it may be shorter, and longer.
func (p *Profile) reaches() (shorter, longer reach) {
	c, cold := &p.Clock, p.coldReach()
	return reach{within(c.Rate / c.RateLow), min((c.coldWithin()-1)*cold, math.Log(coldSlows))}, reach{within(c.RateHigh / c.Rate), cold}
}

// within is the logarithm of what two ends are apart by, 0 where one is not known.
func within(ratio float64) float64 {
	if !(ratio > 1) || math.IsInf(ratio, 1) {
		return 0
	}
	return math.Log(ratio)
}

const (
	// coldFor is how long after a hold, in ns, caches and branch history may be cold on a virtual machine, and coldSlows by how
	// much what comes so soon takes longer at most: of loops of some microseconds first laps take 2.4 to 4.9 times as long,
	// by session, and some 20 µs then.
	coldFor, coldSlows = 100_000, 6
	// coldWithin is the factor within which Clock.ColdNS is right, with 95 %, where Clock.ColdWithin does not say.
	coldWithin = 8.0
)

// warmed is the profile with what was timed so soon after a hold as short as it may have been in warm caches.
func (p *Profile) warmed() *Profile {
	if p.Clock.Unit != "nanoseconds" {
		return p
	}
	perNS := p.Clock.TouchRate()
	return p.scaled(func(r *Record) float64 {
		native := float64(r.Native)
		if native == 0 && perNS > 0 { // not every form of a profile keeps it
			native = float64(r.Time) / perNS
		}
		// In full up to a quarter of that time, and by less and less from there on.
		cold := min(max(math.Log(coldFor/max(native, 1))/math.Log(4), 0), 1)
		return math.Pow(coldSlows, -cold)
	})
}

// warmest is the profile with what was timed as short as it may have been in warm caches.
func (p *Profile) warmest() *Profile {
	if p.Clock.ColdNS > 0 {
		return p.colder(p.Clock.coldWithin())
	}
	return p.warmed()
}

// coldWithin is the factor within which ColdNS is known.
func (c *Clock) coldWithin() float64 { return cmp.Or(c.ColdWithin, coldWithin) }

// colder is the profile were what blocks cost that are fetched again after a hold so many times what was taken for it.
func (p *Profile) colder(times float64) *Profile {
	perNS := p.Clock.TouchRate()
	return p.scaled(func(r *Record) float64 {
		before := float64(r.Native) * perNS // with nothing taken out
		if before <= float64(r.Time) {
			return 1
		}
		return math.Pow(float64(r.Time)/before, times-1)
	})
}

// of is the miss ratios of such a profile by the stationary conversion.
func (x *bander) of(q *Profile) ([]float64, error) { return x.longer(q, 1) }

// longer is that where distances are so many times longer than they are converted to.
func (x *bander) longer(q *Profile, times float64) ([]float64, error) {
	e := x.e
	if q != x.p {
		var err error
		if e, err = q.estimate(); err != nil {
			return nil, err
		}
	}
	out := make([]float64, len(x.sizes))
	return out, x.conv.missRatios(out, e.masses(), x.sizes, times)
}

// placeError is the standard error of what holds by time tell, as the logarithm of a miss ratio: a hold has the weight that goes with the
// speed of the code where it begins, and tells of some thousands of accesses from there on. Of 29 plain kernels, simulated, two were off by
// 17 and 20 %, with chance aside.
const placeError = 0.11

// distanceError is the end of the conversion's 95 % interval, as a logarithm.
const distanceError = 1.96 * conversionError

// atRate is the miss ratios by the stationary conversion if the clock had another rate; those of its own where
// there is none.
func (x *bander) atRate(rate float64) ([]float64, error) {
	if !(rate > 0) || !(x.p.Clock.Rate > 0) || rate == x.p.Clock.Rate {
		return x.base, nil
	}
	return x.of(x.p.atRate(rate / x.p.Clock.Rate))
}

// atRate is the profile as it would be if that many times as many accesses were made in the time that blocks that are fetched again after
// a hold leave of what was timed. Where that is a part s of it, and n accesses touch as many blocks as the root of n says, x times as many
// accesses take as long:
//
//	s x/factor + (1-s) c sqrt(x) = 1,
//
// where a block costs c times as much at that rate. Of real programs more blocks are touched, which makes for less of a change.
func (p *Profile) atRate(factor float64) *Profile {
	perNS, c := p.Clock.TouchRate(), p.Clock.coldAt(factor)
	return p.scaled(func(r *Record) float64 {
		before := float64(r.Native) * perNS
		if p.Clock.ColdNS == 0 || before <= float64(r.Time) {
			return factor
		}
		s := float64(r.Time) / before
		cold := c * (1 - s)
		y := 2 / (cold + math.Sqrt(cold*cold+4*s/factor)) // the root of x
		return y * y
	})
}

// coldLeast is what of ColdNS is left at least, at whatever rate.
const coldLeast = 1.0 / 8

// coldAt is how many times ColdNS a block costs at so many times the rate.
func (c *Clock) coldAt(factor float64) float64 { return max(1+c.ColdByRate*(1-1/factor), coldLeast) }

// scaled is the profile with what was timed as many times as long in accesses as by says, itself where nothing was timed.
func (p *Profile) scaled(by func(r *Record) float64) *Profile {
	if !p.anyTimed() {
		return p
	}
	q := p.copied()
	for i := range q.Records {
		r := &q.Records[i]
		if r.Exact {
			continue
		}
		factor := by(r)
		scale := func(t uint64) uint64 { return max(uint64(math.Round(float64(t)*factor)), r.After+1) }
		if r.Time = scale(r.Time); r.Half {
			r.PairTime = scale(r.PairTime)
		}
	}
	return q
}

func (p *Profile) anyTimed() bool {
	for i := range p.Records {
		if !p.Records[i].Exact {
			return true
		}
	}
	return false
}

// copied is the profile with records of its own, in its room if it has one: they are those of the copy made last.
func (p *Profile) copied() *Profile {
	q := *p
	switch {
	case p.room == nil:
		q.Records = slices.Clone(p.Records)
	case len(p.Records) > 0 && &p.Records[0] != &p.room[:1][0]:
		q.Records = append(p.room[:0], p.Records...)
	}
	return &q
}

// heaviest is, for each size, what the hold that weighs most would add to the miss ratio if all of
// it missed that can: what was not seen reused by reading ahead, or not within so many blocks.
func (p *Profile) heaviest(e *estimate, sizes []uint64) []float64 {
	out, sum := make([]float64, len(sizes)), make([]float64, len(sizes))
	total := e.mass.Total()
	add := func(r *Record, w float64) {
		blocks, counted := r.counted()
		for k, s := range sizes {
			if !counted || blocks >= s {
				sum[k] += w
			}
		}
	}
	over := func() {
		for k, w := range sum {
			out[k] = max(out[k], w/total)
		}
		clear(sum)
	}
	// The records of one hold after the other: a row for each would be far more memory than they are.
	type chain struct{ first, last int }
	var holds byHold[chain]
	next := make([]int, len(p.Records)) // record's number and one, 0: none
	for i := range p.Records {
		switch r := &p.Records[i]; {
		case !r.outcome() || !(r.Accesses > 0):
		case r.Hold == 0:
			add(r, r.Accesses/float64(p.clusters(r)))
			over()
		default:
			c := holds.of(r.Hold)
			if c.first == 0 {
				c.first = i + 1
			} else {
				next[c.last-1] = i + 1
			}
			c.last = i + 1
		}
	}
	for _, c := range holds.all {
		for i := c.first; i > 0; i = next[i-1] {
			add(&p.Records[i-1], p.Records[i-1].Accesses)
		}
		over()
	}
	return out
}

// point is that of size number i, but for what was not followed long enough.
func (x *bander) point(i int) Point {
	r, v := x.ratio[i], x.variance[i]
	q := Point{Blocks: x.sizes[i], MissRatio: r, Low: 0, High: 1, Misses: r * x.e.mass.Total()}
	if !math.IsInf(v, 1) {
		low, high := gammaBand(r, v, x.unit[i])
		wider := studentFactor(x.clusters)
		high = min(1, r+(high-r)*wider)
		q.High = x.high(i, high, wider)
		if r*r >= sure*v && x.base[i] > 0 {
			down, up := x.factors(i, wider*below(low, r), below(r, high), wider)
			q.Low, q.High = r*math.Exp(-down), max(q.High, r*math.Exp(up))
		}
	}
	q.Low, q.High = min(r, max(0, q.Low)), max(r, min(1, q.High))
	switch {
	case !(r*r >= sure*v):
		q.Quote = TooRare
	case q.High > telling*r || q.Low < r/tellingBelow:
		q.Quote = TooWide
	}
	return q
}

// factors are by how much the ratio at size number i may be lower and higher, as logarithms, as chance makes it by so much in a band that
// is so many times as wide as if its variance were known: each error is a factor, and of independent ones logarithms add up in squares.
func (x *bander) factors(i int, fewer, more, wider float64) (down, up float64) {
	c, base := &x.p.Clock, x.base[i]
	reach := func(ends ...float64) (down, up float64) {
		return below(slices.Min(ends), base), below(base, slices.Max(ends))
	}
	slow, fast := reach(x.slow[i], x.fast[i])
	waiting, still := reach(x.still[i], x.waiting[i])
	warm, cool := reach(x.warm[i], x.cool[i])
	down = math.Hypot(math.Hypot(fewer, below(x.far[i], x.ratio[i])), waiting)
	up = math.Hypot(math.Hypot(more, below(x.ratio[i], x.near[i])), still)
	if c.RateSource == AssumedRate { // what is not known at all is off by all that it may
		down, up = down+slow, up+fast
	} else {
		down, up = math.Hypot(down, slow), math.Hypot(up, fast)
	}
	if c.ColdNS > 0 {
		down, up = math.Hypot(down, warm), math.Hypot(up, cool)
	} else {
		down += warm
	}
	// That some accesses wait longer than others, where they are taken to be alike, always has time meet misses too often.
	down = max(down, fewer+waiting)
	if c.RateSource != AssumedRate {
		down = max(down, x.jointlyLower(i, wider))
	}
	if c.Unit == "nanoseconds" {
		place := math.Log(x.misplaced())
		down, up = math.Hypot(down, place), math.Hypot(up, place)
	}
	return down, up
}

// jointlyLower is by how much it may be lower, as a logarithm, with errors that are off together.
func (x *bander) jointlyLower(i int, wider float64) (down float64) {
	for k, part := range jointly {
		off := below(x.less[k][i], x.base[i])
		if part < 1 {
			low, _ := x.chance(i, x.less[k][i])
			off += math.Sqrt(1-part*part) * wider * below(low, x.less[k][i])
		}
		down = max(down, off)
	}
	return down
}

// below is by how much low is below a ratio, as a logarithm.
func below(low, ratio float64) float64 {
	if low >= ratio {
		return 0
	}
	return math.Log(ratio / low)
}

// misplaced is the factor within which ratios are known as holds come by time.
func (x *bander) misplaced() float64 { return max(math.Exp(1.96*placeError), x.p.Clock.Misplaced) }

// high is the upper end where errors are differences and chance by itself makes it so much.
func (x *bander) high(i int, chance, wider float64) float64 {
	r := x.ratio[i]
	most := func(ends ...float64) float64 { return max(0, slices.Max(ends)-x.base[i]) }
	above := math.Hypot(most(x.slow[i], x.fast[i]), most(x.still[i], x.waiting[i]))
	if x.p.Clock.ColdNS > 0 {
		above = math.Hypot(above, most(x.cool[i]))
	}
	high := r + math.Hypot(chance-r, max(r, x.near[i])-r)
	if x.p.Clock.RateSource == AssumedRate {
		high += above
	} else {
		high = r + math.Hypot(high-r, above)
		for k, part := range jointly {
			_, h := x.chance(i, x.more[k][i])
			high = max(high, r+x.more[k][i]-x.base[i]+math.Sqrt(1-part*part)*wider*(h-x.more[k][i]))
		}
	}
	if x.p.Clock.Unit == "nanoseconds" {
		high = r + math.Hypot(high-r, r*x.misplaced()-r)
	}
	return high
}

// chance is the band of chance about another ratio at size number i.
func (x *bander) chance(i int, ratio float64) (low, high float64) {
	v := ratio * x.unit[i] // as of holds that all weigh as much as the heaviest
	if r := x.base[i]; r > 0 && x.variance[i] < v*r/max(ratio, r) {
		v = x.variance[i] * ratio / r
	}
	return gammaBand(ratio, v, x.unit[i])
}

// longestWait is how long an access waits for its data at most, in ns, as a mean: for memory, one after the other.
const longestWait = 300

// waitAtLeast and waitAtMost are the ends of how long an open access waits.
func (c *Clock) waitAtLeast() float64 {
	if c.WaitWithin > 0 {
		return c.WaitNS / c.WaitWithin
	}
	return 0
}

func (c *Clock) waitAtMost() float64 {
	if c.WaitWithin > 0 {
		return c.WaitNS * c.WaitWithin
	}
	return longestWait
}

// waits is the miss ratios by the stationary conversion if an open access waited so long, in ns. A timer finds
// code that waits too often, and each hold stands for as many accesses as fit into its time.
func (x *bander) waits(ns float64) ([]float64, error) {
	if x.p.Clock.WaitNS == 0 || x.p.Clock.PlainNS == 0 {
		return x.base, nil
	}
	return x.of(x.p.waiting(ns))
}

// waiting is the profile were that how long they wait.
func (p *Profile) waiting(ns float64) *Profile {
	q := p.copied()
	for i := range q.Records {
		r := &q.Records[i]
		r.Accesses *= (p.Clock.PlainNS + r.Open*p.Clock.WaitNS) / (p.Clock.PlainNS + r.Open*ns)
	}
	return q
}
