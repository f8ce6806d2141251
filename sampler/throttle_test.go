// Needs: perf events (TestThrottlingRings); the other rings are made up.
package sampler

import (
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// The times between the records of an event's being stopped and started again,
// with whatever else is between them.
func TestThrottling(t *testing.T) {
	r := newFakeRing(4096, 64)
	th := throttling{ring: r.eventRing}
	record := func(kind uint32, at uint64) { r.record(kind, at, 1, 2) }
	for _, step := range []struct {
		name           string
		do             func()
		stopped, times uint64
	}{
		{"nothing", func() {}, 0, 0},
		{"stopped", func() { record(unix.PERF_RECORD_THROTTLE, 1_000_000) }, 0, 1},
		{"started in another reading", func() { record(unix.PERF_RECORD_UNTHROTTLE, 3_000_000) }, 2_000_000, 1},
		{"started only", func() { record(unix.PERF_RECORD_UNTHROTTLE, 9_000_000) }, 2_000_000, 1},
		{"both", func() {
			record(unix.PERF_RECORD_THROTTLE, 10_000_000)
			record(unix.PERF_RECORD_SAMPLE, 0)
			record(unix.PERF_RECORD_UNTHROTTLE, 14_000_000)
		}, 6_000_000, 2},
		{"the thread slept", func() {
			record(unix.PERF_RECORD_THROTTLE, 20_000_000)
			record(unix.PERF_RECORD_UNTHROTTLE, 99_000_000_000)
		}, 16_000_000, 3},
		{"backwards", func() {
			record(unix.PERF_RECORD_THROTTLE, 30_000_000)
			record(unix.PERF_RECORD_UNTHROTTLE, 29_000_000)
		}, 16_000_000, 4},
		// Eight records are four pairs, of 16 ms in 4 stops each.
		{"lost", func() { r.record(unix.PERF_RECORD_LOST, 1, 8) }, 16_000_000 + 4*16_000_000/4, 8},
	} {
		step.do()
		if err := th.read(); err != nil {
			t.Fatal(err)
		}
		if times, ns := th.sum(); ns != step.stopped || times != step.times {
			t.Errorf("%s: stopped %d times for %d ns, want %d and %d", step.name, times, ns, step.times, step.stopped)
		}
	}
	if r.word(pageDataTail).Load() != r.word(pageDataHead).Load() {
		t.Error("the space was not given back")
	}
}

// Rings are bounded, and given back.
func TestThrottlingRings(t *testing.T) {
	attr := samplingAttr(Event{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK})
	attr.Sample = 1 << 40
	fd, err := perfOpen(&attr, 0, -1)
	if err != nil {
		t.Skip("needs perf events:", err)
	}
	defer unix.Close(fd)
	var used atomic.Int64
	used.Store(maxRings - 1)
	last := openThrottling(fd, &used)
	if last == nil {
		t.Skip("needs locked memory")
	}
	if openThrottling(fd, &used) != nil || used.Load() != maxRings {
		t.Errorf("%d rings", used.Load())
	}
	if err := last.read(); err != nil {
		t.Error(err)
	}
	last.close()
	if used.Load() != maxRings-1 {
		t.Errorf("%d rings, one was closed", used.Load())
	}
	if openThrottling(unix.Stdin, &used) != nil || used.Load() != maxRings-1 {
		t.Error("a ring of what is no event")
	}
}
