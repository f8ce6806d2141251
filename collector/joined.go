package collector

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/interleave"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/sharing"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/proc"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// joinedWindow is what a hold read ahead, until its thread runs again and it can be kept.
type joinedWindow struct {
	record.Stretch
	classified int
	group      *group // of its thread, where these are few
}

// neighbours are the threads that run beside a held one: what was read ahead of it is kept for what they do to it, by
// word where they share its stack, by line for all. It belongs to the tracing thread.
type neighbours struct {
	cfg     *Config
	locate  *ahead.Locator
	watches *watches

	running float64 // threads of the process that ran in the hold at work; 0: not known
	merges  interleave.Queue
	mergeOf *thread // in the last hold, if others of its process ran then
	windows sharing.Queue
	opened  joinedWindow // what the last hold read ahead, if others may write it
}

// count counts those that run beside a thread of a group, which is held.
func (s *neighbours) count(t *thread) {
	s.running = 0
	if others, ok := t.group.othersRunning(t, s.watches.cpus, ptrace.RunsOn); ok {
		s.running = 1 + float64(others)
	}
}

// open notes who ran beside a thread that was read ahead of, in the hold of that number, if others may write what it touches,
// and says whether it has.
func (s *neighbours) open(t *thread, found *ahead.Ahead, hold int) bool {
	g := t.group
	s.merges.Begin()
	if g == nil || len(g.members) < 2 || found.Accesses == 0 {
		return false
	}
	w := joinedWindow{Stretch: record.Stretch{Process: t.process, TID: t.tid, Hold: hold, At: t.since}, classified: found.Classified}
	if g.byCPU {
		w.Running = t.process.Running(float64(t.since))
	} else {
		w.Others = append(make([]int, 0, len(g.running)), g.running...)
		w.Share, w.Late = leftShare(processorShare(t.tid, w.Others, s.watches.cpus, allowedCPUs), g.served())
		w.group = g
	}
	s.opened = w
	return true
}

// classify is told how many touches are known by now of what was opened.
func (s *neighbours) classify(n int) { s.opened.classified = n }

// use takes a use that was read ahead, at its place among the thread's accesses.
func (s *neighbours) use(o *record.Observation, at int) {
	if o.Threads > 1 && o.Stack == model.StackShared && o.Soon > 0 {
		s.merges.Add(o, at, int(o.Threads)-1)
	}
}

// close is called at the end of a hold whose uses are to be put among what others do.
func (s *neighbours) close(t *thread) {
	if s.running > 1 {
		s.mergeOf = t
	}
}

// forget is of a hold that was not made.
func (s *neighbours) forget() { s.mergeOf, s.opened = nil, joinedWindow{} }

// keep is called when the thread runs again.
func (s *neighbours) keep() {
	if t := s.mergeOf; t != nil && s.cfg.Stack != PrivateStack {
		s.merges.Keep(t.process, t.tid, t.nth, s.locate.Touched)
	}
	s.mergeOf = nil
	if w := &s.opened; w.Process != nil {
		s.windows.Keep(w.Stretch, w.classified, s.locate.Touched)
		if w.group != nil {
			w.group.notePart(w.Process.PID, sampler.Monotonic(), readSchedstat)
		}
		*w = joinedWindow{}
	}
}

// seldom is for how much of the time threads at least have a processor that may have one: who was on the held one's may have come to
// another before and behind it.
const seldom = 0.05

// leftShare is for how much of the time threads have a processor beside a held one, of which their own process would leave them so
// much and other programs so much, and how much less that is by these.
func leftShare(withinProcess, served float64) (share, late float64) {
	if withinProcess <= 0 {
		return 0, 0
	}
	share = min(withinProcess, served)
	return max(share, seldom*withinProcess), 1 - share/withinProcess
}

// servedWithin is for how long it is added up how much of the time that a thread wants a processor it has one.
const servedWithin = 100 * time.Millisecond

// served is that of a thread.
type served struct {
	read      time.Duration
	ran, late uint64 // ns
	share     float64
}

// served is for how much of the time that they want one those that ran at the last hold have a processor beside it, on average:
// none who was on the same. 1 where it is not known.
func (g *group) served() float64 {
	sum := 0.0
	for _, tid := range g.apart {
		if s, ok := g.parts[tid]; ok {
			sum += s.share
		} else {
			sum++
		}
	}
	return sum / float64(max(len(g.running), 1))
}

// notePart reads it anew, while no thread is held.
func (g *group) notePart(pid int, now time.Duration, read func(pid, tid int) (ran, late uint64, err error)) {
	parts := make(map[int]served, len(g.members))
	for _, m := range g.members {
		s, ok := g.parts[m.tid]
		if ok && now < s.read+servedWithin {
			parts[m.tid] = s
			continue
		}
		ran, late, err := read(pid, m.tid)
		if err != nil {
			continue // has exited, or the kernel does not tell
		}
		switch wanted := ran - s.ran + late - s.late; {
		case !ok:
			s = served{ran: ran, late: late, share: 1}
		case wanted >= uint64(servedWithin/20):
			s = served{ran: ran, late: late, share: float64(ran-s.ran) / float64(wanted)}
		}
		s.read = now
		parts[m.tid] = s
	}
	g.parts = parts
}

// readSchedstat says how long a thread had a processor, and how long it waited for one.
func readSchedstat(pid, tid int) (ran, late uint64, err error) {
	var b [96]byte
	text, err := proc.Read(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid), b[:])
	if err != nil {
		return 0, 0, err
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0, 0, fmt.Errorf("schedstat of thread %d: %q", tid, text)
	}
	if ran, err = strconv.ParseUint(string(fields[0]), 10, 64); err == nil {
		late, err = strconv.ParseUint(string(fields[1]), 10, 64)
	}
	return ran, late, err
}

// tellLine says when the thread itself comes back to an access's line, which is sooner than to the word.
func (s *neighbours) tellLine(o *record.Observation, f *ahead.Followed) {
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
