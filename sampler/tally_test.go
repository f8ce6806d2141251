// Needs: perf events.
package sampler

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A tally goes on while the source beside it is stopped.
func TestTally(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tally, err := OpenTally(software(), unix.Gettid())
	if err != nil {
		t.Skip("needs perf events:", err)
	}
	defer tally.Close()
	attr := samplingAttr(software().Events[0])
	attr.Sample = 1 << 40
	fd, err := perfOpen(&attr, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	source := event{fd: fd}
	defer source.close()
	if err := source.ioctl(unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		t.Fatal(err)
	}
	read := func() (counted, tallied uint64) {
		c, err := source.read()
		if err != nil {
			t.Fatal(err)
		}
		n, lag, err := tally.Read()
		if err != nil || lag != 0 {
			t.Fatalf("lag %d, %v", lag, err)
		}
		return c.value, n
	}
	// By the thread's own clock: others may have the processor for most of 5 ms of the wall's.
	ran := func() int64 {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
			t.Fatal(err)
		}
		return ts.Nano()
	}
	work := func() {
		for start := ran(); ran()-start < 5e6; {
		}
	}
	work()
	before, tallyBefore := read()
	if err := source.ioctl(unix.PERF_EVENT_IOC_DISABLE, 0); err != nil {
		t.Fatal(err)
	}
	work()
	after, tallyAfter := read()
	if before == 0 || after-before > tallyAfter-tallyBefore || tallyAfter-tallyBefore < 1_000_000 {
		t.Errorf("source from %d to %d, tally from %d to %d", before, after, tallyBefore, tallyAfter)
	}
}

// Beside sources with addresses accesses are counted, where the machine does.
func TestCounts(t *testing.T) {
	m := Machine{cpuinfo("GenuineIntel", 6, 0x55), pmuFiles(map[string]map[string]string{"cpu": with(intelFormat, "caps/max_precise", "3")})}
	s, err := NewAccessSource(m, "pebs", false)
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Counts(); c == nil || c.Unit != Accesses || len(c.Events) != 1 || c.Events[0].Config != 0x83d0 {
		t.Errorf("PEBS is counted by %+v", c)
	}
	if c := NewPMUSource(software()).Counts(); c == nil || c.Events[0] != software().Events[0] {
		t.Errorf("a counter is counted by %+v", c)
	}
	if c := (CPUClock{}).Counts(); c != nil {
		t.Errorf("the clock is counted by %+v", c)
	}
}
