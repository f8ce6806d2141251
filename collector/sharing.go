package collector

import (
	"fmt"
	"math"
	"sort"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// cpuPoint says how much CPU time all threads of a process together had used
// at a moment; both in ns.
type cpuPoint struct{ wall, cpu float64 }

// cpuSpacing of the points, at least.
const cpuSpacing = 2 * time.Millisecond

// noteCPU adds a point. A process that is gone has no more of them.
func (s *Session) noteCPU(p *process, now time.Duration) {
	if n := len(p.cpu); n > 0 && float64(now)-p.cpu[n-1].wall < float64(cpuSpacing) {
		return
	}
	if ns, ok := cpuTime(p.pid); ok {
		p.cpu = append(p.cpu, cpuPoint{float64(now), float64(ns)})
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

// cpuBetween is how much CPU time the process's threads used between two
// moments: the clock of a shared stack. Between two points it goes evenly.
func (p *process) cpuBetween(from, to float64) float64 {
	return max(p.cpuAt(to)-p.cpuAt(from), 0)
}

func (p *process) cpuAt(t float64) float64 {
	n := len(p.cpu)
	if n < 2 {
		return t // too short to tell: as one thread that always runs
	}
	i := sort.Search(n, func(i int) bool { return p.cpu[i].wall > t })
	i = min(max(i, 1), n-1)
	a, b := p.cpu[i-1], p.cpu[i]
	return a.cpu + (t-a.wall)*(b.cpu-a.cpu)/(b.wall-a.wall)
}

// Pruning is Schuff et al.'s, section 3.3: once pruneAfter observations are
// over, one that is older than pruneQuantile of them gives way. Those pruned
// count as longer than all, so that their share stays below 1-pruneQuantile.
const (
	pruneAfter    = 100
	pruneQuantile = 0.99
)

// over notes how long an observation took, Infinite if it was pruned.
func (s *Session) over(stack model.StackKind, wall float64) {
	h := s.took[stack]
	if h == nil {
		h = model.NewHist(model.LogBins(10))
		s.took[stack] = h
	}
	if wall == 0 {
		h.AddKind(model.Pruned, 0, 1)
		return
	}
	h.Add(uint64(wall), 1)
}

func (s *Session) prune() {
	now := uint64(sampler.Monotonic())
	for _, p := range s.processes {
		if p.group == nil {
			continue
		}
		for i := range p.group.slots {
			w := &p.group.slots[i]
			if w.owner == nil || w.main != i {
				continue
			}
			slot, o := &w.owner.shared.Slots[i], w.owner.slots[i].obs
			if o == nil || slot.State != sampler.SlotUsed {
				continue
			}
			past := s.took[o.stack]
			if past == nil || past.N < pruneAfter || past.Above(now-slot.UseTime) >= 1-pruneQuantile {
				continue
			}
			s.retire(w.owner, i)
			if o.kind == model.Censored {
				o.kind = model.Pruned
				s.pruned++
				s.over(o.stack, 0)
			}
			p.group.shared.Slots[i].N = 0
		}
	}
}

// perWall says what a process does in a nanosecond: of one thread that runs.
type perWall struct {
	native   float64 // units of the clock
	accesses float64
}

func (s *Session) accessesPerWall(sum totals) perWall {
	w := perWall{native: 1}
	if s.clock.Counted != nil && sum.cpu > 0 {
		w.native = sum.clock / float64(sum.cpu)
	}
	w.accesses = w.native * s.touchesIn(1)
	return w
}

// togetherWithin is the stretch of time in which the process's CPU clock tells how many
// threads ran at a moment: some of its points.
const togetherWithin = 10 * time.Millisecond

// together is how many threads of the process ran at a moment, 1 or more.
func (p *process) together(at float64) float64 {
	half := float64(togetherWithin) / 2
	return max(p.cpuBetween(at-half, at+half)/(2*half), 1)
}

// setSharedTime counts the accesses of all threads between use and end: their
// CPU time, at the mean rate. What was read ahead of the one thread is exact
// for it, and the threads that run beside it are taken to be as fast, at moments of their own, and to touch
// data of their own: as many as they do in so many accesses. Where touches of both were read ahead, see merge, these say what is the same.
func (s *Session) setSharedTime(r *model.Record, o *observation, w perWall) {
	// A trap takes so long that its time says nothing of a datum that others touch as often.
	if m := o.beside; m != nil && o.kind == model.Reuse && (m.common || o.counted > 0) {
		r.Exact, r.Time, r.Distinct = true, uint64(m.time), uint64(m.distinct)
		r.Native = uint64(math.Round(float64(r.Time) / s.touchesIn(1)))
		return
	}
	if o.counted > 0 && o.kind == model.Reuse || o.passed {
		together := o.threads
		if together == 0 {
			together = o.process.together(o.end)
		}
		others := touchesBeside(s.rand, float64(o.counted)*(together-1))
		r.Exact = true
		r.Time = uint64(o.counted) + uint64(others)
		if o.kind == model.Reuse && o.distinct > 0 {
			threads := max(together-1, 1)
			beside := threads * s.feet.beside(o, others/threads)
			r.Distinct = uint64(o.distinct) + uint64(math.Round(beside))
		}
		r.Native = uint64(math.Round(float64(r.Time) / s.touchesIn(1)))
		return
	}
	together := 1.0 // threads running
	cpu := o.cpuUntil(s.clock.Counted == nil)
	if o.wall > 0 {
		together = cpu / o.wall
	}
	res := s.calibration.Resolution()
	below := o.kind == model.Reuse && o.wall < res
	if below {
		cpu = res * together // an upper bound, as for a thread's own
	}
	r.Native = max(uint64(math.Round(cpu*w.native)), 1)
	timed := uint64(math.Round(s.touchesIn(float64(r.Native))))
	// It was read ahead that the thread itself does not come back so soon.
	least := uint64(o.after) + 1
	r.Time = max(timed, least)
	r.BelowResolution = below && timed > least
}

// wordsWatched is how many other words of a datum's line were watched, on
// average.
func (s *Session) wordsWatched() float64 {
	words, all := 0, 0
	for _, o := range s.seen {
		if o.state == done && o.stack == model.StackPrivate && o.word != 0 {
			words += len(o.line)
			all++
		}
	}
	return float64(words) / float64(max(all, 1))
}

// lined is of how many observations other words of the line were watched, and of
// how many not, there being no slot or register.
func (s *Session) lined() (lined, not int) {
	for _, o := range s.seen {
		switch {
		case o.state != done || !o.lined:
		case len(o.line) > 0:
			lined++
		default:
			not++
		}
	}
	return lined, not
}

func (s *Session) sharingComments(p *model.Profile, stats sampler.Stats, count func(string, uint64)) {
	if !s.groups() {
		return
	}
	p.Comments = append(p.Comments,
		fmt.Sprintf("stack: %s; %d watchpoints in other threads for %d observations", s.cfg.Stack, s.others, len(s.seen)),
		fmt.Sprintf("false sharing: %.1f of the other %d words of a line were watched on average; writes seen are weighted by how likely their word was to be", s.wordsWatched(), lineWords-1))
	p.Comments = append(p.Comments, s.registers.comments()...)
	s.mergeComments(p)
	if s.otherFailed != nil {
		p.Comments = append(p.Comments, "not watched in all threads, because: "+s.otherFailed.Error())
	}
	count("traps in other threads", stats.OtherTraps)
	count("traps in other threads before the use or after the end", stats.OtherEarly)
	count("traps in other processes at the same address", stats.OtherProcess)
	count("words of lines no longer watched for a new datum's sake", uint64(s.unwatched))
	count("watchpoints pruned", uint64(s.pruned))
	count("observations cut off, as the traps of a CPU were used up", uint64(s.silenced))
	switch lined, not := s.lined(); {
	case lined == 0:
		count(model.FalseSharingUnknown, uint64(not))
	default:
		count("observations of whose line no other word was watched, for which others stand", uint64(not))
	}
}
