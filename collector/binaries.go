package collector

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/rdx-profiler/rdx/collector/library"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/safeopen"
)

// What the target has mapped, and named, for whoever looks for symbols when the session is over.

// settleTime is how long the session's end waits for files that are not open yet.
const settleTime = 2 * library.Patience

// settleFiles has what there is to be read of files by now.
func (s *Session) settleFiles() {
	for _, p := range s.processes {
		p.takeMappings()
		if p.looked() {
			p.facts.Look()
		}
	}
	s.library.Settle(settleTime)
}

// owner finds whose a mapping of the profile is.
func (s *Session) owner(m *model.Mapping) (p *process, own *mapping) {
	if s.owners == nil {
		s.owners = make(map[*model.Mapping]owned)
		for _, p := range s.allProcesses() {
			for _, own := range p.mappings {
				s.owners[&own.Mapping] = owned{p, own}
			}
		}
	}
	o := s.owners[m]
	return o.process, o.mapping
}

type owned struct {
	process *process
	mapping *mapping
}

// Open returns the file behind a mapping of the profile, as it was mapped.
// It is valid until the session is closed.
func (s *Session) Open(m *model.Mapping) (*library.File, error) {
	_, own := s.owner(m)
	switch {
	case own == nil:
		return nil, fmt.Errorf("open mapping %s: not one of this session", m.File)
	case own.file == nil:
		return nil, fmt.Errorf("open mapping %s: %w", m.File, fs.ErrNotExist)
	case own.file.Err() != nil:
		return nil, own.file.Err()
	}
	return own.file, nil
}

// Generated are the tables in which JIT compilers of one process have named their code.
type Generated struct {
	Process int
	Maps    []*safeopen.File // perf maps, the best first
	Dumps   []*library.File  // jitdumps
	Err     error            // why one that there is can't be read
}

// Generated returns those of all processes, and the number among them of the process whose a
// mapping is, -1 if that is not known.
func (s *Session) Generated() (tables []Generated, of func(*model.Mapping) int) {
	number := make(map[*process]int)
	for _, p := range s.allProcesses() {
		if !p.looked() {
			continue
		}
		g := Generated{Process: p.pid}
		g.Maps, g.Dumps, g.Err = p.facts.Generated()
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

// closeFiles lets all files go.
func (s *Session) closeFiles() {
	for _, p := range s.allProcesses() {
		p.close()
	}
	s.library.Close()
}

// waitForFiles is for what must be done before the target goes on, if it can be done soon.
func (s *Session) waitForFiles() { s.library.Settle(time.Second) }
