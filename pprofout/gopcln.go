package pprofout

import (
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// lookupPCLN finds functions and lines in the table that the Go runtime needs
// itself and that is therefore there even in stripped programs. It does not
// tell what was inlined: the line is that of the innermost function, the name
// that of the outermost.
func lookupPCLN(f *elf.File, pcs []uint64, found map[uint64][]model.Line) error {
	var table *elf.Section
	for _, s := range f.Sections {
		if strings.HasSuffix(s.Name, ".gopclntab") { // .data.rel.ro.gopclntab in some PIEs
			table = s
		}
	}
	text := f.Section(".text")
	if table == nil || text == nil {
		return nil
	}
	data, err := objfile.Section(table, mostDebug)
	if err != nil {
		return err
	}
	// Offsets in the table are from the start of Go's own code, which is that
	// of the section unless C code was linked in before it.
	start := text.Addr
	if len(data) >= 8 && f.Class == elf.ELFCLASS64 && len(data) >= 32 {
		if v := f.ByteOrder.Uint64(data[24:]); v >= text.Addr && v-text.Addr < text.Size {
			start = v
		}
	}
	if syms, err := objfile.Symbols(f, elf.SHT_SYMTAB, mostSymbols); err == nil {
		for s := range syms {
			if s.Type() != elf.STT_SECTION && s.Name() == "runtime.text" {
				start = s.Value
			}
		}
	}
	if n, ok := functionsOf(data, f.ByteOrder); ok && n > uint64(len(data))/8 {
		return fmt.Errorf("damaged: %d functions in %d bytes", n, len(data))
	}
	tab, err := gosym.NewTable(nil, gosym.NewLineTable(data, start))
	if err != nil {
		return err
	}
	if len(tab.Funcs) == 0 {
		return fmt.Errorf("holds no functions: written by a version of Go that is not known here")
	}
	for _, pc := range pcs {
		file, line, fn := tab.PCToLine(pc)
		if fn == nil || pc >= fn.End {
			continue
		}
		startLine := 0
		if _, n, _ := tab.PCToLine(fn.Entry); n <= line {
			startLine = n
		}
		found[pc] = []model.Line{{Function: fn.Name, SystemName: fn.Name, File: file, Line: line, StartLine: startLine}}
	}
	return nil
}

// functionsOf is how many functions a table says that it has: debug/gosym believes it.
func functionsOf(table []byte, order binary.ByteOrder) (n uint64, ok bool) {
	if len(table) < 16 {
		return 0, false
	}
	switch table[7] { // size of a pointer
	case 4:
		return uint64(order.Uint32(table[8:])), true
	case 8:
		return order.Uint64(table[8:]), true
	}
	return 0, false
}
