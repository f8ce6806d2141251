package collector

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/library"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// How often the mappings of a process are read again when an address was not
// found in them: at once for the first, as a program that has just begun has no libraries yet
// and may live for milliseconds; soon, for libraries being loaded; and ever more seldom where
// that does not help, as with code outside of any mapped file.
const (
	firstRefresh = 50 * time.Millisecond
	lastRefresh  = 30 * time.Second
)

// process is what is known of one address space: its executable mappings,
// each with the file behind it held open, so that symbols can be read when
// the target is gone or lives in another mount namespace.
type process struct {
	pid        int
	via        int // its first thread, or if that has exited another one: whose /proc has memory and files
	library    *library.Library
	facts      *library.Process // nil before it is looked at
	mappings   []*mapping       // by start address
	regions    []region         // of all memory, as last read
	unknown    bool             // an address was not found since the last refresh
	read       time.Time
	readings   int // of the mappings
	refreshIn  time.Duration
	pause      time.Duration // besides, for what the last reading took
	probed     []*mapping    // as of the last look for allocators
	heapProbed atomic.Bool   // its first look at its mappings since is due
	group      *group        // nil unless its threads share slots
	came       int           // threads so far
	spaces     spaces        // of its memory, for what is the same in other processes; the merger's
	cpu        []cpuPoint
	began      uint64 // CPU time when it was first seen, ns
	ran        uint64 // since then, when last read
	gone       uint64 // of it, that of threads which are no longer sampled, ns
	copies     copies
	byFile     map[string][]*mapping // mappings of files, by name
	aside      mapsAside
}

func newProcess(pid int, l *library.Library) *process {
	now := sampler.Monotonic()
	p := &process{pid: pid, via: pid, library: l, copies: copies{seen: now, read: now}}
	p.began, _ = cpuTime(pid)
	return p
}

// look reads what there is to know of the process. Of one that the target has
// started that is put off until a thread of it is held: most may end before, and a
// look takes longer than many live.
func (p *process) look() {
	if p.looked() {
		return
	}
	p.via = ptrace.Living(p.pid)
	p.facts = p.library.Process(p.pid, p.via)
	p.readMappings()
}

// followVia turns to a living thread where the one by which memory and files were reached has exited: a process
// goes on without its first thread, but /proc/PID has neither then.
func (s *Session) followVia() {
	gone := s.locate.Gone()
	if gone == 0 {
		return
	}
	for _, p := range s.processes {
		if p.via != gone {
			continue
		}
		if via := ptrace.Living(p.pid); via != gone {
			s.locate.Forget(gone)
			p.via = via
			s.locate.Prepare(via)
		}
	}
}

func (p *process) looked() bool { return !p.read.IsZero() }

// readTime reads how long all threads of the process have run.
func (p *process) readTime() {
	if now, ok := cpuTime(p.pid); ok && now >= p.began {
		p.ran = now - p.began
	}
}

// total is how long the process has run. Of one that has exited its threads' sources tell what was not read in time.
func (p *process) total() uint64 { return max(p.ran, p.gone) }

// ranTime is the CPU time of the target's processes in ns, what they do in the
// kernel included.
func (s *Session) ranTime() uint64 {
	sum := s.unseenRan
	for _, p := range s.allProcesses() {
		sum += p.total()
	}
	return sum
}

// childrenTime is the CPU time in ns of the child processes of a program that was started and has exited, as
// far as it has waited for them.
func (s *Session) childrenTime() uint64 {
	var ru unix.Rusage
	if s.cfg.Follow || s.child == 0 || !s.exit.Exited || unix.Getrusage(unix.RUSAGE_CHILDREN, &ru) != nil {
		return 0
	}
	// Its own is that of its last moment, and of the time before it was the program, besides.
	all, own := uint64(ru.Utime.Nano()+ru.Stime.Nano()), s.ranTime()
	if all < 2*own+uint64(childrenMatter) {
		return 0
	}
	return all - own
}

// childrenMatter that ran for so long, and longer than the program.
const childrenMatter = 300 * time.Millisecond
