package target

import (
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/rdx-profiler/rdx/collector/library"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/safeopen"
)

// Set are the processes of a target, one after the other or at once. It belongs to the tracing
// thread; when that is done, to whoever makes the profile.
type Set struct {
	Alive   map[int]*Process // that are being sampled, by PID
	past    []*Process       // exited, or replaced by exec
	library *library.Library

	// Of those that are not alive any more.
	ended      uint64 // CPU time, ns
	modesEnded Modes

	owners map[*model.Mapping]owned // of the mappings of the profile, when it is made
}

// NewSet is without processes.
func NewSet() *Set {
	return &Set{Alive: make(map[int]*Process), library: library.New()}
}

// Add begins a process.
func (s *Set) Add(pid int) *Process {
	p := New(pid, s.library)
	s.Alive[pid] = p
	return p
}

// Ended forgets a process, or the program that it was, but for what a profile will name.
func (s *Set) Ended(p *Process) {
	delete(s.Alive, p.PID)
	s.ended += p.Total()
	s.modesEnded = s.modesEnded.add(p.modes)
	if p.looked() {
		p.Facts.End()
		s.past = append(s.past, p)
	}
}

// All are those alive and those that are kept.
func (s *Set) All() []*Process {
	all := slices.Clone(s.past)
	for _, p := range s.Alive {
		all = append(all, p)
	}
	return all
}

// Ran is the CPU time of the target's processes in ns, what they do in the
// kernel included.
func (s *Set) Ran() uint64 {
	sum := s.ended
	for _, p := range s.Alive {
		sum += p.Total()
	}
	return sum
}

// Close lets all files go.
func (s *Set) Close() {
	for _, p := range s.All() {
		p.close()
	}
	s.library.Close()
}

// settleTime is how long the session's end waits for files that are not open yet.
const settleTime = 2 * library.Patience

// SettleFiles has what there is to be read of files by now.
func (s *Set) SettleFiles() {
	for _, p := range s.Alive {
		p.TakeMappings()
		if p.looked() {
			p.Facts.Look()
		}
	}
	s.library.Settle(settleTime)
}

// NameData has every datum named that was placed, now that there is no more to come of files.
func (s *Set) NameData() {
	for _, p := range s.All() {
		p.NameData(true)
	}
}

// WaitForFiles is for what must be done before the target goes on, if it can be done soon.
func (s *Set) WaitForFiles() { s.library.Settle(time.Second) }

// Do has one of the library's goroutines do something about files.
func (s *Set) Do(f func()) { s.library.Do(f) }

// owner finds whose a mapping of the profile is.
func (s *Set) owner(m *model.Mapping) (p *Process, mapping *Mapping) {
	if s.owners == nil {
		s.owners = make(map[*model.Mapping]owned)
		for _, p := range s.All() {
			for _, mapping := range p.Mappings {
				s.owners[&mapping.Mapping] = owned{p, mapping}
			}
		}
	}
	o := s.owners[m]
	return o.process, o.mapping
}

type owned struct {
	process *Process
	mapping *Mapping
}

// Open returns the file behind a mapping of the profile, as it was mapped.
// It is valid until the session is closed.
func (s *Set) Open(m *model.Mapping) (*library.File, error) {
	_, mapping := s.owner(m)
	switch {
	case mapping == nil:
		return nil, fmt.Errorf("open mapping %s: not one of this session", m.File)
	case mapping.Held == nil:
		return nil, fmt.Errorf("open mapping %s: %w", m.File, fs.ErrNotExist)
	case mapping.Held.Err() != nil:
		return nil, mapping.Held.Err()
	}
	return mapping.Held, nil
}

// OpenNamed opens a file by a name that the process of a mapping has it by.
func (s *Set) OpenNamed(m *model.Mapping, name string) (*safeopen.File, error) {
	p, _ := s.owner(m)
	if p == nil || p.Facts == nil {
		return nil, fs.ErrNotExist
	}
	return p.Facts.OpenNamed(name)
}

// Generated are the tables in which JIT compilers of one process have named their code.
type Generated struct {
	Process int
	Maps    []*safeopen.File // perf maps, the best first
	Dumps   []*library.File  // jitdumps
	Err     error            // why one that there is can't be read
}

// Generated returns those of all processes, and the number among them of the process whose a
// Mapping is, -1 if that is not known.
func (s *Set) Generated() (tables []Generated, of func(*model.Mapping) int) {
	number := make(map[*Process]int)
	for _, p := range s.All() {
		if !p.looked() {
			continue
		}
		g := Generated{Process: p.PID}
		g.Maps, g.Dumps, g.Err = p.Facts.Generated()
		number[p] = len(tables)
		tables = append(tables, g)
	}
	return tables, func(m *model.Mapping) int {
		if p, _ := s.owner(m); p != nil {
			return number[p]
		}
		return -1
	}
}
