package collector

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

// region is a line of /proc/PID/maps.
type region struct {
	start, limit, offset uint64
	writable, executable bool
	key                  library.Key // of its file
	file                 string      // "" for anonymous memory; "[heap]" and the like
}

func parseRegions(maps []byte) []region {
	var out []region
	file := ""
	for m := range proc.Mappings(maps) {
		if string(m.Name) != file { // most are those of the line before
			file = string(m.Name)
		}
		key := library.Key{Device: m.Device, Inode: m.Inode}
		out = append(out, region{m.Start, m.Limit, m.Offset, m.Writable, m.Executable, key, file})
	}
	return out
}

// regionOf returns the index of the region that holds an address.
func regionOf(regions []region, addr uint64) (int, bool) {
	i := sort.Search(len(regions), func(i int) bool { return regions[i].limit > addr })
	return i, i < len(regions) && regions[i].start <= addr
}

// datum says what lies at an address. Frames of the thread's own stack are told
// by unwinding, not here.
func (p *process) datum(addr uint64) model.Data {
	i, ok := regionOf(p.regions, addr)
	if !ok {
		return model.Data{}
	}
	r := p.regions[i]
	switch {
	case r.file == "[heap]":
		return model.Data{Kind: model.DataHeap}
	case r.file == "[stack]":
		return model.Data{Kind: model.DataOtherStack}
	case strings.HasPrefix(r.file, "/"):
		return p.fileDatum(r, addr)
	case r.file == "" && i > 0 && p.regions[i-1].limit == r.start && p.regions[i-1].writable && strings.HasPrefix(p.regions[i-1].file, "/"):
		// What a file has no bytes for, its .bss, lies behind its data. An
		// anonymous mapping of other origin may lie there, too.
		if d := p.fileDatum(p.regions[i-1], addr); d.Kind == model.DataStatic {
			return d
		}
	case strings.HasPrefix(r.file, "[") && !strings.HasPrefix(r.file, "[anon"):
		return model.Data{Kind: model.DataFile, Name: r.file}
	}
	return model.Data{Kind: model.DataAnonymous}
}

// fileDatum is a datum in, or right behind, a region of a file: static if the
// file is mapped as code, too, and loads anything at that address.
func (p *process) fileDatum(r region, addr uint64) model.Data {
	for _, m := range p.byFile[r.file] {
		if !m.file.Ready() {
			return model.Data{} // to be asked again
		}
		if at, ok := m.loadedAt(addr); ok {
			return model.Data{Kind: model.DataStatic, Mapping: &m.Mapping, Address: at}
		}
	}
	return model.Data{Kind: model.DataFile, Name: "file " + path.Base(r.file)}
}

// placeReadings is how often the mappings are read again for an address that is in
// none of them.
const placeReadings = 3

// findData says where the data sampled last lie, while the mappings and blocks are
// those of the sample: soon others may have their place.
func (s *Session) findData() {
	for i := len(s.unplaced) - 1; i >= 0 && !s.unplaced[i].searched; i-- {
		o := s.unplaced[i]
		o.searched = true
		o.data = o.process.datum(o.addr)
		o.process.unknown = o.process.unknown || o.data.Kind == model.DataUnknown
		o.placeBy = o.process.readings + placeReadings
		s.findBlock(o)
	}
}

// findDataAgain looks for those data that were in no mapping. One that is in none in
// so many readings, or whose process has ended, is given up.
func (s *Session) findDataAgain() {
	s.findData()
	var again []*observation
	for _, o := range s.unplaced {
		if o.data.Kind != model.DataUnknown {
			continue
		}
		p := o.process
		o.data = p.datum(o.addr)
		if o.data.Kind == model.DataUnknown && p.readings < o.placeBy && s.processes[p.pid] == p {
			p.unknown = true
			again = append(again, o)
		}
	}
	s.unplaced = again
}

// dataTable has one model.Data of each kind.
type dataTable map[dataKey]*model.Data

type dataKey struct {
	kind    model.DataKind
	mapping *model.Mapping
	name    string
	address uint64
	process *process
	site    int
}

// of returns an observation's. What lies in the frames of its stack has been
// found by unwinding that; the first thread's stack has a name of its own.
func (dt dataTable) of(s *Session, o *observation, locations locationTable) *model.Data {
	d := o.data
	if frame := s.stacks.holder(o.useStack); frame >= 0 {
		d = model.Data{Kind: model.DataStack, Frame: frame}
	} else if d.Kind == model.DataOtherStack && o.tid == o.process.pid {
		d = model.Data{Kind: model.DataStack, Frame: -1}
	}
	if d.Kind == model.DataStack {
		return &d // named by the record's own stack
	}
	key := dataKey{kind: d.Kind, mapping: d.Mapping, name: d.Name, address: d.Address}
	if o.block > 0 {
		key.process, key.site = o.process, s.stacks.of[o.block-1]
		d = model.Data{Kind: model.DataBlock}
		key.kind = d.Kind
	}
	if dt[key] == nil {
		if o.block > 0 {
			d.Site = locations.stack(o.process, s.stacks.stack(o.block-1))
		}
		dt[key] = &d
	}
	return dt[key]
}

// loadedAt turns an address of the process into one of the file.
func (m *mapping) loadedAt(addr uint64) (uint64, bool) {
	loads := m.file.Loads()
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
