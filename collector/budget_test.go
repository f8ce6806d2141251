package collector

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/sampler"
)

// Whatever a hold costs, the share spent settles at the target.
func TestBudgetConverges(t *testing.T) {
	for _, holdCost := range []time.Duration{10 * time.Microsecond, 50 * time.Microsecond, time.Millisecond} {
		for _, target := range []float64{0.005, 0.01, 0.05} {
			b := newBudget(target, sampler.TwoTrap{P50: 3000}, sampler.Nanoseconds)
			var cpu uint64
			var stats sampler.Stats
			var held time.Duration
			var due float64
			for range 600 { // a minute
				cpu += uint64(100 * time.Millisecond)
				ticks := float64(100*time.Millisecond) / float64(defaultPeriod)
				stats.Ticks += uint64(ticks)
				due += ticks * b.accepted() // holds of 1 ms are fewer than one in 100 ms
				n := uint64(due)
				due -= float64(n)
				stats.Holds += n
				held += time.Duration(n) * holdCost
				b.update(cpu, stats, held, b.trapped(2*stats.Holds, 0))
			}
			if b.accept == maxAccept {
				continue // the ticks are too few to spend it all
			}
			if b.spent > 1.25*target || b.spent < 0.6*target {
				t.Errorf("holds of %v: spent %.4f, target %.4f, accept %.4f", holdCost, b.spent, target, b.accept)
			}
		}
	}
}

// A session of ten seconds keeps to the budget, too, though holds cost many times
// what is assumed at first: what they cost at first is made good for.
func TestBudgetAtFirst(t *testing.T) {
	const target = 0.01
	r := rand.New(rand.NewPCG(1, 2))
	for _, holdCost := range []time.Duration{100 * time.Microsecond, 800 * time.Microsecond, 2 * time.Millisecond} {
		var mean, most float64
		const runs = 50
		for range runs {
			b := newBudget(target, sampler.TwoTrap{P50: 3000, Cost: 6000}, sampler.Nanoseconds)
			var cpu uint64
			var stats sampler.Stats
			var held time.Duration
			for range 100 {
				cpu += uint64(100 * time.Millisecond)
				for range int(100 * time.Millisecond / defaultPeriod) {
					stats.Ticks++
					if r.Float64() < b.accepted() {
						stats.Holds++
						held += time.Duration(float64(holdCost) * (0.5 + r.Float64()))
						b.held()
					}
				}
				b.update(cpu, stats, held, b.trapped(2*stats.Holds, 0))
			}
			mean += b.spent / runs
			most = max(most, b.spent)
		}
		t.Logf("holds of %v: %.4f spent on average, %.4f at most", holdCost, mean, most)
		if mean > 1.1*target || mean < 0.7*target || most > 1.5*target {
			t.Errorf("holds of %v: %.4f spent on average, %.4f at most, of %v", holdCost, mean, most, target)
		}
	}
}

// A thousand threads that wake up together twice a second run for a tenth of a second before anything
// is accounted for, and little in three seconds, which pays for one to ten holds. They keep to the budget, too,
// as each hold waits until it is paid for: what can be spent beyond it is that of a hold that costs more than the
// others, or than is assumed of the first: of one or two holds in all that is a lot. A burst in which all are paid for may still begin two before one is
// accounted for. Few runs have no hold at all.
func TestBudgetInBursts(t *testing.T) {
	const target, burst, bursts, runs = 0.01, 140 * time.Millisecond, 6, 2000
	r := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		cost        time.Duration
		least, most float64 // of the budget, on average
		p90, p99    float64 // single runs
	}{
		{300 * time.Microsecond, .5, .7, .8, .95},
		{1200 * time.Microsecond, .6, .8, .95, 1.05},
		{3 * time.Millisecond, .8, 1, 1.3, 1.4},
	} {
		var mean, times float64
		var none int
		var spent []float64
		for range runs {
			b := newBudget(target, sampler.TwoTrap{P50: 3000, Cost: 6000}, sampler.Nanoseconds)
			b.tickNS = 16_000
			b.setFirst()
			times = ((1+b.cold)*float64(tc.cost) + 2*b.trapNS) / b.firstNS
			var cpu uint64
			var stats sampler.Stats
			var held time.Duration
			for i := range 5 * bursts {
				if i%5 == 0 {
					cpu += uint64(burst)
					for range int(burst / b.firstPeriod()) {
						stats.Ticks++
						if r.Float64() < b.accepted() {
							stats.Holds++
							held += time.Duration(float64(tc.cost) * (0.5 + r.Float64()))
							b.held()
						}
					}
				}
				b.update(cpu, stats, held, b.trapped(2*stats.Holds, 0))
			}
			if stats.Holds == 0 {
				none++
			}
			mean += b.spent / target / runs
			spent = append(spent, b.spent/target)
		}
		slices.Sort(spent)
		p90, p99 := spent[runs*90/100], spent[runs*99/100]
		t.Logf("holds of %v, %.2f times what is assumed: of the budget %.2f is spent on average, at most %.2f in 90 %% of runs and %.2f in 99; %d of %d without a hold",
			tc.cost, times, mean, p90, p99, none, runs)
		if mean < tc.least || mean > tc.most || p90 > tc.p90 || p99 > tc.p99 || none > runs/50 {
			t.Errorf("want %+v, and %d without a hold", tc, runs/50)
		}
	}
}

// Of a thousand threads that each run for some milliseconds most are never held, and keep their first
// period: ticks at it must leave the budget to holds, whatever a tick costs here.
func TestFirstPeriodCost(t *testing.T) {
	for _, tickNS := range []float64{500, 2000, 21_000} {
		for _, target := range []float64{0.005, 0.01, 0.05} {
			b := newBudget(target, sampler.TwoTrap{P50: 3000}, sampler.Nanoseconds)
			b.tickNS = tickNS
			b.setFirst()
			ticks := tickNS / float64(b.firstPeriod())
			holds := b.accept * b.holdNS / float64(b.firstPeriod())
			if b.firstPeriod() < maxPeriod && ticks > 1.01*ticksShare*target || holds > 1.01*target {
				t.Errorf("ticks of %v ns every %v take %.4f, holds %.4f, of %v", tickNS, b.firstPeriod(), ticks, holds, target)
			}
		}
	}
}

// Where each hold waits until it is paid, a timer's ticks are farther apart: between two holds as few as are needed.
func TestPeriodOfFewHolds(t *testing.T) {
	for _, c := range []struct {
		unit   string
		holdNS float64
		want   time.Duration
	}{{sampler.Nanoseconds, 2_000_000, maxPeriodOfFew}, {sampler.Nanoseconds, 900_000, maxPeriod}, {sampler.Accesses, 9_000_000, maxPeriod}} {
		b := newBudget(0.01, sampler.TwoTrap{P50: 3000}, c.unit)
		b.holdNS, b.next = c.holdNS, c.holdNS
		if got := b.period(); got != c.want {
			t.Errorf("holds of %v ns by %s: a tick each %v, want %v", c.holdNS, c.unit, got, c.want)
		}
	}
}

func TestDurations(t *testing.T) {
	var d durations
	if d.quantile(.5) != 0 {
		t.Error("quantile of nothing is not 0")
	}
	for i := range 2 * keptLengths {
		d.add(time.Duration(i))
	}
	if len(d.last.ring) != keptLengths || d.last.n != 2*keptLengths {
		t.Errorf("kept %d of %d", len(d.last.ring), d.last.n)
	}
	if q := d.quantile(.5); q < keptLengths || q > 2*keptLengths {
		t.Errorf("median %v is not one of the last", q)
	}
}

// Ticks go apart when it is seen what a hold costs. From the first seconds on the budget is spent all the same, and not more.
func TestBudgetTicksApart(t *testing.T) {
	const runs = 200
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		target     float64
		cost       time.Duration
		cpu        time.Duration
		least, p99 float64 // of the budget, in nine of ten runs and in 99 of 100
	}{
		{0.01, 500 * time.Microsecond, 6 * time.Second, .85, 1.3},
		{0.01, 2 * time.Millisecond, 6 * time.Second, .85, 1.3},
		{0.01, 8 * time.Millisecond, 20 * time.Second, .85, 1.3},
		{0.05, 2 * time.Millisecond, 6 * time.Second, .85, 1.3},
		{0.05, 8 * time.Millisecond, 6 * time.Second, .85, 1.3},
	} {
		var spent []float64
		var mean float64
		for range runs {
			b := newBudget(c.target, sampler.TwoTrap{P50: 3000, Cost: 6000}, sampler.Nanoseconds)
			b.tickNS = 16_000
			b.setFirst()
			period := float64(b.firstPeriod())
			var cpu, next float64
			var stats sampler.Stats
			var held time.Duration
			for cpu < float64(c.cpu) {
				for cpu += float64(tickInterval); next < cpu; next += period * (leastPeriod + (mostPeriod-leastPeriod)*r.Float64()) {
					stats.Ticks++
					if r.Float64() < b.accepted() {
						stats.Holds++
						held += time.Duration(float64(c.cost) / 2 * min(math.Exp(1.2*r.NormFloat64()-0.72), 8))
						b.held()
					}
				}
				b.update(uint64(cpu), stats, held, 0)
				if to := float64(b.period()); to > adjustRatio*period || period > adjustRatio*to {
					b.ticksApart(period, to)
					period = to
				}
			}
			spent = append(spent, b.spent/c.target)
			mean += b.spent / c.target / runs
		}
		slices.Sort(spent)
		least, most := spent[runs/10], spent[runs*99/100]
		t.Logf("%v: of the budget %.2f is spent on average, at least %.2f in nine of ten, at most %.2f in 99 of 100", c, mean, least, most)
		if least < c.least || most > c.p99 || mean > 1.1 {
			t.Errorf("%v", c)
		}
	}
}

// Where threads are joined holds come in pairs, within the budget: most have one of the other thread soon before or after them.
func TestBudgetInPairs(t *testing.T) {
	const target, ran = 0.01, 20 * time.Second
	r := rand.New(rand.NewPCG(1, 2))
	for _, hold := range []time.Duration{300 * time.Microsecond, 3 * time.Millisecond} {
		b := newBudget(target, sampler.TwoTrap{P50: 3000, Cost: 6000}, sampler.Nanoseconds)
		b.holdTogether(heldTogether)
		var stats sampler.Stats
		var held time.Duration
		var next [2]time.Duration
		var at [2][]time.Duration
		for now := time.Duration(0); now < ran; now += 100 * time.Microsecond {
			if now%tickInterval == 0 {
				b.update(uint64(2*now), stats, held, b.trapped(2*stats.Holds, 0))
			}
			for thread := range next {
				if now < next[thread] {
					continue
				}
				next[thread] = now + time.Duration((leastPeriod+(mostPeriod-leastPeriod)*r.Float64())*float64(b.period()))
				if stats.Ticks++; r.Float64() < b.accepted() {
					stats.Holds++
					held += hold
					b.held()
					at[thread] = append(at[thread], now)
				}
			}
		}
		paired := 0
		for _, a := range at[0] {
			if slices.ContainsFunc(at[1], func(b time.Duration) bool { return (a - b).Abs() <= 25*time.Millisecond }) {
				paired++
			}
		}
		if b.spent > 1.1*target || b.spent < 0.7*target || float64(paired) < 0.7*float64(len(at[0])) || len(at[1]) < 10 {
			t.Errorf("holds of %v: %.4f spent of %v; %d and %d holds, %d of the first in pairs", hold, b.spent, target, len(at[0]), len(at[1]), paired)
		}
	}
}
