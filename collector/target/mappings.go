package target

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/library"
	"github.com/rdx-profiler/rdx/model"
)

// Mapping is executable memory, and the file behind it.
type Mapping struct {
	model.Mapping
	key  library.Key
	Held *library.File // nil if there is none

	origin *origin // of code without a file, nil if there is no file beside it
}

// Identify gives the mapping the build ID of what is mapped, if that has one. It may have to wait for that: it
// is for the end of the session.
func (m *Mapping) Identify() {
	m.takeOrigin()
	if m.Held != nil && m.BuildID == "" {
		m.BuildID = m.Held.BuildID()
	}
}

// Note makes sure that the addresses will be found in the mappings.
func (p *Process) Note(addresses ...uint64) {
	p.Look()
	for _, a := range addresses {
		if p.Find(a) == nil {
			p.Unknown = true
		}
	}
}

// Refresh reads the mappings again if an address was missing in them.
func (p *Process) Refresh() {
	p.NameData(false)
	if p.TakeMappings(); !p.Unknown || p.reader.away || time.Since(p.read) < max(p.refreshIn, p.pause) {
		return
	}
	p.ReadMappings()
}

func (p *Process) Find(pc uint64) *Mapping { return FindMapping(p.Mappings, pc) }

func FindMapping(mappings []*Mapping, pc uint64) *Mapping {
	i := sort.Search(len(mappings), func(i int) bool { return mappings[i].Limit > pc })
	if i < len(mappings) && mappings[i].Start <= pc {
		return mappings[i]
	}
	return nil
}

const (
	// mapsAtOnce is how much of /proc/PID/maps the tracing thread reads by itself, in some 0.1 ms, be a
	// thread held or not: the process may be gone a moment later. More is read aside.
	mapsAtOnce = 64 << 10
	// mapsMost bounds what is read of it at all: a million mappings have less.
	mapsMost = 256 << 20
)

// mapsReader is the reading of the mappings of a process that has very many.
type mapsReader struct {
	many bool // have been found
	away bool // a reading is under way
	came chan readMaps
}

type readMaps struct {
	regions []Region
	elapsed time.Duration
}

// ReadMappings reads them, or has them read.
func (p *Process) ReadMappings() {
	start := time.Now()
	p.read, p.Unknown = start, false
	name := fmt.Sprintf("/proc/%d/maps", p.Via)
	if !p.reader.many {
		b, whole, err := readUpTo(name, mapsAtOnce)
		if err != nil || len(b) == 0 {
			return // exited
		}
		if whole {
			p.accept(readMaps{parseRegions(b), time.Since(start)})
			return
		}
		p.reader = mapsReader{many: true, came: make(chan readMaps, 1)}
	}
	if p.reader.away {
		return
	}
	p.reader.away = true
	came := p.reader.came
	p.library.Do(func() {
		start := time.Now()
		b, _, _ := readUpTo(name, mapsMost)
		regions := parseRegions(b)
		came <- readMaps{regions, time.Since(start)}
	})
}

// TakeMappings takes what another goroutine has read, if it has come.
func (p *Process) TakeMappings() {
	if !p.reader.away {
		return
	}
	select {
	case r := <-p.reader.came:
		p.reader.away = false
		if len(r.regions) > 0 {
			start := time.Now()
			p.read = start
			p.accept(readMaps{r.regions, r.elapsed + time.Since(start)})
		}
	default:
	}
}

// accept takes the mappings that were read.
func (p *Process) accept(r readMaps) {
	start := time.Now()
	p.Readings++
	if p.Readings > 1 && slices.Equal(p.Regions, r.regions) {
		p.refreshIn = min(max(2*p.refreshIn, firstRefresh), lastRefresh)
	} else {
		p.merge(r.regions)
		p.Facts.Look() // there may be new code
	}
	if p.Readings == 1 {
		return // a program that has just begun has no libraries yet
	}
	// A process may have very many mappings. A reading that others came into is soon forgotten.
	p.pause = min(100*(r.elapsed+time.Since(start)), lastRefresh)
}

// readUpTo reads the beginning of a file of /proc; whole says that there is no more.
func readUpTo(name string, most int) (b []byte, whole bool, err error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, err
	}
	defer unix.Close(fd)
	b = make([]byte, 0, 16<<10)
	for len(b) < most {
		b = slices.Grow(b, 4096)
		n, err := unix.Read(fd, b[len(b):cap(b)])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return b, false, err
		}
		if n == 0 {
			return b, true, nil
		}
		b = b[:len(b)+n]
	}
	return b, false, nil
}

// merge puts the executable ones of the regions in place of the mappings they overlap, in a list of its own:
// the old one may be in use to unwind stacks. Mappings already known are kept, and those that
// are gone are if nothing else has come there: their code is still named in the stacks of before.
func (p *Process) merge(regions []Region) {
	p.Regions = regions
	old := p.Mappings
	merged := make([]*Mapping, 0, len(old)+8)
	for i := range regions {
		r := &regions[i]
		if !r.executable {
			continue
		}
		for len(old) > 0 && old[0].Limit <= r.Start {
			merged, old = append(merged, old[0]), old[1:]
		}
		if len(old) > 0 && old[0].isOf(r) {
			merged, old = append(merged, old[0]), old[1:]
		} else {
			merged = append(merged, p.open(regions, i))
		}
		end := merged[len(merged)-1].Limit
		for len(old) > 0 && old[0].Start < end {
			p.release(old[0])
			old = old[1:]
		}
	}
	p.Mappings = append(merged, old...)
	p.byFile = make(map[string][]*Mapping)
	for _, m := range p.Mappings {
		if m.Held != nil {
			p.byFile[m.File] = append(p.byFile[m.File], m)
		}
	}
}

// isOf says whether a region is the mapping, or what is left of it. Its file may have been deleted or
// renamed.
func (m *Mapping) isOf(r *Region) bool {
	return m.Start == r.Start && m.Limit >= r.Limit && m.Offset == r.offset && m.key == r.key && (m.key.Inode != 0 || m.File == r.File)
}

// open holds on to what is mapped. A mapping whose file can't be opened
// keeps its addresses, without names.
func (p *Process) open(regions []Region, i int) *Mapping {
	r := &regions[i]
	m := &Mapping{Mapping: model.Mapping{Start: r.Start, Limit: r.Limit, Offset: r.offset, File: r.File}, key: r.key}
	at := library.Place{Via: p.Via, Start: r.Start, Limit: r.Limit, Name: r.File, In: p.Facts}
	switch {
	case mayBeRemapped(r.File):
		p.lookForOrigin(m, regions, i)
	case r.File == "[vdso]":
		m.Held = p.library.Hold(library.VDSO(r.Limit-r.Start), at)
	case strings.HasPrefix(r.File, "/") && r.key.Inode != 0:
		m.Held = p.library.Hold(r.key, at)
		if m.Held != nil && library.IsDump(r.File) {
			p.Facts.AddDump(m.Held)
		}
	}
	return m
}

func (p *Process) release(m *Mapping) {
	p.library.Release(m.Held)
	if m.origin != nil {
		p.library.Release(m.origin.neighbour)
	}
}

func (p *Process) close() {
	for _, m := range p.Mappings {
		p.release(m)
	}
	if p.Facts != nil {
		p.Facts.Close()
	}
}

// executable are the mappings of the regions that hold code.
func executable(regions []Region) []model.Mapping {
	var out []model.Mapping
	for _, r := range regions {
		if r.executable {
			out = append(out, model.Mapping{Start: r.Start, Limit: r.Limit, Offset: r.offset, File: r.File})
		}
	}
	return out
}
