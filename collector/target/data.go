package target

import (
	"debug/elf"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/rdx-profiler/rdx/collector/library"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/proc"
)

// Region is a line of /proc/PID/maps.
type Region struct {
	Start, Limit, offset uint64
	Writable, executable bool
	key                  library.Key // of its file
	File                 string      // "" for anonymous memory; "[heap]" and the like
}

func parseRegions(maps []byte) []Region {
	var out []Region
	file := ""
	for m := range proc.Mappings(maps) {
		if string(m.Name) != file { // most are those of the line before
			file = string(m.Name)
		}
		key := library.Key{Device: m.Device, Inode: m.Inode}
		out = append(out, Region{m.Start, m.Limit, m.Offset, m.Writable, m.Executable, key, file})
	}
	return out
}

// RegionOf returns the index of the region that holds an address.
func RegionOf(regions []Region, addr uint64) (int, bool) {
	i := sort.Search(len(regions), func(i int) bool { return regions[i].Limit > addr })
	return i, i < len(regions) && regions[i].Start <= addr
}

// Datum says what lies at an address. Frames of the thread's own stack are told
// by unwinding, not here.
func (p *Process) Datum(addr uint64) (d model.Data) {
	if u, ok := p.lookUp(addr); ok && !u.tell(&d) {
		u.tellWithout(&d)
	}
	return d
}

// Place has to say what lies at an address, by the mappings as they are now: at once, or, where that depends
// on a file that is not open yet, when it is, by NameData. False if the address is in no mapping.
func (p *Process) Place(addr uint64, to *model.Data) bool {
	u, ok := p.lookUp(addr)
	if ok && !u.tell(to) {
		u.to = to
		p.unnamed = append(p.unnamed, u)
	}
	return ok
}

// NameData tells what Place could not, as far as files are open by now. At the end of a session those that are not
// never will be.
func (p *Process) NameData(end bool) {
	left := p.unnamed[:0]
	for _, u := range p.unnamed {
		switch {
		case u.tell(u.to):
		case end:
			u.tellWithout(u.to)
		default:
			left = append(left, u)
		}
	}
	clear(p.unnamed[len(left):])
	p.unnamed = left
}

// unnamed is a datum of which the mapping is known, but perhaps not yet what its file has there.
type unnamed struct {
	addr   uint64
	known  model.Data // if it is in none of a file's
	file   string     // "" if it is known
	of     []*Mapping // the file's code
	behind bool       // it lies behind the file's region: its .bss, or something else
	to     *model.Data
}

func (p *Process) lookUp(addr uint64) (u unnamed, ok bool) {
	i, ok := RegionOf(p.Regions, addr)
	if !ok {
		return unnamed{}, false
	}
	r := &p.Regions[i]
	u = unnamed{addr: addr, known: model.Data{Kind: model.DataAnonymous}}
	switch {
	case r.File == "[heap]":
		u.known = model.Data{Kind: model.DataHeap}
	case r.File == "[stack]":
		u.known = model.Data{Kind: model.DataOtherStack}
	case strings.HasPrefix(r.File, "/"):
		u.file = r.File
	case r.File == "" && i > 0 && p.Regions[i-1].Limit == r.Start && p.Regions[i-1].Writable && strings.HasPrefix(p.Regions[i-1].File, "/"):
		// What a file has no bytes for, its .bss, lies behind its data. An
		// anonymous mapping of other origin may lie there, too.
		u.file, u.behind = p.Regions[i-1].File, true
	case strings.HasPrefix(r.File, "[") && !strings.HasPrefix(r.File, "[anon"):
		u.known = model.Data{Kind: model.DataFile, Name: r.File}
	}
	u.of = p.byFile[u.file]
	return u, true
}

// tell says what it is: static if the file is mapped as code, too, and loads anything at that
// address. False as long as the file is not open.
func (u *unnamed) tell(to *model.Data) bool {
	if u.file == "" {
		*to = u.known
		return true
	}
	unread := false
	for _, m := range u.of {
		if !m.Held.Ready() {
			return false
		}
		if at, ok := m.loadedAt(u.addr); ok {
			*to = model.Data{Kind: model.DataStatic, Mapping: &m.Mapping, Address: at}
			return true
		}
		unread = unread || m.Held.Err() != nil
	}
	if *to = u.known; !u.behind || unread {
		u.tellWithout(to)
	}
	return true
}

// tellWithout goes by the mapping alone.
func (u *unnamed) tellWithout(to *model.Data) {
	*to = model.Data{Kind: model.DataFile, Name: "file " + path.Base(u.file)}
}

// loadedAt turns an address of the process into one of the file.
func (m *Mapping) loadedAt(addr uint64) (uint64, bool) {
	loads := m.Held.Loads()
	code := slices.IndexFunc(loads, func(p elf.ProgHeader) bool {
		return p.Flags&elf.PF_X != 0 && m.Offset+pageSize > p.Off && m.Offset < p.Off+p.Filesz
	})
	if code < 0 {
		return 0, false
	}
	at := addr - m.Start + m.Offset - loads[code].Off + loads[code].Vaddr
	return at, slices.ContainsFunc(loads, func(p elf.ProgHeader) bool { return at >= p.Vaddr && at-p.Vaddr < p.Memsz })
}

const pageSize = 4096
