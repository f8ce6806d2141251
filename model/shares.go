package model

import "math"

// Shares says what a profile's estimate rests on, as shares of all its mass
// that was not lost; they add up to 1.
type Shares struct {
	Exact        float64 `json:"exact"`        // reuses that were read ahead and counted
	Timed        float64 `json:"timed"`        // reuses that were seen and timed
	Interpolated float64 `json:"interpolated"` // reuses put in by Kaplan & Meier and from half lines to whole ones
	Unseen       float64 `json:"unseen"`       // of which no reuse was seen, by whatever reason
}

// Shares needs the derived fields. It is zero for an empty profile.
func (p *Profile) Shares() (s Shares) {
	var all, reused float64
	for i := range p.Records {
		r := &p.Records[i]
		if !r.outcome() {
			continue
		}
		all += r.Accesses
		reused += r.Reuses
		if seen := min(r.Accesses, r.Reuses); r.Exact {
			s.Exact += seen
		} else {
			s.Timed += seen
		}
	}
	if !(all > 0) {
		return Shares{}
	}
	s.Exact /= all
	s.Timed /= all
	s.Interpolated = max(0, reused/all-s.Exact-s.Timed)
	s.Unseen = max(0, 1-s.Exact-s.Timed-s.Interpolated)
	return s
}

// Sharing is how much of what was observed in private stacks finds its cache line written by another thread, as shares of
// the accesses.
type Sharing struct {
	True    float64 `json:"true"`    // where the thread itself touches it
	False   float64 `json:"false"`   // elsewhere in the line
	Unknown float64 `json:"unknown"` // of these it is not known
	// Low and High are the ends of the 95 % band of the first two: what is not known may be all, or nothing of it.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Turns is the share of the first two that is of threads that wait for each other, by turns or a lock.
	Turns float64 `json:"turns"`
	// Swift is the share of them that lines that come back sooner than they can move may have less: who has them goes on meanwhile.
	Swift float64 `json:"swift"`
	// Served is for how much of the time that the threads wanted a processor, and the program had any for them, they had one.
	Served float64 `json:"served"`
	// Apart is the standard error of the first two, as it is not known whether threads work on the same data at the same times.
	Apart float64 `json:"apart"`
	// ByLine is false for a profile that knows of words only: True are these, and there is no band.
	ByLine bool `json:"by_line"`
}

// sharingError is the standard error, as a share, of what others take by what was read ahead of each: threads are
// not as fast as each other, nor quite independent.
const sharingError = 0.12

// turnsError is that of threads that wait for each other: who of them comes next, and what they do while they wait, is
// not seen where each is read ahead of alone.
const turnsError = 0.35

// Sharing sums up the profile's records of lines. The band is that of a sample of holds, by leaving out one
// of their parts after the other (the jackknife), see gammaBand.
func (p *Profile) Sharing() Sharing {
	var taken, unknown, all [JackknifeGroups + 1]float64
	s := Sharing{ByLine: p.CountOf(JoinedHolds) > 0}
	if s.ByLine {
		joined := float64(p.CountOf(JoinedHolds))
		s.Turns = min(float64(p.CountOf(TurnHolds))/joined, 1)
		s.Swift = min(float64(p.CountOf(SwiftHolds))/joined, 1)
		s.Served = max(1-float64(p.CountOf(LateHolds))/joined, 0)
	}
	words := 0.0
	for i := range p.Records {
		r := &p.Records[i]
		if r.Stack != StackPrivate || r.Kind == Lost {
			continue
		}
		part := min(max(r.Group, 0), JackknifeGroups)
		if part == 0 {
			part = 1 + int(r.Hold%JackknifeGroups)
		}
		switch r.Kind {
		case TrueSharing, FalseSharing:
			taken[part] += r.Accesses
			if r.Kind == TrueSharing {
				s.True += r.Accesses
			} else {
				s.False += r.Accesses
			}
		case UnknownSharing:
			unknown[part] += r.Accesses
		default:
			all[part] += r.Accesses
			if r.Kind == Invalidated {
				words += r.Estimated()
			}
		}
	}
	total := sum(all[:])
	if !(total > 0) {
		return Sharing{}
	}
	if !s.ByLine {
		s.True = words
	}
	s.True, s.False, s.Unknown = s.True/total, s.False/total, sum(unknown[:])/total
	s.Low, s.High = s.True+s.False, s.True+s.False
	if s.ByLine {
		s.Apart = float64(p.CountOf(ApartAccesses)) / total
		s.setBand(taken[:], all[:], int(p.Holds()))
	}
	return s
}

func (s *Sharing) setBand(taken, all []float64, holds int) {
	share, total, parts := sum(taken)/sum(all), sum(all), 0
	var mean, squares, most float64
	for i, a := range all {
		if !(a > 0) {
			continue
		}
		parts++
		most = max(most, min(taken[i]/a, 1))
		left := share
		if a < total {
			left = (sum(taken) - taken[i]) / (total - a)
		}
		mean += left
		squares += left * left
	}
	n := float64(parts)
	variance := max(0, squares/n-mean*mean/n/n) * (n - 1)
	if share == 0 {
		most = 1
	}
	model := sharingError + (turnsError-sharingError)*s.Turns
	variance += share*share*model*model + s.Apart*s.Apart
	s.Low, s.High = gammaBand(share, variance, most/float64(max(holds, 1)))
	s.High = min(s.High+s.Unknown*(1+2*turnsError*s.Turns), 1) // of turns it is itself an estimate
	s.Low *= 1 - s.Swift
	if s.Apart >= share {
		s.Low = 0
	}
	// Alone a thread loses no lines, and gets on faster.
	s.Low *= s.Served / (s.Served + fasterAlone*(1-s.Served))
	// Whether they had one at the same times is not seen: never, or always.
	if share > 0 && s.Served < mostlyServed {
		s.Low, s.High = 0, min(s.High/max(s.Served, leastServed), 1)
	}
}

// Threads that had a processor for less than mostlyServed of the time may never have been at work at once. Below leastServed
// it is not told how much more they take when they are.
const mostlyServed, leastServed = 0.8, 0.05

// fasterAlone is how many times as many accesses a thread makes while the others have no processor as beside them, at most.
const fasterAlone = 3

func sum(v []float64) (all float64) {
	for _, x := range v {
		all += x
	}
	return all
}

// SharedPerSecond is how many accesses a second those shares are: of all accesses of the program, or by the rates that are possible from
// low to high, if the profile's rate is not exact.
func (p *Profile) SharedPerSecond(share float64) (mean, low, high float64) {
	all := 0.0
	for i := range p.Records {
		if r := &p.Records[i]; r.outcome() {
			all += r.Accesses
		}
	}
	if !(p.Duration > 0) {
		return 0, 0, 0
	}
	mean = share * all / p.Duration.Seconds()
	low, high = mean, mean
	if c := &p.Clock; c.RateLow > 0 && c.Rate > 0 && !math.IsInf(c.RateHigh, 0) {
		low, high = mean*c.RateLow/c.Rate, mean*c.RateHigh/c.Rate
	}
	return mean, low, high
}
