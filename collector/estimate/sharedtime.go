package estimate

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
)

// PerWall says what a process does in a nanosecond: of one thread that runs.
type PerWall struct {
	native   float64 // units of the clock
	accesses float64
}

func (s *stage) accessesPerWall(sum Totals) PerWall {
	w := PerWall{native: 1}
	if s.Clock.Counted != nil && sum.CPU > 0 {
		w.native = sum.Clock / float64(sum.CPU)
	}
	w.accesses = w.native * s.touchesIn(1) * s.Rates.modes.inUser()
	return w
}

// setSharedTime counts the accesses of all threads between use and end: their
// CPU time, at the mean rate. What was read ahead of the one thread is exact
// for it, and the threads that run beside it are taken to be as fast, at moments of their own, and to touch
// data of their own: as many as they do in so many accesses. Where touches of both were read ahead, see merge, these say what is the same.
func (s *stage) setSharedTime(r *model.Record, o *record.Observation, w PerWall) {
	// A trap takes so long that its time says nothing of a datum that others touch as often.
	if m := o.Merged; m != nil && o.Kind == model.Reuse && (m.Common || o.Counted > 0) {
		r.Exact, r.Time, r.Distinct = true, uint64(m.Time), uint64(m.Distinct)
		r.Native = uint64(math.Round(float64(r.Time) / s.touchesIn(1)))
		return
	}
	if o.Counted > 0 && o.Kind == model.Reuse || o.NoSlot {
		running := o.Threads
		if running == 0 {
			running = o.Process.Running(o.End)
		}
		others := TouchesOfOthers(s.rand, float64(o.Counted)*(running-1))
		r.Exact = true
		r.Time = uint64(o.Counted) + uint64(others)
		if o.Kind == model.Reuse && o.Distinct > 0 {
			threads := max(running-1, 1)
			distinct := threads * s.foot.ofOthers(o, others/threads)
			r.Distinct = uint64(o.Distinct) + uint64(math.Round(distinct))
		}
		r.Native = uint64(math.Round(float64(r.Time) / s.touchesIn(1)))
		return
	}
	running := 1.0 // threads running
	cpu := o.ProcessCPU(s.Clock.Counted == nil)
	if o.Wall > 0 {
		running = cpu / o.Wall
	}
	res := s.Calibration.Resolution()
	below := o.Kind == model.Reuse && o.Wall < res
	if below {
		cpu = res * running // an upper bound, as for a thread's own
	}
	r.Native = max(uint64(math.Round(cpu*w.native)), 1)
	timed := uint64(math.Round(s.touchesIn(float64(r.Native))))
	// It was read ahead that the thread itself does not come back so soon.
	least := uint64(o.After) + 1
	r.Time = max(timed, least)
	r.BelowResolution = below && timed > least
}

// TouchesOfOthers draws how many touches others make where they make that many on average: Poisson's, as no
// thread waits for another's next access. Of ten touches there may be twice as many, or none.
func TouchesOfOthers(r *rand.Rand, mean float64) float64 {
	if mean == 0 {
		return 0
	}
	return distuv.Poisson{Lambda: mean, Src: r}.Rand()
}
