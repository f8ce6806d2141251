package pprofout

import (
	"debug/elf"
	"fmt"

	"github.com/rdx-profiler/rdx/sampler/objfile"
)

type elfFile = elf.File

// oneSection is a file of code alone.
func oneSection() *elf.File {
	code := &elf.Section{SectionHeader: elf.SectionHeader{Name: ".text", Type: elf.SHT_PROGBITS, Flags: elf.SHF_EXECINSTR, Addr: 0x1000, Size: 1 << 40}}
	return &elf.File{Sections: []*elf.Section{{}, code}}
}

func namedSymbol(at, size uint64, i int) objfile.Symbol {
	return objfile.NewSymbol(at, size, byte(elf.STT_FUNC)|byte(elf.STB_GLOBAL)<<4, 1, fmt.Sprintf("f%d", i))
}
