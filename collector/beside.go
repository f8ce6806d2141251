package collector

import (
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// othersRunning counts the threads of the group that run at the moment, beside t, which is held: those
// that don't wait for anything, but not more than have a CPU then. The profiler itself may have taken another one's CPU just now, so
// that who has one tells less. The process's CPU clock would need tens of milliseconds, for it learns of a thread that runs only
// once a tick of the kernel (1 to 10 ms), and many processes do not live as long. ok is false for threads that are watched by CPU, who are too many to be asked.
func (g *group) othersRunning(t *thread, cpus int, runs func(pid, tid int) bool) (n int, ok bool) {
	if g.byCPU {
		return 0, false
	}
	for _, m := range g.members {
		if n < cpus-1 && m != t && runs(t.process.pid, m.tid) {
			n++
		}
	}
	return n, true
}

// touchesBeside draws how many touches others make where they make that many on average: Poisson's, as no
// thread waits for another's next access. Of ten touches there may be twice as many, or none.
func touchesBeside(r *rand.Rand, mean float64) float64 {
	if mean == 0 {
		return 0
	}
	return distuv.Poisson{Lambda: mean, Src: r}.Rand()
}

// threadsWithin is for how long as many threads are taken to run as at the hold.
const threadsWithin = time.Millisecond

// cpuUntil is how long all threads of the process ran from the observation's use to its end, in ns. own says
// that its native time is the thread's CPU time.
func (o *observation) cpuUntil(own bool) float64 {
	ran := o.wall // by the thread itself
	if own = own && o.endTID == 0; own {
		ran = min(o.native, o.wall)
	}
	switch {
	case o.wall == 0:
		return 0
	case o.threads > 0 && o.wall <= float64(threadsWithin):
		return ran + (o.threads-1)*o.wall
	case !own:
		ran = 0
	}
	return max(o.process.cpuBetween(o.end-o.wall, o.end), ran)
}
