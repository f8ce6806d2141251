package target

import (
	"sync/atomic"
	"time"

	"github.com/rdx-profiler/rdx/collector/library"
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

// Process is what is known of one address space: its executable mappings,
// each with the file behind it held open, so that symbols can be read when
// the target is gone or lives in another mount namespace.
type Process struct {
	PID        int
	Via        int // its first thread, or if that has exited another one: whose /proc has memory and files
	library    *library.Library
	Facts      *library.Process // nil before it is looked at
	Mappings   []*Mapping       // by start address
	Regions    []Region         // of all memory, as last read
	Unknown    bool             // an address was not found since the last refresh
	read       time.Time
	Readings   int // of the mappings
	refreshIn  time.Duration
	pause      time.Duration // besides, for what the last reading took
	HeapProbed atomic.Bool   // its first look at its mappings since is due
	Came       int           // threads so far
	CPU        []CPUPoint
	began      uint64 // CPU time when it was first seen, ns
	Ran        uint64 // since then, when last read
	Gone       uint64 // of it, that of threads which are no longer sampled, ns
	modesBegan Modes  // when first read
	modes      Modes  // since then, when last read
	modesRead  time.Duration
	byFile     map[string][]*Mapping // mappings of files, by name
	reader     mapsReader
	unnamed    []unnamed // data that wait for their file
}

func New(pid int, l *library.Library) *Process {
	p := &Process{PID: pid, Via: pid, library: l}
	p.began, _ = cpuTime(pid)
	return p
}

// Look reads what there is to know of the process. Of one that the target has
// started that is put off until a thread of it is held: most may end before, and a
// Look takes longer than many live.
func (p *Process) Look() {
	if p.looked() {
		return
	}
	p.Via = ptrace.Living(p.PID)
	p.Facts = p.library.Process(p.PID, p.Via)
	p.ReadMappings()
}

func (p *Process) looked() bool { return !p.read.IsZero() }

// ReadTime reads how long all threads of the process have run.
func (p *Process) ReadTime() {
	if now, ok := cpuTime(p.PID); ok && now >= p.began {
		p.Ran = now - p.began
	}
}

// Total is how long the process has run. Of one that has exited its threads' sources tell what was not read in time.
func (p *Process) Total() uint64 { return max(p.Ran, p.Gone) }
