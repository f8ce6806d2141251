package estimate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

const (
	// FewestProbes there must be for the rate to be theirs, and the largest standard error
	// that it may have: the assumed one is off by as much and more, for programs make 0.01 to 9.
	FewestProbes, largestError = 4, 0.8
	// unmetFaster is how many times as fast as the mean code is taken to be that no probe came by, as one
	// standard error: parts of bzip2 are 4 times as fast as others.
	unmetFaster = 3
)

// DefaultAccessRate is assumed where nothing says how many accesses a
// nanosecond of CPU time holds: about 3 GHz at one and a half
// instructions a cycle, of which a quarter to a third touch memory.
const DefaultAccessRate = 1.0

// DefaultPerInstruction is assumed where instructions are counted.
const DefaultPerInstruction = 0.35

// Probes are what came of the probes of the access rate, in accesses per nanosecond.
type Probes struct {
	Values []float64
	Later  []float64 // of the later part of what is timed, where it was reached
	Before []float64 // of the part before it
	Legs   []Leg
	Held   time.Duration // by probes
	// StampNS is what a stamp costs its thread.
	StampNS float64
	Failed  map[model.Reason]int
	Busy    time.Duration // of replaying
	Pending bool          // one was still being replayed at the end
}

// Rates are the access rates of a session.
type Rates struct {
	Probes
	Fixed  float64 // if not measured
	Source string

	possible  rateRange // by the instructions that were read ahead, or by the model of the processor
	modelled  bool      // by that
	alike     bool      // by that all code is as fast
	torn      bool      // probes and model contradict each other, and neither is known to be wrong
	overruled bool      // the model is believed against these
	settled   float64   // the mean over time in user mode, 0 if it is Fixed
	likely    rateRange // it is, in 95 of 100 sessions
	modes     modes     // the clock's time has the kernel's in it

	codeRates
}

// codeRates are those of the code, as probes and holds tell them.
type codeRates struct {
	local *localRates // nil where the whole's mean is all that is known
	// whole is the mean over time by way of the local rates, 0 without these, and wholeError
	// its standard error as a share, but for unmet, the share of the time in holds in whose code no probe came by;
	// localError is that of an observation's own. explained is the mean of the observations' own.
	whole, wholeError, unmet, localError, explained float64
}

// Settle decides on the rate, in accesses per unit of the clock.
func (r *Rates) Settle(flag float64, clock sampler.Clock) {
	switch {
	case clock.Unit == sampler.Accesses:
		r.Fixed, r.Source = 1, "counted"
	case flag > 0:
		r.Fixed, r.Source = flag, "flag"
	case clock.Unit == sampler.Instructions:
		r.Fixed, r.Source = DefaultPerInstruction, model.AssumedRate
	default:
		r.settled, r.likely = r.weighed()
		switch {
		case !r.torn && !r.overruled && len(r.Values) >= FewestProbes && min(r.error(), r.RelativeError()) <= largestError:
			r.Source = measuredRate
		case r.settled > 0:
			r.Source = estimatedRate
		default:
			r.Fixed, r.Source = DefaultAccessRate, model.AssumedRate
		}
	}
}

// roughly is about how many accesses a ns makes, by the rate that was given, 0, or what is possible.
func (r *Rates) roughly(flag float64) float64 {
	switch {
	case flag > 0:
		return flag
	case r.possible.high > 0:
		return math.Exp(r.possible.middle())
	}
	return DefaultAccessRate
}

// Mean over the session's CPU time.
func (r *Rates) Mean() float64 {
	if r.Fixed > 0 {
		return r.Fixed
	}
	return r.settled * r.modes.inUser()
}

// perUser is the mean over the time in user mode.
func (r *Rates) perUser() float64 { return r.Mean() / r.modes.inUser() }

// found is the mean over time by the probes, without what they find too slow; there must be one.
func (r *Rates) found() float64 {
	found := r.measured()
	if r.whole > 0 {
		found = r.whole
	}
	return found * math.Exp(ProbesSlow)
}

// measured is the mean of the probes' rates; there must be one.
func (r *Rates) measured() float64 {
	return Mean(r.Values)
}

func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// error is the standard error of the mean over time, as a share of it, as far as probes tell.
func (r *Rates) error() float64 {
	if r.whole > 0 {
		return r.wholeError
	}
	return r.RelativeError()
}

// slowestRate and fastestRate are the access rates, per nanosecond, that programs are known to have: one that waits for
// a crowded memory at each access, and one that makes two or three in each cycle.
const slowestRate, fastestRate = 0.005, 10

// reach is the interval of the mean rate, or of all rates that are possible; 0 where it is exact or given.
func (r *Rates) reach() (low, high float64) {
	switch r.Source {
	case model.AssumedRate:
		return slowestRate, fastestRate
	case measuredRate, estimatedRate:
		return r.likely.low * r.modes.inUser(), r.likely.high * r.modes.inUser()
	}
	return 0, 0
}

// The model.Clock's RateSource: of probes, and of few or none by the instructions that were read ahead.
const measuredRate, estimatedRate = "measured", model.EstimatedRate

// fullError has besides what may be in phases that no probe has met, and what all probes have in common.
func (r *Rates) fullError() float64 {
	met := math.Hypot(r.error(), r.unmet*(unmetFaster-1))
	return math.Hypot(met, r.sharedError())
}

// sharedError is what all probes have in common.
func (r *Rates) sharedError() float64 { return math.Hypot(probeError, r.selectiveError()) }

// selectiveError is for what those that failed would have found.
func (r *Rates) selectiveError() float64 { return selective * r.failedShare() }

// selective is the standard error, as a share, of a rate of which most probes have failed: what these would have found, as
// of code between system calls, is not like the rest.
const selective = 0.5

// Tried is how many probes there were, with those that gave no rate.
func (p *Probes) Tried() int {
	n := len(p.Values)
	for _, failed := range p.Failed {
		n += failed
	}
	return n
}

// failedShare is how many of the probes gave no rate.
func (r *Rates) failedShare() float64 {
	tried := r.Tried()
	return float64(tried-len(r.Values)) / float64(max(tried, 1))
}

// ProbesSlow is by how much probes find code to be slower than it is, as a logarithm, and probeError the standard error of that: behind a
// hold more lines come from far, for longer than a probe lasts. Of 26 plain kernels and two programs rates were higher than by their probes
// by 0.14 at the median, and by 0.18 on average, with a standard deviation of 0.19, without two at either end.
const ProbesSlow, probeError = 0.15, 0.2

// interval holds the mean over time in 95 of 100 sessions; it is as wide as a few probes leave it (Student's t).
func (r *Rates) interval() (low, high float64) {
	parts := len(r.Values)
	if r.whole > 0 {
		parts = min(parts, mostFolds)
	}
	met := math.Hypot(r.error(), r.unmet*(unmetFaster-1))
	factor := math.Exp(math.Hypot(student(parts)*met, 1.96*r.sharedError()))
	return r.found() / factor, r.found() * factor
}

// student is within how many of its standard errors the mean of n is, with 95 %.
func student(n int) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile(.975)
}

// RelativeError is the standard error of the probes' mean, as a share of it; NaN of a single
// probe.
func (r *Rates) RelativeError() float64 {
	m, n := r.measured(), float64(len(r.Values))
	squares := 0.0
	for _, v := range r.Values {
		squares += (v - m) * (v - m)
	}
	return math.Sqrt(squares/(n-1)/n) / m
}

// quantile of the probes' rates; there must be one.
func (r *Rates) quantile(q float64) float64 {
	slices.Sort(r.Values)
	return r.Values[int(q*float64(len(r.Values)-1))]
}

// rateCounts says in the profile what became of the probes.
func (s *stage) rateCounts(p *model.Profile) {
	r := &s.Rates
	p.AddCount(model.RateProbes, uint64(len(r.Values)))
	for why, n := range r.Failed {
		p.AddCount(model.ProbeWithout.Of(why), uint64(n))
	}
	if r.Pending {
		p.AddCount(model.ProbeWithout.Of(model.ProbeUnended), 1)
	}
	if len(r.Values) > 1 {
		low, high := r.interval()
		found := fmt.Sprintf("access rate: %.3g per ns by %d probes, 95%% interval %.3g to %.3g, standard error %.0f%%", r.found(), len(r.Values), low, high, 100*r.fullError())
		if r.unmet > 0 {
			found += fmt.Sprintf("; no probe came by the code of %.0f%% of the time, which is taken to be %v times as fast, by one of its standard errors", 100*r.unmet, unmetFaster)
		}
		p.Comments = append(p.Comments, found)
		p.Comments = append(p.Comments, fmt.Sprintf("access rate: the probes' are %.3g on average, quartiles %.3g to %.3g; they held threads for %v; a stamp costs %.1f µs",
			r.measured(), r.quantile(.25), r.quantile(.75), r.Held.Round(time.Microsecond), r.StampNS/1000))
	}
	if r.Busy > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf(model.FollowingProbes+" %v of CPU time, %.1f%% of the target's, beside it: that is not in the overhead",
			r.Busy.Round(time.Millisecond), 100*float64(r.Busy)/float64(max(s.Ran, 1))))
	}
	if len(r.Later) > 1 {
		p.Comments = append(p.Comments, fmt.Sprintf("access rate: %+.0f%% in the later half of what %d probes timed; were caches still cold after the hold it would be higher", 100*(Mean(r.Later)/Mean(r.Before)-1), len(r.Later)))
	}
	if r.modes.inUser() < 1 {
		p.Comments = append(p.Comments, r.modes.comment(r))
	}
	s.localComments(p)
	if s.foretold != nil {
		p.Comments = append(p.Comments, s.foretold.comment())
	}
	if r.possible.high > 0 && r.Fixed == 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("access rate: %.2g to %.2g per ns by the instructions and open accesses read ahead; with the probes %.3g, 95%% interval %.3g to %.3g",
			r.possible.low, r.possible.high, r.settled, r.likely.low, r.likely.high))
	}
	if s.MeasuresRate && (r.Source == model.AssumedRate || r.Source == estimatedRate) {
		why := fmt.Sprintf("only %d probes found one, want %d", len(r.Values), FewestProbes)
		switch {
		case r.torn:
			why = fmt.Sprintf("%d probes contradict the model of the processor: they may have met one kind of code only", len(r.Values))
		case r.overruled:
			why = fmt.Sprintf("%d of %d probes found one, which contradicts the model of the processor: these may have met what makes few accesses", len(r.Values), r.Tried())
		case len(r.Values) >= FewestProbes:
			why = fmt.Sprintf("the standard error of the measured one is above %.0f%%", 100*largestError)
		}
		p.Comments = append(p.Comments, "access rate: "+map[bool]string{true: "assumed", false: "estimated"}[r.Source == model.AssumedRate]+"; "+why)
	}
}
