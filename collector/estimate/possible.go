package estimate

import "math"

// What is read ahead bounds the access rate, whatever the program: so many instructions go with an access, of which
// a processor makes so many a nanosecond, and so many of the accesses may have to wait for memory.
const (
	// slowInstructions and fastInstructions are how many a nanosecond are made in 95 of 100 programs where no data are waited
	// for: one in three cycles, as of branches that are foretold wrongly or of divisions, on a processor that is shared; and six
	// to eight in each cycle.
	slowInstructions, fastInstructions = 1, 32
	// farNS is what an access that was not read to be reused waits at most.
	farNS = 300
)

// rateRange is a 95 % interval of the rate, in accesses per nanosecond; none if high is 0.
type rateRange struct{ low, high float64 }

// middle and spread are those of the logarithm: its mean and standard deviation, were it normal.
func (r rateRange) middle() float64 { return math.Log(r.low*r.high) / 2 }
func (r rateRange) spread() float64 { return math.Log(r.high/r.low) / (2 * 1.96) }

// possibleRates is what the holds' instructions allow.
func (s *stage) possibleRates() (r rateRange) {
	var low, high, holds float64
	for i := range s.Holds {
		h := &s.Holds[i]
		if h.Accesses > 0 && h.Instructions > 0 {
			perInstruction := float64(h.Accesses) / float64(h.Instructions)
			low, high, holds = low+perInstruction*slowInstructions, high+perInstruction*fastInstructions, holds+1
		}
	}
	if holds == 0 {
		return r
	}
	r.high = high / holds
	r.low = 1 / (holds/low + s.openShare()*farNS)
	return r
}

// openShare is what part of the accesses were not read to be reused.
func (s *stage) openShare() float64 {
	var open, all float64
	for _, o := range s.Seen {
		if o.Hold > 0 {
			if all += o.Times(); o.Soon == 0 {
				open += o.Times()
			}
		}
	}
	if all == 0 {
		return 1
	}
	return open / all
}

// alone is the standard deviation of the logarithm of a single probe's rate about the mean over time, as far as can be
// told of one.
const alone = 1

// weighed is the mean over time by probes and by what is possible, each by its own error, and its interval. Where the two
// contradict each other, many probes are believed, and a few where the model has all code as fast. Of a few others that contradict
// the model both may be right, and else neither is.
func (r *Rates) weighed() (rate float64, reach rateRange) {
	n := len(r.Values)
	var m, e float64
	switch {
	case n > 0:
		m, e = r.probed()
		if r.possible.high == 0 {
			break
		}
		m0, e0 := r.possible.middle(), r.possible.spread()
		apart := math.Abs(m-m0) / math.Hypot(e, e0)
		switch {
		case apart <= 2:
		case r.modelled && n < manyProbes && r.failedShare() > mostFailed:
			r.overruled = true
			return math.Exp(m0), interval(m0, contradicted*e0)
		case r.modelled && n >= FewestProbes && (!r.alike && n < manyProbes || m < m0 && r.failedShare() > manyFailed): // they may have met one kind of code only
			r.torn = true
			probed, modelled := interval(m, e), interval(m0, e0)
			reach = rateRange{min(probed.low, modelled.low), max(probed.high, modelled.high)}
			return math.Exp(reach.middle()), reach
		case n >= FewestProbes:
			return math.Exp(m), interval(m, e)
		case n == 1 && r.modelled: // it may have been taken while the processor was somebody else's
			return math.Exp(m0), interval(m0, contradicted*e0)
		}
		w, w0 := 1/(e*e), 1/(e0*e0)
		m, e = (w*m+w0*m0)/(w+w0), max(apart, 1)/math.Sqrt(w+w0)
	case r.possible.high > 0:
		m, e = r.possible.middle(), r.possible.spread()
	default:
		return 0, reach
	}
	return math.Exp(m), interval(m, e)
}

// probed is the logarithm of the rate in user mode by the probes, with its standard error; there must be one.
func (r *Rates) probed() (m, e float64) {
	e = alone
	if n := len(r.Values); n > 1 {
		low, high := r.interval()
		e = min(rateRange{low, high}.spread(), math.Hypot(alone/math.Sqrt(float64(n)), r.sharedError()))
	}
	paging, off := r.modes.paging()
	return math.Log(r.found()) + paging, math.Hypot(e, off)
}

// manyProbes are more than may all have met one of a program's phases: of two that are half of the time each, one session in a thousand.
const manyProbes = 12

// manyFailed is the share of probes above which those that found a rate may be of slower code than others: what makes fewer accesses comes
// less far on its way to what fails.
const manyFailed = 0.5

// mostFailed is the share of probes above which those few that found a rate are of stretches that make hardly any accesses, as in the
// kernel: others went another way before.
const mostFailed = 7.0 / 8

// contradicted is by how much less what is possible is believed where the only probe contradicts it, or those few of many.
const contradicted = 1.5

// interval of 95 % is that of a logarithm with a standard error.
func interval(m, e float64) rateRange {
	return rateRange{math.Exp(m - 1.96*e), math.Exp(m + 1.96*e)}
}
