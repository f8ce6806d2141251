package interleave

import (
	"strings"

	"github.com/rdx-profiler/rdx/collector/target"
)

// location is a block of memory, the same in all processes of a program if it lies in its
// files' mappings or its heap.
type location struct {
	space uint32
	block uint64 // from the space's start, in blocks
}

// stream is what a thread touched one after the other, as read ahead in a hold in which others ran, too. Places are
// by their numbers.
type stream struct {
	process  *target.Process
	program  string
	tid      int
	nth      int // of the process's threads
	touches  []uint32
	distinct []uint32 // each once
	stored   []uint32 // of these, those that any touch stores to
}

// goesWith says whether what it touched may stand for what o's process did at a time when o was
// held: o's other threads, or if none was held yet those of another process of the program.
func (b *stream) goesWith(o *stream, sameProcess bool) bool {
	if sameProcess {
		return b.process == o.process && b.tid != o.tid
	}
	return b.process != o.process && b.program == o.program && b.nth != o.nth
}

// spaces says of a process's regions which space they are.
type spaces struct {
	regions []target.Region // as they were
	of      []space
	private uint32 // all that is its own; 0: not yet numbered
}

type space struct {
	number uint32
	start  uint64 // address
}

// spaceNumbers are those of files, by name. Others are new ones.
type spaceNumbers struct {
	files map[string]uint32
	last  uint32
}

func (n *spaceNumbers) next() uint32 {
	n.last++
	return n.last
}

func (n *spaceNumbers) file(name string) uint32 {
	if n.files == nil {
		n.files = make(map[string]uint32)
	}
	if n.files[name] == 0 {
		n.files[name] = n.next()
	}
	return n.files[name]
}

// number gives the regions their spaces: to a file all its mappings, and what follows one without a
// gap, which is the rest of its data.
func (s *spaces) number(regions []target.Region, n *spaceNumbers) {
	if s.private == 0 {
		s.private = n.next()
	}
	s.regions, s.of = regions, s.of[:0]
	starts := map[uint32]uint64{}
	for i, r := range regions {
		at := space{number: s.private}
		switch {
		case strings.HasPrefix(r.File, "/") || r.File == "[heap]":
			at.number = n.file(r.File)
			if _, ok := starts[at.number]; !ok {
				starts[at.number] = r.Start
			}
			at.start = starts[at.number]
		case r.File == "" && i > 0 && regions[i-1].Limit == r.Start:
			at = s.of[i-1]
		}
		s.of = append(s.of, at)
	}
}

// programOf is the name of the file that comes first in memory.
func programOf(regions []target.Region) string {
	for _, r := range regions {
		if strings.HasPrefix(r.File, "/") {
			return r.File
		}
	}
	return ""
}

// set takes what a hold's thread touched, in blocks of so many bytes.
func (m *Merger) set(b *stream, h *Hold, block uint64) {
	for _, n := range b.distinct {
		m.numbering.drop(n)
	}
	b.process, b.program, b.tid, b.nth = h.process, programOf(h.regions), h.tid, h.nth
	b.touches, b.distinct, b.stored = b.touches[:0], b.distinct[:0], b.stored[:0]
	s := m.spaces[h.process]
	if s == nil {
		s = new(spaces)
		m.spaces[h.process] = s
	}
	if s.private == 0 || len(s.regions) != len(h.regions) || len(h.regions) > 0 && &s.regions[0] != &h.regions[0] {
		s.number(h.regions, &m.numbers)
	}
	in := 0
	for _, t := range h.touches {
		if t.Before >= 0 {
			b.touches = append(b.touches, b.touches[t.Before])
			continue
		}
		addr, at := t.Block*block, space{number: s.private}
		if in >= len(s.regions) || addr < s.regions[in].Start || addr >= s.regions[in].Limit {
			in, _ = target.RegionOf(s.regions, addr)
		}
		if in < len(s.regions) && s.regions[in].Start <= addr {
			at = s.of[in]
		}
		n := m.numbering.take(location{at.number, (addr - at.start) / block})
		b.touches, b.distinct = append(b.touches, n), append(b.distinct, n)
	}
	m.begin()
	for i, t := range h.touches {
		if n := b.touches[i]; t.Store && m.note(n, isStored) == 0 {
			b.stored = append(b.stored, n)
		}
	}
}
