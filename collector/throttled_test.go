// Needs: nothing; the kernel and the program are simulated.
package collector

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/sampler"
)

// stretch is so many accesses of a program, of ns nanoseconds each, after which it
// sleeps.
type stretch struct {
	n         uint64
	ns, sleep float64
}

// simulated is a program in the course of being sampled.
type simulated struct {
	access    uint64  // done
	now       float64 // ns
	ran       float64 // of these
	throttles uint64
	stopped   float64 // ns, as the kernel's records tell: sleep included
}

// timerTick in ns, HZ=250.
const timerTick = 4e6

// run samples the stretches at periods drawn anew at each tick. As the kernel does
// it, an event that has ticked most times since a timer tick stands still until the
// next one (__perf_event_account_interrupt), or until the thread is back from a
// sleep. seen is told which accesses were sampled.
func (p *simulated) run(program []stretch, period func() uint64, most int, seen func(access uint64)) {
	left, ticks, ends := float64(period()), 0, timerTick
	stopped, since := false, 0.0
	start := func() {
		ticks = 0
		if stopped {
			stopped = false
			p.stopped += min(p.now-since, timerTick)
		}
	}
	done := 0.0
	for _, s := range program {
		// To what comes next: the end of the period, of the timer tick, or of the stretch.
		for n := float64(s.n); n > 0; {
			step := min(n, (ends-p.now)/s.ns)
			if !stopped {
				step = min(step, left)
			}
			n -= step
			done += step
			p.now += step * s.ns
			p.ran += step * s.ns
			if !stopped {
				left -= step
			}
			if left <= 0 {
				left = float64(period())
				p.access = uint64(math.Round(done))
				if ticks++; ticks >= most {
					stopped, since = true, p.now
					p.throttles++
				}
				seen(p.access)
			}
			if p.now >= ends-1e-3 {
				ends += timerTick
				start()
			}
		}
		p.now += s.sleep
		if s.sleep > 0 {
			start()
			for ; ends <= p.now; ends += timerTick {
			}
		}
	}
	p.access = uint64(math.Round(done))
}

// Throttled or not, each access of a loop has the same chance to be sampled,
// though the periods' mean is a multiple of the loop's length.
func TestThrottledSamples(t *testing.T) {
	const loop, mean, most = 7, 700, 1000 // 5714 are due in a timer tick
	s := (&sampling{rand: rand.New(rand.NewPCG(1, 2)), ticks: tickPace{meanPeriod: mean}}).wire()
	s.ticks.budget.counters = true
	fixed := func() uint64 { return mean }
	for _, tc := range []struct {
		name   string
		period func() uint64
		most   int
		fair   bool
	}{
		{"geometric", s.ticks.drawPeriod, math.MaxInt, true},
		{"geometric, throttled", s.ticks.drawPeriod, most, true},
		{"fixed", fixed, math.MaxInt, false}, // so that the test can tell
	} {
		var count [loop]float64
		n, chi2 := 0.0, 0.0
		var p simulated
		p.run([]stretch{{n: 4e7, ns: 1}}, tc.period, tc.most, func(i uint64) { count[i%loop]++; n++ })
		for _, c := range count {
			chi2 += (c - n/loop) * (c - n/loop) / (n / loop)
		}
		t.Logf("%s: %.0f samples, stopped %.1f %% of the time, chi-squared %.1f", tc.name, n, p.stopped/4e5, chi2)
		const sixInThousand = 18.1 // of 6 degrees of freedom
		if (chi2 < sixInThousand) != tc.fair || (p.stopped > 0) != (tc.most == most) {
			t.Errorf("%s: %v, stopped for %v ns", tc.name, count, p.stopped)
		}
	}
}

// Of two phases of as many accesses, one ten times as fast, the fast one gets too few
// samples where the source is throttled, and half of the weight by the count of a
// clock. Of a timer it is CPU time, however often it was to tick in a phase. Where
// there is no such count, that is known.
func TestThrottledWeights(t *testing.T) {
	const mean, phase = 1e6, 4e10 // accesses
	phases := []stretch{{phase, .1, 0}, {phase, 1, 0}}
	var sleeps []stretch
	for _, ns := range []float64{.1, 1} {
		for range 1000 {
			sleeps = append(sleeps, stretch{phase / 1000, ns, 7e6})
		}
	}
	steady := []stretch{{phase, 1, 0}, {phase, 1, 0}}
	for _, tc := range []struct {
		name     string
		program  []stretch
		most     int
		perCount float64
		slow     float64    // longer period in the second phase
		samples  [2]float64 // bounds of the first phase's share
		weight   [2]float64
	}{
		{"all", phases, math.MaxInt, 0, 1, [2]float64{.49, .51}, [2]float64{.49, .51}},
		{"all, counted", phases, math.MaxInt, 1, 1, [2]float64{.49, .51}, [2]float64{.49, .51}},
		{"eight a timer tick", phases, 8, 1, 1, [2]float64{.16, .18}, [2]float64{.49, .51}},
		{"one a timer tick", phases, 1, 1, 1, [2]float64{.08, .12}, [2]float64{.47, .53}},
		{"one, with sleeps", sleeps, 1, 1, 1, [2]float64{.05, .48}, [2]float64{.48, .52}},
		{"one, a timer", steady, 1, 0, 6, [2]float64{.55, .75}, [2]float64{.49, .51}},
		{"one, no count", phases, 1, 0, 1, [2]float64{.08, .12}, [2]float64{0, .2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := (&sampling{rand: rand.New(rand.NewPCG(3, 4))}).wire()
			s.ticks.budget.counters = true
			const rounds = 4
			th := &thread{shared: new(sampler.Thread)}
			var p simulated
			var seen []*record.Observation
			var inFirst []bool
			first := func(access uint64) bool { return access/uint64(phase)%2 == 0 }
			var ends, period uint64
			draw := func() uint64 {
				ends += period
				s.ticks.meanPeriod = mean
				if !first(p.access) {
					s.ticks.meanPeriod *= tc.slow
				}
				period = s.ticks.drawPeriod()
				return period
			}
			now := func() record.Marks {
				return record.Marks{Clock: p.access, Ran: uint64(p.ran), Throttles: p.throttles, Stopped: uint64(p.stopped)}
			}
			p.run(slices.Repeat(tc.program, rounds), draw, tc.most, func(access uint64) {
				th.shared.Sampled, th.shared.Ticks = ends, th.shared.Ticks+1
				th.account()
				if th.epoch.Full(p.throttles) {
					th.epoch.To = now()
					th.nextEpoch(th.epoch.To)
				}
				th.epoch.Holds++
				o := &record.Observation{State: record.Done}
				th.enterEpoch(o)
				seen, inFirst = append(seen, o), append(inFirst, first(access))
			})
			th.epoch.To = now()
			var samples, weight, sum float64
			weighed := make(map[*record.Epoch]uint64)
			for _, o := range seen {
				if _, ok := weighed[o.Epoch]; !ok {
					weighed[o.Epoch] = o.Epoch.Weigh(tc.perCount, tc.slow > 1)
				}
			}
			for i, o := range seen {
				sum += o.Epoch.PerObservation()
				if inFirst[i] {
					samples++
					weight += o.Epoch.PerObservation()
				}
			}
			var unknown uint64
			for _, ns := range weighed {
				unknown += ns
			}
			samples /= float64(len(seen))
			weight /= sum
			sum /= float64(p.access)
			t.Logf("%d samples, %.1f %% of them and %.1f %% of the weight in the first phase; %d epochs; weights are %.3f of the accesses; of %.2f of the time it can't be told",
				len(seen), 100*samples, 100*weight, len(weighed), sum, float64(unknown)/p.ran)
			if samples < tc.samples[0] || samples > tc.samples[1] || weight < tc.weight[0] || weight > tc.weight[1] {
				t.Errorf("want samples %v, weight %v", tc.samples, tc.weight)
			}
			told := tc.perCount > 0 || tc.slow > 1 || tc.most == math.MaxInt
			if (unknown == 0) != told || told && math.Abs(sum-1) > .02 {
				t.Errorf("weights add up to %.3f of the accesses, %d ns unknown", sum, unknown)
			}
		})
	}
}
