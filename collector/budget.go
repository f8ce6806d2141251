package collector

import (
	"slices"
	"time"

	"github.com/rdx-profiler/rdx/sampler"
)

// budget keeps the profiler's cost to a share of the target's CPU time by
// the probability with which a sample becomes a candidate.
type budget struct {
	target float64 // share
	accept float64
	spent  float64 // share so far
	trapNS float64 // one trap
	stopNS float64 // one hold, besides the time held

	holdNS float64 // one hold and its traps

	lastCPU  uint64
	lastCost float64
}

const (
	// tickNS is one timer tick that comes to nothing: the interrupt and the
	// program. Measured 1 to 2 µs on virtual machines.
	tickNS = 2000
	// countersNS is what being stopped costs a thread with hardware counters,
	// which leave the processor and come back with it, besides the time held.
	// bench/overhead at --overhead 10 on a virtual machine found 50 µs;
	// without counters what it found was what was accounted for.
	countersNS = 50_000
	// firstHoldNS is assumed of a hold until holds have been measured.
	firstHoldNS          = 100_000
	minAccept, maxAccept = 0.001, 1.0
	// Ticks are no further apart and no closer than this.
	minGap, maxGap = 500 * time.Microsecond, 10 * time.Millisecond
)

// gap between two ticks at which the budget pays for a sample every fourth.
func (b *budget) gap() time.Duration {
	return min(max(time.Duration(b.holdNS/b.target/4), minGap), maxGap)
}

func newBudget(target float64, c sampler.TwoTrap, counters bool) budget {
	b := budget{target: target, trapNS: c.Cost, holdNS: firstHoldNS + 2*c.Cost}
	if counters {
		b.stopNS = countersNS
	}
	b.accept = min(maxAccept, target*float64(defaultGap)/b.holdNS)
	return b
}

// update takes the state of the session so far and says whether accept has
// changed. Cost is what the target's threads lose: the time they are held and
// what stopping costs besides, the traps (two a hold) and the ticks.
func (b *budget) update(cpu uint64, stats sampler.Stats, held time.Duration) bool {
	cost := float64(held) + (2*b.trapNS+b.stopNS)*float64(stats.Holds) + tickNS*float64(stats.Ticks)
	if stats.Holds > 0 {
		b.holdNS = float64(held)/float64(stats.Holds) + 2*b.trapNS + b.stopNS
	}
	if cpu > 0 {
		b.spent = cost / float64(cpu)
	}
	// Wait for enough CPU time to judge by.
	if cpu-b.lastCPU < uint64(200*time.Millisecond) {
		return false
	}
	recent := (cost - b.lastCost) / float64(cpu-b.lastCPU)
	b.lastCPU, b.lastCost = cpu, cost
	// Aim at the target over the run so far, not only from now on.
	aim := b.target
	if b.spent > b.target {
		aim *= max(0.25, b.target/b.spent)
	}
	factor := min(max(aim/max(recent, 1e-6), 0.5), 2)
	accept := min(max(b.accept*factor, minAccept), maxAccept)
	changed := accept != b.accept
	b.accept = accept
	return changed
}

// durations keeps the last few thousand, for quantiles, and the sum of all.
type durations struct {
	sum  time.Duration
	n    int
	ring []time.Duration
}

const keptDurations = 4096

func (d *durations) add(v time.Duration) {
	d.sum += v
	if len(d.ring) < keptDurations {
		d.ring = append(d.ring, v)
	} else {
		d.ring[d.n%keptDurations] = v
	}
	d.n++
}

// quantile of the kept durations, 0 if there are none.
func (d *durations) quantile(q float64) time.Duration {
	if len(d.ring) == 0 {
		return 0
	}
	s := slices.Clone(d.ring)
	slices.Sort(s)
	return s[int(q*float64(len(s)-1))]
}
