package sharing

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// pairedHolds are so many pairs of holds of two threads, a second apart. words says which line a thread increments words of at a time, 0 for none.
func pairedHolds(r *rand.Rand, p *target.Process, pairs int, line func(thread int, at time.Duration) uint64, often float64) (windows []*record.Stretch) {
	for i := range 2 * pairs {
		thread := (i + i/2) % 2
		at := time.Duration(i/2) * time.Second
		if i%2 == 1 {
			at += time.Duration(r.Int64N(int64(pairWithin)))
		}
		var touches []ahead.Touch
		for inst := range int32(1500) {
			t := word(1<<20*uint64(thread+1)+r.Uint64N(64), inst, true)
			if l := line(thread, at); l > 0 && r.Float64() < often {
				t = word(8*l+uint64(thread), inst, true)
			}
			touches = append(touches, t)
		}
		h := Hold{Stretch: record.Stretch{Process: p, TID: thread + 1, Hold: len(windows) + 1, At: at, Others: []int{2 - thread}, Share: 1}, touches: touches, classified: 500}
		windows = append(windows, h.window())
	}
	return windows
}

// phase of a thread that changes a few times a second, at random.
func phase(seed int, at time.Duration) uint64 {
	return 1 + rand.New(rand.NewPCG(uint64(seed), uint64(at/(300*time.Millisecond)))).Uint64N(2)
}

// Threads that have the same data, but never at once, take nothing from each other; those that always have the same at once take
// twice as much as by chance. Where few pairs tell, that is not known, and said.
func TestConcurrence(t *testing.T) {
	line := func(n uint64) uint64 { return shared/8 + n }
	for _, c := range []struct {
		name   string
		line   func(thread int, at time.Duration) uint64
		often  float64
		want   float64
		steady bool // nothing to be unsure of
	}{
		{"threads swap their data", func(thread int, at time.Duration) uint64 { return line((phase(1, at) + uint64(thread)) % 2) }, 0.3, 0, false},
		{"threads have the same data by chance", func(thread int, at time.Duration) uint64 { return line(phase(thread, at)) }, 0.3, 1, false},
		{"threads have the same data at once", func(_ int, at time.Duration) uint64 { return line(phase(1, at)) }, 0.3, 2, false},
		{"threads are always at it", func(int, time.Duration) uint64 { return line(0) }, 0.3, 1, true},
		{"threads write by chance", func(int, time.Duration) uint64 { return line(0) }, 0.0001, 1, true},
	} {
		for _, pairs := range []int{3, 12, 30} {
			const runs = 15
			held := 0
			var times, errors float64
			for seed := range uint64(runs) {
				r := rand.New(rand.NewPCG(seed, 7))
				p := &target.Process{PID: 1}
				j := New(pairedHolds(r, p, pairs, func(thread int, at time.Duration) uint64 { return c.line(thread, at+time.Duration(seed)*time.Hour) }, c.often))
				got := j.concurrenceAt(p, 0)
				times += got.Times / runs
				errors += got.Error / runs
				if math.Abs(got.Times-c.want) <= 2*got.Error+0.02 {
					held++
				}
			}
			few := pairs < 12
			if !few && (math.Abs(times-c.want) > 0.2 || float64(held) < 0.9*runs) || float64(held) < 0.7*runs || c.steady && errors > 0.3 {
				t.Errorf("%s, %d pairs: %.2f, want %v; %d of %d within two standard errors", c.name, pairs, times, c.want, held, runs)
			}
			t.Logf("%s, %d pairs: %.2f +- %.2f for %v, %d of %d within two standard errors", c.name, pairs, times, errors, c.want, held, runs)
		}
	}
}
