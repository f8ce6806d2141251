package target

import (
	"sort"
	"time"

	"golang.org/x/sys/unix"
)

// CPUPoint says how much CPU time all threads of a process together had used
// at a moment; both in ns.
type CPUPoint struct{ Wall, CPU float64 }

// cpuSpacing of the points, at least.
const cpuSpacing = 2 * time.Millisecond

// NoteCPU adds a point. A process that is gone has no more of them.
func (p *Process) NoteCPU(now time.Duration) {
	if n := len(p.CPU); n > 0 && float64(now)-p.CPU[n-1].Wall < float64(cpuSpacing) {
		return
	}
	if ns, ok := cpuTime(p.PID); ok {
		p.CPU = append(p.CPU, CPUPoint{float64(now), float64(ns)})
	}
}

// cpuTime is how long all threads of a process have run, those that are gone
// included, in ns; ok is false if the process is gone.
func cpuTime(pid int) (ns uint64, ok bool) {
	// CPUCLOCK_SCHED of the process, see clock_getcpuclockid(3).
	const cpuClockSched = 2
	var ts unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|cpuClockSched), &ts)
	return uint64(ts.Nano()), err == nil
}

// CPUBetween is how much CPU time the process's threads used between two
// moments: the clock of a shared stack. Between two points it goes evenly.
func (p *Process) CPUBetween(from, to float64) float64 {
	return max(p.cpuAt(to)-p.cpuAt(from), 0)
}

func (p *Process) cpuAt(t float64) float64 {
	n := len(p.CPU)
	if n < 2 {
		return t // too short to tell: as one thread that always runs
	}
	i := sort.Search(n, func(i int) bool { return p.CPU[i].Wall > t })
	i = min(max(i, 1), n-1)
	a, b := p.CPU[i-1], p.CPU[i]
	return a.CPU + (t-a.Wall)*(b.CPU-a.CPU)/(b.Wall-a.Wall)
}

// runningWithin is the stretch of time in which the process's CPU clock tells how many
// threads ran at a moment: some of its points.
const runningWithin = 10 * time.Millisecond

// Running is how many threads of the process ran at a moment, 1 or more.
func (p *Process) Running(at float64) float64 {
	half := float64(runningWithin) / 2
	return max(p.CPUBetween(at-half, at+half)/(2*half), 1)
}
