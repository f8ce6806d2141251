package collector

import (
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// How many threads run in a hold, the held one among them, is what the others ran of its time.
func TestThreadsSince(t *testing.T) {
	from := othersRan{at: 1000, sum: 50, known: true}
	for name, c := range map[string]struct {
		to   othersRan
		cpus int
		want float64
	}{
		"nobody":           {othersRan{2000, 50, true}, 4, 1},
		"half of the time": {othersRan{2000, 550, true}, 4, 1.5},
		"two":              {othersRan{2000, 2050, true}, 4, 3},
		"two, of whom one on the held thread's CPU": {othersRan{2000, 2050, true}, 2, 2},
		"not asked":        {othersRan{2000, 0, false}, 4, 0},
		"no time":          {othersRan{1000, 50, true}, 4, 0},
		"a thread is gone": {othersRan{2000, 0, true}, 4, 0},
	} {
		if got := c.to.threadsSince(from, c.cpus); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The CPU time of a short interval goes by the threads that ran at the hold, where that is known; that of a
// long one by the process's clock.
func TestCPUUntil(t *testing.T) {
	// One thread until 50 ms, two from then on.
	p := &process{cpu: []cpuPoint{{0, 0}, {50e6, 50e6}, {100e6, 150e6}}}
	for name, c := range map[string]struct {
		o    observation
		want float64
	}{
		"short, two":               {observation{threads: 2, native: 1000, wall: 1000, end: 20e6}, 2000},
		"short, two, one waited":   {observation{threads: 2, native: 300, wall: 1000, end: 20e6}, 1300},
		"short, another ended it":  {observation{threads: 2, wall: 1000, end: 20e6, endTID: 2}, 2000},
		"short, not known":         {observation{native: 1000, wall: 1000, end: 80e6}, 2000},
		"long, one all the time":   {observation{threads: 2, native: 10e6, wall: 10e6, end: 20e6}, 10e6},
		"long, two all the time":   {observation{threads: 1, native: 10e6, wall: 10e6, end: 80e6}, 20e6},
		"long, more than is known": {observation{native: 30e6, wall: 30e6, end: 30e6}, 30e6},
		"nothing":                  {observation{threads: 2}, 0},
	} {
		c.o.process, c.o.kind = p, model.Reuse
		if got := c.o.cpuUntil(true); got != c.want {
			t.Errorf("%s: %v ns, want %v", name, got, c.want)
		}
	}
}
