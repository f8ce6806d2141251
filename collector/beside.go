package collector

import (
	"time"

	"github.com/rdx-profiler/rdx/sampler"
)

// While a thread is held and read ahead of, the others run on: as many as ran beside it at
// that moment. To tell that by the process's CPU clock takes tens of milliseconds, for this learns of a
// thread that runs only once a tick of the kernel (1 to 10 ms), and many processes do not live as long. To
// read a thread's own events interrupts the CPU on which it runs.

// othersRan is how long the group's other threads have run, at a moment.
type othersRan struct {
	at    time.Duration // of sampler.Monotonic
	sum   uint64        // ns
	known bool
}

// othersRan asks all threads but t. Those that are watched by CPU are too many for that.
func (g *group) othersRan(t *thread) othersRan {
	r := othersRan{known: !g.byCPU}
	for _, m := range g.members {
		if m == t || !r.known {
			continue
		}
		if m.ticker == nil {
			r.known = false
			break
		}
		_, ran, _, err := m.ticker.Count()
		r.sum, r.known = r.sum+ran, err == nil
	}
	r.at = sampler.Monotonic()
	return r
}

// threadsSince is how many threads ran between two moments, on average, if the one that was held
// had: not more than there are CPUs, for on its own another may have run meanwhile. 0 if that is
// not known.
func (r othersRan) threadsSince(from othersRan, cpus int) float64 {
	if !r.known || !from.known || r.at <= from.at || r.sum < from.sum {
		return 0
	}
	return min(1+float64(r.sum-from.sum)/float64(r.at-from.at), float64(max(cpus, 1)))
}

// threadsWithin is for how long as many threads are taken to run as in the hold: about as long
// as one lasts.
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
