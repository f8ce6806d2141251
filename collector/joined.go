package collector

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// joinedWindow is what a hold read ahead, until its thread runs again and it can be kept.
type joinedWindow struct {
	record.Stretch
	classified int
}

// openWindow notes who ran beside a thread that was read ahead of, if others may write what it touches.
func (s *holds) openWindow(t *thread, found *ahead.Ahead) {
	g := t.group
	if g == nil || len(g.members) < 2 || found.Accesses == 0 || s.block() != estimate.WordBytes {
		return
	}
	hold := &s.made[len(s.made)-1]
	hold.Joined = true
	w := joinedWindow{Stretch: record.Stretch{Process: t.process, TID: t.tid, Hold: len(s.made)}, classified: found.Classified}
	if g.byCPU {
		w.Running = t.process.Running(float64(t.since))
	} else {
		w.Others = append(make([]int, 0, len(g.running)), g.running...)
		w.Share = processorShare(t.tid, w.Others, s.watches.cpus, allowedCPUs)
	}
	s.opened = w
}

// keepWindow is called when the thread runs again.
func (s *holds) keepWindow() {
	if w := &s.opened; w.Process != nil {
		s.windows.Keep(w.Stretch, w.classified, s.locate.Touched)
		*w = joinedWindow{}
	}
}

// tellLine says when the thread itself comes back to an access's line, which is sooner than to the word.
func (s *holds) tellLine(o *record.Observation, f *ahead.Followed) {
	if s.opened.Process != nil && f.After > 0 {
		o.LineSoon = s.locate.NextInLine(f.At)
	}
}

// processorShare is for how much of the time each of the threads beside tid has a processor, if all want one: those
// that may run on no more than the same one never have it while tid does.
func processorShare(tid int, running []int, online int, allowed func(tid int) (unix.CPUSet, error)) float64 {
	var all unix.CPUSet
	for _, id := range append(slices.Clone(running), tid) {
		set, err := allowed(id)
		if err != nil {
			continue // has exited
		}
		for i := range all {
			all[i] |= set[i]
		}
	}
	cpus := min(all.Count(), online)
	return min(float64(max(cpus-1, 0))/float64(max(len(running), 1)), 1)
}

func allowedCPUs(tid int) (set unix.CPUSet, err error) {
	err = unix.SchedGetaffinity(tid, &set)
	return set, err
}
