package estimate

import (
	"cmp"
	"math"
	"slices"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
)

// Of the laps that were timed behind holds it is known how many accesses they are, and how many lines they touch that were not touched
// since the hold. What they take more than the processor's model foretells is what these lines cost:
//
//	w = (T - n/rate) / lines,
//
// summed over the laps.

const (
	// leastLaps there must be for their spread to tell anything.
	leastLaps = 4
	// lapsTrimmed is the part of the laps at either end that is left out: in one the host may have taken the processor away.
	lapsTrimmed = 0.1
	// coldBeyond is the standard error, as a logarithm, of what lines cost that are touched later than a lap ends: of chains and sweeps
	// of 1,000 to 32,000 lines the first thousand cost 1 and 2.4 times as much each.
	coldBeyond = 0.35
	// coldLeast bounds how much less than what the laps tell a line may cost.
	coldLeast = 8
)

// lineCost is what a line costs that is touched again after a hold, in ns; the factor within which that is known, with 95 %, were the rate;
// and by which share of it it would be more were accesses to take no time.
type lineCost struct{ each, within, byRate float64 }

// coldByLaps is that as the laps tell it; ok is false where they do not. usual is what it is taken to cost without.
func coldByLaps(laps []record.Lap, f *foretold, c *model.Clock, usual float64) (cost lineCost, ok bool) {
	known := lapsOf(laps, f, f.mean()/c.Rate)
	if len(known) < leastLaps {
		return cost, false
	}
	slices.SortFunc(known, func(a, b timedLap) int { return cmp.Compare(a.each(), b.each()) })
	cut := int(lapsTrimmed * float64(len(known)))
	known = known[cut : len(known)-cut]
	var sum timedLap
	for _, l := range known {
		sum = sum.plus(l, 1)
	}
	var squares float64
	n := float64(len(known))
	for _, l := range known {
		d := sum.plus(l, -1).each() - sum.each()
		squares += d * d * (n - 1) / n
	}
	x := sum.each()
	chance := math.Sqrt(squares) * student(len(known)) / 1.96
	// What waits for memory may find its lines in a cache now: rdx has read them.
	waits := sum.waits / 2 / sum.lines()
	code := (sum.ns - sum.plain) * (1/sum.data - 1/sum.lines()) / 2
	off := 1.96 * math.Sqrt(chance*chance+waits*waits+code*code)
	high := max(x+off, 2*usual/coldWithin)
	low := max(x-off, high/(coldLeast*coldLeast), x/coldLeast)
	cost.each = math.Sqrt(low * high)
	cost.within = min(math.Exp(math.Hypot(math.Log(high/low)/2, 1.96*coldBeyond)), coldWithin)
	cost.byRate = sum.plain / sum.lines() / cost.each
	return cost, true
}

// timedLap is one or several.
type timedLap struct {
	ns, plain  float64 // that it took, and that it takes without cold caches
	waits      float64 // of plain, for lines
	data, code float64 // lines
}

func (l timedLap) lines() float64 { return l.data + l.code }

// each is what a line costs.
func (l timedLap) each() float64 { return (l.ns - l.plain) / l.lines() }

func (l timedLap) plus(m timedLap, times float64) timedLap {
	return timedLap{l.ns + times*m.ns, l.plain + times*m.plain, l.waits + times*m.waits, l.data + times*m.data, l.code + times*m.code}
}

// lapsOf are those of holds of which the model foretells how long accesses take. They take so many times as long, by the rate that was
// settled on.
func lapsOf(laps []record.Lap, f *foretold, times float64) (known []timedLap) {
	for i := range laps {
		l := &laps[i]
		w, ok := f.windows[l.Hold]
		if !ok || l.Data == 0 {
			continue
		}
		n := times * float64(l.Accesses)
		each, near := f.split(w)
		plain := n * each
		known = append(known, timedLap{ns: l.NS, plain: plain, waits: plain - n*near, data: float64(l.Data), code: float64(l.Code)})
	}
	return known
}
