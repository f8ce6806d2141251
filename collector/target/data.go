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
func (p *Process) Datum(addr uint64) model.Data {
	i, ok := RegionOf(p.Regions, addr)
	if !ok {
		return model.Data{}
	}
	r := p.Regions[i]
	switch {
	case r.File == "[heap]":
		return model.Data{Kind: model.DataHeap}
	case r.File == "[stack]":
		return model.Data{Kind: model.DataOtherStack}
	case strings.HasPrefix(r.File, "/"):
		return p.fileDatum(r, addr)
	case r.File == "" && i > 0 && p.Regions[i-1].Limit == r.Start && p.Regions[i-1].Writable && strings.HasPrefix(p.Regions[i-1].File, "/"):
		// What a file has no bytes for, its .bss, lies behind its data. An
		// anonymous mapping of other origin may lie there, too.
		if d := p.fileDatum(p.Regions[i-1], addr); d.Kind == model.DataStatic {
			return d
		}
	case strings.HasPrefix(r.File, "[") && !strings.HasPrefix(r.File, "[anon"):
		return model.Data{Kind: model.DataFile, Name: r.File}
	}
	return model.Data{Kind: model.DataAnonymous}
}

// fileDatum is a datum in, or right behind, a region of a file: static if the
// file is mapped as code, too, and loads anything at that address.
func (p *Process) fileDatum(r Region, addr uint64) model.Data {
	for _, m := range p.byFile[r.File] {
		if !m.Held.Ready() {
			return model.Data{} // to be asked again
		}
		if at, ok := m.loadedAt(addr); ok {
			return model.Data{Kind: model.DataStatic, Mapping: &m.Mapping, Address: at}
		}
	}
	return model.Data{Kind: model.DataFile, Name: "file " + path.Base(r.File)}
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
