// Needs: nothing; the kernel and the program are simulated.
package collector

import (
	"math"
	"math/rand/v2"
	"testing"
)

// throttledRun samples n accesses of a program that makes one in each rate(i)
// nanoseconds, at gaps drawn anew at each tick. As the kernel does it, an event
// that has ticked most times since a timer tick stands still until the next one
// (__perf_event_account_interrupt). seen is told which accesses were sampled.
func throttledRun(n int, rate func(i int) float64, gap func() uint64, most int, seen func(i int)) (stopped float64) {
	const timerTick = 4e6 // ns, HZ=250
	next, now, ends := gap(), 0.0, timerTick
	for i, ticks := 0, 0; i < n; i++ {
		now += rate(i)
		for ; now >= ends; ends += timerTick {
			ticks = 0
		}
		if ticks >= most {
			stopped += rate(i)
			continue
		}
		if next--; next == 0 {
			seen(i)
			next = gap()
			ticks++
		}
	}
	return stopped
}

// Throttled or not, each access of a loop has the same chance to be sampled,
// though the gaps' mean is a multiple of the loop's length. Where the program's
// speed changes, the accesses of its fast phase are sampled less often if it is
// throttled; how much of the time is missing is what is counted.
func TestThrottledSamples(t *testing.T) {
	const loop, mean, most = 7, 700, 1000 // 5714 are due in a timer tick
	s := &Session{rand: rand.New(rand.NewPCG(1, 2)), gap: mean}
	s.budget.counters = true
	fixed := func() uint64 { return mean }
	for _, tc := range []struct {
		name string
		gap  func() uint64
		most int
		fair bool
	}{
		{"geometric", s.drawGap, math.MaxInt, true},
		{"geometric, throttled", s.drawGap, most, true},
		{"fixed", fixed, math.MaxInt, false}, // so that the test can tell
	} {
		var count [loop]float64
		n, chi2 := 0.0, 0.0
		stopped := throttledRun(4e7, func(int) float64 { return 1 }, tc.gap, tc.most, func(i int) { count[i%loop]++; n++ })
		for _, c := range count {
			chi2 += (c - n/loop) * (c - n/loop) / (n / loop)
		}
		t.Logf("%s: %.0f samples, stopped %.1f %% of the time, chi-squared %.1f", tc.name, n, stopped/4e5, chi2)
		const sixInThousand = 18.1 // of 6 degrees of freedom
		if (chi2 < sixInThousand) != tc.fair || (stopped > 0) != (tc.most == most) {
			t.Errorf("%s: %v, stopped for %v ns", tc.name, count, stopped)
		}
	}
	// Two phases of as many accesses, of 50 ms and of half a second.
	rate := func(i int) float64 { return []float64{1, 10}[i/5e7%2] }
	for _, tc := range []struct {
		most      int
		low, high float64
	}{{math.MaxInt, .49, .51}, {most, .14, .16}} {
		var fast, n float64
		throttledRun(1e8, rate, s.drawGap, tc.most, func(i int) {
			n++
			if i/5e7%2 == 0 {
				fast++
			}
		})
		t.Logf("most %d samples a timer tick: %.1f %% of the samples are of the fast half", tc.most, 100*fast/n)
		if share := fast / n; share < tc.low || share > tc.high {
			t.Errorf("at most %d samples a timer tick: share %.3f of the fast half, want %.2f to %.2f", tc.most, share, tc.low, tc.high)
		}
	}
}
