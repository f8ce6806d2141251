// Needs: root, bpf, watchpoint; TestCountAccesses needs a PMU.
package sampler

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/internal/needs"
)

// software counts nanoseconds, and stands in for a hardware counter: what it
// counts a program does not, how it is read is the same.
func software() Counted {
	return Counted{Unit: Cycles, Events: []Event{{Label: "task-clock", Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK}}}
}

func loadWith(t *testing.T, c Counted) *Kernel {
	t.Helper()
	k, err := LoadClock(NumSlots, CounterClock(c), Needs{})
	if err != nil {
		t.Skip("needs root and bpf:", err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// The trap handler must read each thread's own counter, whatever the thread's
// place in the table: there are more places than CPUs.
func TestCounterClockManyThreads(t *testing.T) {
	needs.Watchpoints(t)
	for i, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			c := software()
			for range i {
				c.Events = append(c.Events, c.Events[0])
			}
			k := loadWith(t, c)
			count := 2*runtime.NumCPU() + 3
			for range count {
				// Take a place that stays in use.
				if _, _, err := k.AddThread(unix.Getpid()); err != nil {
					t.Fatal(err)
				}
			}
			two, err := k.Calibrate(50)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", two)
			if two.N != 50 || !(two.P50 > 0) {
				t.Errorf("%d pairs, p50 %v", two.N, two.P50)
			}
			if s, err := k.Stats(); err != nil || s.ClockFailed != 0 {
				t.Errorf("%d readings of the clock did not work, %v", s.ClockFailed, err)
			}
		})
	}
}

// Without its counter a thread has no clock: that is counted, and no pair is
// made of it.
func TestCounterClockMissing(t *testing.T) {
	needs.Watchpoints(t)
	k := loadWith(t, software())
	k.clock = CPUTime() // so that Calibrate opens no counter
	if two, err := k.Calibrate(20); err == nil {
		t.Errorf("pairs without a clock: %+v", two)
	}
	if s, err := k.Stats(); err != nil || s.ClockFailed != 40 {
		t.Errorf("%d readings did not work, want 40; %v", s.ClockFailed, err)
	}
}

func TestValidateRefusesWrongCounter(t *testing.T) {
	k := loadWith(t, software())
	_ = k
	c := software()
	c.Unit = Accesses // nanoseconds are no accesses
	if err := c.Validate(); err == nil {
		t.Error("nanoseconds pass for accesses")
	}
	// It never counts in user mode.
	c = Counted{Unit: Accesses, Events: []Event{{Label: "dummy", Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_DUMMY}}}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "counts nothing") {
		t.Errorf("a counter that does not count: %v", err)
	}
}

func TestCountAccesses(t *testing.T) {
	c, err := Machine{os.DirFS("/proc"), os.DirFS("/sys")}.AccessEvents()
	if err != nil {
		t.Skip("needs a PMU:", err)
	}
	if err := c.Validate(); err != nil {
		t.Skip("needs a PMU that counts:", err)
	}
	k := loadWith(t, c)
	two, err := k.Calibrate(200)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %+v", c.Label(), two)
	if err := NewPMUSource(c).Validate(k); err != nil {
		t.Error(err)
	}
	if s, err := k.Stats(); err != nil || s.Ticks != 0 || s.Holds != 0 {
		t.Errorf("the probe's ticks are still counted: %+v, %v", s, err)
	}
}

// An event in error, as one that was pinned and lost its counter, reads as an end
// of file: that is no count of zero.
func TestReadCountsInError(t *testing.T) {
	f, err := os.Open(os.DevNull) // reads as such an event does
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if c, err := readCounts(int(f.Fd())); !errors.Is(err, ErrNotRunning) {
		t.Errorf("read %v, %v; want %v", c, err, ErrNotRunning)
	}
}
