package web

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"
	"github.com/ianlancetaylor/demangle"

	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// pprofPrograms is what pprof's pages may look into: programs that were profiled, below the roots, by their build IDs. They are asked
// for by names that are no paths.
type pprofPrograms struct {
	source *Source
	known  map[string]*profile.Mapping // with the program's own path
}

// add gives a mapping's program a name.
func (s *pprofPrograms) add(m *profile.Mapping) string {
	base := report.Printable(report.Shorten(filepath.Base(m.File), longestName)) // pprof writes it to the terminal
	name := base
	for n := 2; s.known[name] != nil && s.known[name].File != m.File; n++ {
		name = fmt.Sprintf("%s (%d)", base, n)
	}
	kept := *m
	if s.known[name] == nil {
		s.known[name] = &kept
	}
	return name
}

func (s *pprofPrograms) program(name string) (f interface{ Close() error }, obj *elf.File, read func(b []byte, at int64) (int, error), err error) {
	m := s.known[name]
	if m == nil {
		return nil, nil, nil, fmt.Errorf("%s is no program of the profile", name)
	}
	file, obj, err := s.source.program(name, m.File, m.BuildID)
	if err != nil {
		return nil, nil, nil, err
	}
	return file, obj, file.ReadAt, nil
}

// Open is driver.ObjTool's.
func (s *pprofPrograms) Open(name string, start, limit, offset uint64, _ string) (driver.ObjFile, error) {
	f, obj, _, err := s.program(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &pprofProgram{name: name, start: start, limit: limit, build: s.known[name].BuildID}
	seg := segmentOf(obj, func(p *elf.Prog) bool { return offset < p.Off+p.Filesz && offset+(limit-start) > p.Off })
	if seg == nil {
		return nil, fmt.Errorf("%s has no code at %#x", name, offset)
	}
	p.shift = offset - seg.Off + seg.Vaddr - start
	for _, kind := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		symbols, err := objfile.Symbols(obj, kind, mostSymbols)
		if err != nil {
			continue
		}
		for y := range symbols {
			if y.Type() == elf.STT_FUNC && y.Size > 0 && y.Value >= seg.Vaddr && y.Value-seg.Vaddr < seg.Memsz {
				p.symbols = append(p.symbols, y)
			}
		}
		if len(p.symbols) > 0 {
			break // the other has none that this has not
		}
	}
	return p, nil
}

// Disasm is driver.ObjTool's: instructions from a linked address to another.
func (s *pprofPrograms) Disasm(name string, start, end uint64, _ bool) ([]driver.Inst, error) {
	f, obj, read, err := s.program(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	seg := segmentOf(obj, func(p *elf.Prog) bool { return start >= p.Vaddr && start-p.Vaddr < p.Filesz })
	if seg == nil || end <= start {
		return nil, fmt.Errorf("%s has no code at %#x", name, start)
	}
	code := make([]byte, min(end-start, mostCode, seg.Filesz-(start-seg.Vaddr)))
	n, err := read(code, int64(start-seg.Vaddr+seg.Off))
	if n == 0 {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	list, err := disassemble(obj.Machine, code[:n], start-seg.Vaddr+seg.Off, start, nil)
	if err != nil {
		return nil, err
	}
	out := make([]driver.Inst, len(list))
	for i, x := range list {
		at, err := strconv.ParseUint(x.Offset, 16, 64)
		if err != nil {
			return nil, err
		}
		out[i] = driver.Inst{Addr: at, Text: x.Text}
	}
	return out, nil
}

// pprofProgram is a program at where it was mapped.
type pprofProgram struct {
	name, build         string
	start, limit, shift uint64 // shift is from addresses in memory to linked ones
	symbols             []objfile.Symbol
}

func (p *pprofProgram) Name() string    { return p.name }
func (p *pprofProgram) BuildID() string { return p.build }
func (p *pprofProgram) Close() error    { return nil }

// SourceLine has nothing to say: the profile has said all.
func (p *pprofProgram) SourceLine(uint64) ([]driver.Frame, error) { return nil, nil }

func (p *pprofProgram) ObjAddr(addr uint64) (uint64, error) {
	if addr < p.start || addr > p.limit {
		return 0, fmt.Errorf("%#x is not in %s", addr, p.name)
	}
	return addr + p.shift, nil
}

// mostFound is how many functions a search may find.
const mostFound = 1000

func (p *pprofProgram) Symbols(r *regexp.Regexp, addr uint64) ([]*driver.Sym, error) {
	var out []*driver.Sym
	for _, y := range p.symbols {
		name := demangle.Filter(y.Name(), demangle.NoParams, demangle.NoEnclosingParams)
		if len(out) == mostFound || r != nil && !r.MatchString(name) && !(addr > 0 && y.Value <= addr+p.shift && addr+p.shift-y.Value < y.Size) {
			continue
		}
		out = append(out, &driver.Sym{Name: []string{name}, File: p.name, Start: y.Value, End: y.Value + y.Size - 1})
	}
	return out, nil
}
