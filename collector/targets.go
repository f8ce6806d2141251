package collector

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/library"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
	"github.com/rdx-profiler/rdx/sampler/safeopen"
)

// targets are the processes and threads that are sampled, and what the probes on their allocators
// tell. It belongs to the tracing thread.
type targets struct {
	account *account
	cfg     *Config
	stepper *stepper
	kept    *observations
	kernel  *sampler.Kernel
	locate  *ahead.Locator
	prober  *prober
	src     *sourceState
	ticks   *tickPace
	tracing *tracing
	watches *watches
	late    lateHolds // the handler's
	drain   func()    // reads what traps are waiting

	processes *target.Set
	threads   map[int]*thread
	byIndex   map[uint32]*thread
	of        map[*target.Process]map[int]*thread // those of threads that are of it, by number
	heap      *sampler.HeapProbes                 // nil if not asked for
	heapWork  heapWork
	probed    map[*target.Process][]*target.Mapping // as of the last look for allocators
	exit      ExitStatus
	child     int    // the process we started
	waitedFor uint64 // CPU time of rdx's own children before, ns: what it measures costs on
	launching bool   // until the launched process has become the target
	attached  int    // threads seized at the start
}

// newTargets has none.
func newTargets() targets {
	return targets{
		processes: target.NewSet(),
		probed:    make(map[*target.Process][]*target.Mapping),
		threads:   make(map[int]*thread),
		byIndex:   make(map[uint32]*thread),
		of:        make(map[*target.Process]map[int]*thread),
	}
}

// launch is told which process was started: it is yet to become the program.
func (s *targets) launch(pid int) { s.child, s.launching, s.waitedFor = pid, true, waitedFor() }

// add and drop keep the threads that are sampled.
func (s *targets) add(t *thread) {
	s.threads[t.tid], s.byIndex[t.index] = t, t
	if s.of[t.process] == nil {
		s.of[t.process] = make(map[int]*thread, 1)
	}
	s.of[t.process][t.tid] = t
}

func (s *targets) drop(t *thread) {
	delete(s.threads, t.tid)
	delete(s.byIndex, t.index)
	if delete(s.of[t.process], t.tid); len(s.of[t.process]) == 0 {
		delete(s.of, t.process)
	}
}

// followVia turns to a living thread where the one by which memory and files were reached has exited: a process
// goes on without its first thread, but /proc/PID has neither then.
func (s *targets) followVia() {
	gone := s.locate.Gone()
	if gone == 0 {
		return
	}
	for _, p := range s.processes.Alive {
		if p.Via != gone {
			continue
		}
		if via := ptrace.Living(p.PID); via != gone {
			s.locate.Forget(gone)
			p.Via = via
			s.locate.Prepare(via)
		}
	}
}

// childrenTime is the CPU time in ns of the child processes of a program that was started and has exited, as
// far as it has waited for them.
func (s *targets) childrenTime() uint64 {
	if s.cfg.Follow || s.child == 0 || !s.exit.Exited {
		return 0
	}
	// Its own is that of its last moment, and of the time before it was the program, besides.
	all, program := waitedFor()-s.waitedFor, s.processes.Ran()
	if all < 2*program+uint64(childrenMatter) {
		return 0
	}
	return all - program
}

// waitedFor is the CPU time in ns of all children that rdx has waited for, and of theirs.
func waitedFor() uint64 {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &ru) != nil {
		return 0
	}
	return uint64(ru.Utime.Nano() + ru.Stime.Nano())
}

// childrenMatter that ran for so long, and longer than the program.
const childrenMatter = 300 * time.Millisecond

// Open returns the file behind a mapping of the profile, as it was mapped.
// It is valid until the session is closed.
func (s *Session) Open(m *model.Mapping) (*library.File, error) {
	return s.sampling.targets.processes.Open(m)
}

// OpenNamed opens a file by a name that the process of a mapping has it by, below its root.
func (s *Session) OpenNamed(m *model.Mapping, name string) (*safeopen.File, error) {
	return s.sampling.targets.processes.OpenNamed(m, name)
}

// Generated returns the tables in which JIT compilers of the target's processes have named their code, and
// the number among them of the process whose a mapping is, -1 if that is not known.
func (s *Session) Generated() (tables []target.Generated, of func(*model.Mapping) int) {
	return s.sampling.targets.processes.Generated()
}
