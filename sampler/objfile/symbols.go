package objfile

import (
	"bytes"
	"debug/elf"
	"fmt"
	"iter"
)

// Symbol is an entry of a symbol table. Its name is looked up when asked for: names
// may overlap in the file, and be written out to many times its size.
type Symbol struct {
	Value, Size uint64
	Info        byte
	Section     elf.SectionIndex

	name    uint32
	strings []byte
}

// Type of the symbol, such as elf.STT_FUNC.
func (s *Symbol) Type() elf.SymType { return elf.ST_TYPE(s.Info) }

// Bind of the symbol, such as elf.STB_GLOBAL.
func (s *Symbol) Bind() elf.SymBind { return elf.ST_BIND(s.Info) }

// mostName bounds a name, in bytes.
const mostName = 64 << 10

// Name of the symbol, "" if it has none.
func (s *Symbol) Name() string {
	if uint64(s.name) >= uint64(len(s.strings)) {
		return ""
	}
	b := s.strings[s.name:]
	b = b[:min(len(b), mostName)]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// Symbols are those of the table of a kind, elf.SHT_SYMTAB or elf.SHT_DYNSYM; none if the
// file has no such table, which is no error.
func Symbols(f *elf.File, kind elf.SectionType, most uint64) (iter.Seq[Symbol], error) {
	none := func(func(Symbol) bool) {}
	table := f.SectionByType(kind)
	if table == nil {
		return none, nil
	}
	if table.Link == 0 || int(table.Link) >= len(f.Sections) {
		return none, fmt.Errorf("section %s names no section of names", table.Name)
	}
	data, err := Section(table, most)
	if err != nil {
		return none, err
	}
	names, err := Section(f.Sections[table.Link], most)
	if err != nil {
		return none, err
	}
	size := elf.Sym64Size
	if f.Class == elf.ELFCLASS32 {
		size = elf.Sym32Size
	}
	return func(yield func(Symbol) bool) {
		for ; len(data) >= size; data = data[size:] {
			s := Symbol{name: f.ByteOrder.Uint32(data), strings: names}
			if f.Class == elf.ELFCLASS32 {
				s.Value, s.Size = uint64(f.ByteOrder.Uint32(data[4:])), uint64(f.ByteOrder.Uint32(data[8:]))
				s.Info, s.Section = data[12], elf.SectionIndex(f.ByteOrder.Uint16(data[14:]))
			} else {
				s.Info, s.Section = data[4], elf.SectionIndex(f.ByteOrder.Uint16(data[6:]))
				s.Value, s.Size = f.ByteOrder.Uint64(data[8:]), f.ByteOrder.Uint64(data[16:])
			}
			if !yield(s) {
				return
			}
		}
	}, nil
}

// NewSymbol is a symbol of no file.
func NewSymbol(value, size uint64, info byte, section elf.SectionIndex, name string) Symbol {
	return Symbol{Value: value, Size: size, Info: info, Section: section, strings: []byte(name)}
}
