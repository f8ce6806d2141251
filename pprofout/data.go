package pprofout

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// nameData names the records' data objects: static ones by symbol, those on
// the stack by function. It needs the stacks' lines.
func (s *symbolizer) nameData(p *model.Profile, b Binaries) {
	static := map[*model.Mapping][]*model.Data{}
	s.pointsTo = map[*model.Data]dwarf.Type{}
	var order []*model.Mapping
	name := func(d *model.Data, use []*model.Location) {
		if d == nil || d.Name != "" {
			return
		}
		if d.Kind == model.DataBlock {
			d.Name = d.Describe(allocator(d.Site))
			v, to := s.nameVariable(d.Site, b)
			if v != "" {
				d.Name = v + ", " + d.Name
			}
			if to != nil {
				s.pointsTo[d] = to
			}
			return
		}
		d.Name = d.Describe(functionAt(use, d.Frame))
		if d.Kind == model.DataStatic {
			if static[d.Mapping] == nil {
				order = append(order, d.Mapping)
			}
			static[d.Mapping] = append(static[d.Mapping], d)
		}
	}
	for i := range p.Records {
		name(p.Records[i].Data, p.Records[i].Use)
	}
	for i := range p.Touches {
		name(p.Touches[i].Data, p.Touches[i].Use)
	}
	for i := range p.Moments {
		name(p.Moments[i].Data, p.Moments[i].Stack)
	}
	for _, m := range order {
		if err := s.staticData(m, static[m], b); err != nil {
			s.problem(m.File, fmt.Errorf("data: %w", err))
		}
	}
}

// allocator names the code that allocated a block: the functions that called
// malloc or its kin, the innermost first, with its line.
func allocator(site []*model.Location) string {
	const most = 3
	var names []string
	for i, l := range site {
		function, line := functionAt(site, i), ""
		if len(l.Lines) > 0 {
			function = l.Lines[0].Function
			if f := l.Lines[0]; f.File != "" && len(names) == 0 {
				line = fmt.Sprintf(" %s:%d", path.Base(f.File), f.Line)
			}
		}
		if handsOn(site, i, function) {
			continue
		}
		if names = append(names, function+line); len(names) == most {
			break
		}
	}
	if len(names) == 0 {
		return "an unknown function"
	}
	return strings.Join(names, " < ")
}

// handsOn says whether a frame of an allocation's stack, which has that function, is the allocator itself or a wrapper of it. The
// outermost frame is none: something must be named.
func handsOn(site []*model.Location, i int, function string) bool {
	return i == 0 || allocates(function) && i < len(site)-1
}

// wrappers are functions that only hand a call for memory on: as a block's name they say nothing.
var wrappers = map[string]bool{"malloc": true, "calloc": true, "realloc": true, "xmalloc": true, "xcalloc": true, "xrealloc": true, "xzalloc": true, "xmemdup": true, "xstrdup": true, "strdup": true,
	"zmalloc": true, "zcalloc": true, "zrealloc": true, "ztrymalloc_usable": true, "g_malloc": true, "g_malloc0": true, "g_realloc": true, "g_slice_alloc": true, "PyMem_Malloc": true,
	"PyObject_Malloc": true, "_PyObject_Malloc": true, "PyMem_RawMalloc": true, "_PyMem_RawMalloc": true, "safe_malloc": true, "my_malloc": true, "checked_malloc": true, "emalloc": true, "ecalloc": true,
	"aligned_alloc": true, "posix_memalign": true, "memalign": true, "av_malloc": true, "Allocate": true, "allocate": true, "alloc": true}

// allocates says whether a function is an allocator or a wrapper of one, by its name.
func allocates(function string) bool {
	for _, start := range []string{"operator new", "std::", "void* std::", "__gnu_cxx::", "alloc::", "__rust_alloc", "__rustc", "hashbrown::raw::"} {
		if strings.HasPrefix(function, start) {
			return true
		}
	}
	name, _, _ := strings.Cut(function, "(")
	name, _, _ = strings.Cut(name, "<") // Allocate<double>
	fields := strings.Fields(name)
	return len(fields) > 0 && wrappers[strings.TrimLeft(fields[len(fields)-1], "*&")]
}

// functionAt is the function that has a frame: the outermost of those inlined
// into it. It is not known which frame that is if i is negative.
func functionAt(stack []*model.Location, i int) string {
	if i >= 0 && i < len(stack) {
		l := stack[i]
		if n := len(l.Lines); n > 0 {
			return l.Lines[n-1].Function
		}
		if l.Mapping != nil && l.Mapping.File != "" {
			return fmt.Sprintf("%s+%#x", l.Mapping.File, l.Address-l.Mapping.Start+l.Mapping.Offset)
		}
	}
	return "an unknown function"
}

// staticData names the data of one file by its symbols, or else by section.
func (s *symbolizer) staticData(m *model.Mapping, data []*model.Data, b Binaries) error {
	return s.withImage(m, b, func(img *image) error { return nameData(img, data) })
}

// objects are the symbols of a file's static data, in the order of their addresses.
func (img *image) objects() []objfile.Symbol {
	if img.hasStatic {
		return img.static
	}
	img.hasStatic = true
	files := []*elf.File{img.elf}
	if img.debug != nil {
		files = append(files, img.debug.elf)
	}
	for _, f := range files {
		for _, table := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
			syms, _ := objfile.Symbols(f, table, mostSymbols) // none is no error: the section has a name
			for sym := range syms {
				if sym.Type() == elf.STT_OBJECT && sym.Section != elf.SHN_UNDEF && sym.Size > 0 && sym.Name() != "" {
					img.static = append(img.static, sym)
				}
			}
		}
	}
	slices.SortStableFunc(img.static, func(a, b objfile.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	return img.static
}

func nameData(img *image, data []*model.Data) error {
	objects := img.objects()
	for _, d := range data {
		if name := objectAt(objects, d.Address); name != "" {
			d.Name = name
			continue
		}
		for _, sec := range img.elf.Sections {
			if sec.Flags&elf.SHF_ALLOC != 0 && sec.Flags&elf.SHF_TLS == 0 && d.Address-sec.Addr < sec.Size {
				d.Name = d.Describe("") + " " + sec.Name
			}
		}
	}
	return nil
}

// objectAt is the name of the symbol that holds an address.
func objectAt(objects []objfile.Symbol, addr uint64) string {
	if object, ok := objectOf(objects, addr); ok {
		return display(object.Name())
	}
	return ""
}

// objectOf is the symbol that holds an address, the last to begin.
func objectOf(objects []objfile.Symbol, addr uint64) (_ objfile.Symbol, ok bool) {
	i, _ := slices.BinarySearchFunc(objects, addr+1, func(s objfile.Symbol, addr uint64) int {
		if s.Value < addr {
			return -1
		}
		return 1
	})
	// Objects hold others only in unions of the linker's; look back a little.
	for k := i - 1; k >= 0 && k >= i-8; k-- {
		if addr-objects[k].Value < objects[k].Size {
			return objects[k], true
		}
	}
	return objfile.Symbol{}, false
}
