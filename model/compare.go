package model

import (
	"fmt"
	"math"
)

// Estimate is a number with a confidence band.
type Estimate struct {
	Value, Low, High float64
}

// Minus is the difference e - o of independent estimates with a band of the
// same confidence, from theirs (Zou & Donner 2008): unlike one from standard
// errors it holds for bands that are not symmetric.
func (e Estimate) Minus(o Estimate) Estimate {
	d := e.Value - o.Value
	return Estimate{
		Value: d,
		Low:   d - math.Hypot(e.Value-e.Low, o.High-o.Value),
		High:  d + math.Hypot(e.High-e.Value, o.Value-o.Low),
	}
}

// Significant says whether the band leaves out 0.
func (e Estimate) Significant() bool { return e.Low > 0 || e.High < 0 }

// Estimate is the point's miss ratio and band.
func (q Point) Estimate() Estimate { return Estimate{q.MissRatio, q.Low, q.High} }

// PerAccess is the sum of a derived value over some of a profile's records,
// per access of the program, with a band that is wrong with probability alpha.
// accesses and holds are those of the whole profile, lost ones excepted, see Holds.
//
// The number of holds behind the sum is taken as Poisson; if they
// weigh differently, as one with the same mean and variance. What
// Kaplan-Meier and the conversion add is left out.
func (p *Profile) PerAccess(records []*Record, value func(*Record) float64, accesses float64, holds int64, alpha float64) Estimate {
	if !(accesses > 0) || holds <= 0 {
		return Estimate{}
	}
	var sum float64
	for _, r := range records {
		sum += value(r)
	}
	unit := accesses / float64(holds) // what one more would weigh
	k := 0.0
	if sum > 0 {
		unit = p.clusterSums(records, value) / sum
		k = sum / unit
	}
	low, high := garwood(k, alpha)
	return Estimate{sum / accesses, low * unit / accesses, high * unit / accesses}
}

// Widened is the estimate with a band so many times as wide.
func (e Estimate) Widened(by float64) Estimate {
	return Estimate{e.Value, e.Value - by*(e.Value-e.Low), e.Value + by*(e.High-e.Value)}
}

// Ends are the profile were all that was timed as short, and as long, as its clock, the caches after holds and the conversion leave
// possible with 95 %, off by what is likeliest together: the records are the same, in their order, with the misses that they have then.
// Where distances are exact they are the profile itself.
func (p *Profile) Ends() (short, long *Profile, err error) {
	if p.ExactDistances {
		return p, p, nil
	}
	at := func(by float64) (*Profile, error) {
		q := p.atRate(math.Exp(by))
		if q == p {
			return p, nil
		}
		if err := q.Derive(); err != nil {
			return nil, fmt.Errorf("distances at the ends of the clock's band: %w", err)
		}
		return q, nil
	}
	shorter, longer := p.reaches()
	if short, err = at(-shorter.with(distanceError)); err == nil {
		long, err = at(longer.with(distanceError))
	}
	return short, long, err
}
