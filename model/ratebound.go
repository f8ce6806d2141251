package model

import "math"

// A program can't have touched more than it has: where nothing counts accesses, its resident memory bounds
// the rate that turns time into accesses, and no distance is beyond it.

const (
	// ceilingHolds have seen a reuse as long as the one by which the rate is bounded, or a longer one.
	ceilingHolds = 3
	// residentSlack is by how much memory that was resident at any time may be more than was seen.
	residentSlack = 1.1
)

// residentBlocks is how many blocks the program has at most, 0 if that is not known.
func (p *Profile) residentBlocks() uint64 {
	return uint64(math.Ceil(float64(max(p.Resident, 0)) * residentSlack / float64(p.Block)))
}

// touchedBlocks is how many blocks the program has touched in all at most, 0 if that is not known.
func (p *Profile) touchedBlocks() float64 {
	return math.Ceil(float64(max(p.Touched, 0)) * residentSlack / float64(p.Block))
}

// RateCeiling is the access rate at which the reuses that were timed would have more data between them than
// the program has resident, by the low end of the 95 % band of their mean distance; ok is false where no rate up to
// most does.
func (p *Profile) RateCeiling(most float64) (rate float64, ok bool, err error) {
	return p.ceiling(p, most)
}

// ceiling is that where times are as those of a profile.
func (p *Profile) ceiling(timed *Profile, most float64) (rate float64, ok bool, err error) {
	blocks, longest := float64(p.residentBlocks()), timed.longReuse()
	if blocks == 0 || longest == 0 || !(p.Clock.Rate > 0) {
		return 0, false, nil
	}
	// Code that waits is found too often: how much of what goes by is due to that is not known, and the least is taken.
	lean := timed
	if p.Clock.WaitNS > 0 && p.Clock.PlainNS > 0 {
		lean = timed.waiting(p.Clock.waitAtMost())
	}
	least := math.Exp(-1.96 * math.Hypot(timed.meanError(longest), conversionError))
	over := func(rate float64) (bool, error) {
		factor := rate / p.Clock.Rate
		e, err := lean.atRate(factor).estimate()
		if err != nil || e.empty() {
			return false, err
		}
		var x SSX
		if err := x.Reset(e.net); err != nil {
			return false, err
		}
		mean, _ := x.Mean(uint64(float64(longest) * factor))
		return least*mean > blocks, nil
	}
	if ok, err = over(most); !ok || err != nil {
		return 0, false, err
	}
	low, high := 0.0, most
	for range 40 {
		mid := math.Sqrt(max(low, high/1e4) * high)
		more, err := over(mid)
		if err != nil {
			return 0, false, err
		}
		if more {
			high = mid
		} else {
			low = mid
		}
		if high < 1.01*low {
			break
		}
	}
	return high, true, nil
}

// meanError is the standard error, as a share, of the mean distance of reuses of that time, as chance has it: the
// distance is the mean over accesses of their time to reuse, but at most that (Xiang et al., ASPLOS 2013, average
// footprint), and holds are independent of each other.
func (p *Profile) meanError(longest uint64) float64 {
	type sum struct{ times, accesses float64 }
	var holds byHold[sum]
	var all sum
	mean := func() float64 { return all.times / all.accesses }
	for i := range p.Records {
		r := &p.Records[i]
		if !r.outcome() || r.Accesses == 0 {
			continue
		}
		y := r.Accesses * float64(min(r.Time, longest))
		all.times, all.accesses = all.times+y, all.accesses+r.Accesses
		if r.Hold == 0 {
			continue
		}
		h := holds.of(r.Hold)
		h.times, h.accesses = h.times+y, h.accesses+r.Accesses
	}
	if !(all.times > 0) {
		return 0
	}
	squares := 0.0
	for i := range p.Records { // those of many holds
		if r := &p.Records[i]; r.outcome() && r.Accesses > 0 && r.Hold == 0 {
			off := float64(min(r.Time, longest)) - mean()
			squares += r.Accesses * r.Accesses / p.independent(r) * off * off
		}
	}
	for _, h := range holds.all {
		off := h.times - mean()*h.accesses
		squares += off * off
	}
	return math.Sqrt(squares) / all.times
}

// longReuse is the longest reuse time that was timed in ceilingHolds holds, or exceeded; 0 if there is none.
func (p *Profile) longReuse() uint64 {
	var longest [ceilingHolds]uint64 // of different holds, in order
	var holds [ceilingHolds]uint64
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind != Reuse || r.Exact || r.BelowResolution {
			continue
		}
		t, hold := r.Time, r.Hold
		for k := range longest {
			if hold != 0 && holds[k] == hold {
				longest[k] = max(longest[k], t)
				break
			}
			if t > longest[k] {
				longest[k], t = t, longest[k]
				holds[k], hold = hold, holds[k]
			}
		}
	}
	return longest[ceilingHolds-1]
}

// BoundRate has the rate, and the interval it lies in, no higher than the program's resident memory allows, and
// says by what factor the rate was changed: 1 where it was not. The interval goes by what was timed were caches as cold after holds as they
// may be; if that says that the rate may be as high as it was found, it is left as it is.
func (p *Profile) BoundRate() (factor float64, err error) {
	most := max(p.Clock.RateHigh, p.Clock.Rate)
	ceiling, ok, err := p.RateCeiling(most)
	if !ok || err != nil || p.Clock.RateHigh == 0 {
		return 1, err
	}
	highest, ok, err := p.ceiling(p.warmest(), most)
	switch {
	case err != nil:
		return 1, err
	case !ok:
		highest = most
	}
	const near = 1.2 // as good as a contradiction: nothing is known so well
	if low := p.Clock.RateLow; ceiling < low && highest > low {
		ceiling = highest
	} else if ceiling < near*low { // they contradict each other, so that it is as unsure below
		p.Clock.RateLow = ceiling * math.Sqrt(low/p.Clock.RateHigh)
	}
	p.Clock.RateHigh = min(p.Clock.RateHigh, max(ceiling, highest))
	if factor = min(ceiling, p.Clock.RateHigh) / p.Clock.Rate; factor >= 1 {
		return 1, nil
	}
	*p = *p.atRate(factor)
	p.Clock.Rate *= factor
	return factor, nil
}

// Rescale has all that was seen stand for that many times as many accesses.
func (p *Profile) Rescale(times float64) {
	for i := range p.Records {
		r := &p.Records[i]
		r.Accesses *= times
		r.Squares *= times * times
	}
	for i := range p.Touches {
		t := &p.Touches[i]
		t.Accesses *= times
		t.Fetches *= times
		t.Used *= times
		t.Written *= times
	}
	for i := range p.Latencies {
		p.Latencies[i].Cycles *= times
	}
}
