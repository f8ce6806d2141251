package pprofout

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// An image is an ELF file and, where there is one, its separate debug file.
type image struct {
	elf   *elf.File
	debug *debugFile // nil if there is none
	mini  *elf.File  // of .gnu_debugdata, nil likewise
	noted error      // what could not be read of them

	names []string // of the file and of its debug file

	static    []objfile.Symbol // see objects
	hasStatic bool
	variables *debugSource // see assigned

	debugRoots []debugRoot
}

func openImage(r io.ReaderAt, m *model.Mapping, debugRoots []debugRoot) (*image, error) {
	f, err := objfile.Open(r)
	if err != nil {
		return nil, err
	}
	id, err := objfile.BuildID(f)
	if err != nil && !errors.Is(err, objfile.ErrNoBuildID) {
		return nil, err
	}
	// A file that was replaced while the target ran would give wrong names.
	if m.BuildID != "" && id != "" && id != m.BuildID {
		return nil, fmt.Errorf("build ID is %s, the target's is %s: the file was replaced since it was mapped", id, m.BuildID)
	}
	img := &image{elf: f, names: []string{m.File}, debugRoots: debugRoots}
	if f.Section(".debug_info") == nil && f.Section(".zdebug_info") == nil {
		if img.debug = findDebugFile(f, id, m.File, debugRoots); img.debug != nil {
			img.names = append(img.names, img.debug.name)
		}
		if img.mini, img.noted = miniDebug(f); img.noted != nil {
			img.noted = fmt.Errorf(".gnu_debugdata: %w", img.noted)
		}
	}
	return img, nil
}

// vaddr turns an address of the target into one of the file: by way of the
// file offset, which mapping and program header both know. The distance
// between the two addresses alone would do only if every segment were mapped
// at the same distance from its offset.
func (img *image) vaddr(m *model.Mapping, addr uint64) (uint64, bool) {
	if addr < m.Start || addr >= m.Limit {
		return 0, false
	}
	off := addr - m.Start + m.Offset
	// Segments share pages of the file at their edges; code is in executable ones.
	for _, flags := range []elf.ProgFlag{elf.PF_X, 0} {
		for _, p := range img.elf.Progs {
			if p.Type == elf.PT_LOAD && p.Flags&flags == flags && off >= p.Off && off-p.Off < p.Filesz {
				return off - p.Off + p.Vaddr, true
			}
		}
	}
	return 0, false
}

// lookup finds the lines of sorted addresses of the file. The error tells of
// sources that could not be used; what was found is valid beside it.
func (img *image) lookup(pcs []uint64) (map[uint64][]model.Line, error) {
	found := map[uint64][]model.Line{}
	errs := []error{img.noted}
	left := func() []uint64 {
		var rest []uint64
		for _, pc := range pcs {
			if l := found[pc]; len(l) == 0 || l[len(l)-1].Function == "" {
				rest = append(rest, pc)
			}
		}
		return rest
	}

	files := []*elf.File{img.elf}
	if img.debug != nil {
		files = []*elf.File{img.debug.elf, img.elf}
	}
	for _, f := range files {
		if rest := left(); len(rest) > 0 {
			if err := lookupDWARF(&debugSource{elf: f, names: img.names, debugRoots: img.debugRoots}, rest, found); err != nil {
				errs = append(errs, fmt.Errorf("DWARF: %w", err))
			}
		}
	}
	if rest := left(); len(rest) > 0 {
		if err := lookupPCLN(img.elf, rest, found); err != nil {
			errs = append(errs, fmt.Errorf("pclntab: %w", err))
		}
	}
	if img.mini != nil {
		files = append(files, img.mini)
	}
	for _, f := range files {
		for _, table := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
			rest := left()
			if len(rest) == 0 {
				break
			}
			syms, err := objfile.Symbols(f, table, mostSymbols)
			if err != nil {
				errs = append(errs, fmt.Errorf("symbols: %w", err))
			}
			lookupSymbols(f, syms, rest, found)
		}
	}
	if n := len(left()); n > 0 {
		errs = append(errs, noNames("%d addresses without a name: no symbol covers them; %s", n, img.remedy()))
		for pc, l := range found {
			if l[len(l)-1].Function == "" {
				delete(found, pc) // a line without a function is no frame
			}
		}
	}
	return found, errors.Join(errs...)
}

// remedy is what to do about code that no symbol covers.
func (img *image) remedy() string {
	if img.names[0] == "[vdso]" {
		return "the kernel's own code names no more than its entries, see who calls it"
	}
	return "install its debug package, build with -g, or let pprof symbolize later"
}
