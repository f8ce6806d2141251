package collector

import (
	"slices"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
)

// Threads that run beside a held one are those that wait for nothing, as far as there are CPUs.
func TestOthersRunning(t *testing.T) {
	p := &target.Process{PID: 7}
	g := &group{}
	for tid := range 5 {
		g.members = append(g.members, &thread{tid: tid, process: p})
	}
	for name, c := range map[string]struct {
		runs  []int
		cpus  int
		byCPU bool
		want  int
		known bool
	}{
		"nobody else":        {nil, 4, false, 0, true},
		"itself, being held": {[]int{2}, 4, false, 0, true},
		"two others":         {[]int{0, 4}, 4, false, 2, true},
		"more than CPUs":     {[]int{0, 1, 3, 4}, 2, false, 1, true},
		"too many to ask":    {[]int{0, 4}, 4, true, 0, false},
	} {
		g.byCPU = c.byCPU
		got, known := g.othersRunning(g.members[2], c.cpus, func(pid, tid int) (cpu int, runs bool) {
			return tid % 2, pid == 7 && slices.Contains(c.runs, tid)
		})
		for _, tid := range g.apart {
			if tid%2 == 0 {
				t.Errorf("%s: thread %d is on the held one's CPU", name, tid)
			}
		}
		if got != c.want || known != c.known {
			t.Errorf("%s: %v, %v, want %v, %v", name, got, known, c.want, c.known)
		}
	}
}

// How much of the time a thread has a processor is what it ran of what it wanted to, lately; one on the held one's has none.
func TestServed(t *testing.T) {
	p := &target.Process{PID: 7}
	g := &group{members: []*thread{{tid: 1, process: p}, {tid: 2, process: p}}, running: []int{1, 2}, apart: []int{1}}
	at := map[int][2]uint64{1: {}, 2: {}}
	read := func(_, tid int) (ran, late uint64, err error) { return at[tid][0], at[tid][1], nil }
	note := func(now time.Duration, want float64) {
		t.Helper()
		g.notePart(7, now, read)
		if got := g.served(); got != want {
			t.Errorf("at %v: %v, want %v", now, got, want)
		}
	}
	note(time.Second, 0.5) // not known yet: it has one all along
	at[1] = [2]uint64{30e6, 90e6}
	note(time.Second+servedWithin/2, 0.5)
	note(2*time.Second, 0.25/2)
	at[1] = [2]uint64{31e6, 90e6}
	note(3*time.Second, 0.25/2) // it hardly wanted one
	at[1] = [2]uint64{70e6, 90e6}
	note(4*time.Second, 0.5)
}

// Other programs leave threads less, but never nothing where they may have a processor of their own.
func TestLeftShare(t *testing.T) {
	for _, c := range []struct{ withinProcess, served, share, late float64 }{{1, 1, 1, 0}, {0.5, 0.75, 0.5, 0}, {1, 0.25, 0.25, 0.75}, {0.5, 0, 0.5 * seldom, 1}, {0, 1, 0, 0}} {
		if share, late := leftShare(c.withinProcess, c.served); share != c.share || late != c.late {
			t.Errorf("%v of %v: %v, %v late, want %v, %v", c.served, c.withinProcess, share, late, c.share, c.late)
		}
	}
}

// The CPU time of a short interval goes by the threads that ran at the hold, where that is known; that of a
// long one by the process's clock.
func TestCPUUntil(t *testing.T) {
	// One thread until 50 ms, two from then on.
	p := &target.Process{CPU: []target.CPUPoint{{Wall: 0, CPU: 0}, {Wall: 50e6, CPU: 50e6}, {Wall: 100e6, CPU: 150e6}}}
	for name, c := range map[string]struct {
		o    record.Observation
		want float64
	}{
		"short, two":               {record.Observation{Native: 1000, Sharing: record.Sharing{Threads: 2, Wall: 1000, End: 20e6}}, 2000},
		"short, two, one waited":   {record.Observation{Native: 300, Sharing: record.Sharing{Threads: 2, Wall: 1000, End: 20e6}}, 1300},
		"short, another ended it":  {record.Observation{EndTID: 2, Sharing: record.Sharing{Threads: 2, Wall: 1000, End: 20e6}}, 2000},
		"short, not known":         {record.Observation{Native: 1000, Sharing: record.Sharing{Wall: 1000, End: 80e6}}, 2000},
		"long, one all the time":   {record.Observation{Native: 10e6, Sharing: record.Sharing{Threads: 2, Wall: 10e6, End: 20e6}}, 10e6},
		"long, two all the time":   {record.Observation{Native: 10e6, Sharing: record.Sharing{Threads: 1, Wall: 10e6, End: 80e6}}, 20e6},
		"long, more than is known": {record.Observation{Native: 30e6, Sharing: record.Sharing{Wall: 30e6, End: 30e6}}, 30e6},
		"nothing":                  {record.Observation{Sharing: record.Sharing{Threads: 2}}, 0},
	} {
		c.o.Process, c.o.Kind = p, model.Reuse
		if got := c.o.ProcessCPU(true); got != c.want {
			t.Errorf("%s: %v ns, want %v", name, got, c.want)
		}
	}
}
