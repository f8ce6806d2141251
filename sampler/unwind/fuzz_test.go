package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
)

// A file of the target may hold anything: no bytes may do more harm than an
// error. The entries are those of a small file, with bytes replaced.
func FuzzTable(f *testing.F) {
	for _, name := range []string{"/usr/bin/xz", "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1"} {
		if e, err := elf.Open(name); err == nil {
			if b, err := e.Section(".eh_frame").Data(); err == nil {
				f.Add(b[:min(len(b), 2000)], uint64(0x3b90))
			}
			e.Close()
		}
	}
	f.Add([]byte{20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0}, uint64(0x1000))
	f.Fuzz(func(t *testing.T, frames []byte, pc uint64) {
		for _, arch := range []*Arch{AMD64, ARM64} {
			table, err := NewTable(bytes.NewReader(elfWith(arch, frames)), arch)
			if err != nil {
				continue
			}
			pcs := []uint64{pc}
			for _, s := range table.index {
				pcs = append(pcs, s.start, s.end-1)
			}
			s := &Snapshot{Stack: Stack{Base: 0x7000, Data: bytes.Repeat([]byte{0, 0x10, 0, 0, 0, 0, 0, 0}, 64)}}
			for i := range s.Regs.R {
				s.Regs.R[i] = 0x7000 + uint64(i)*8
			}
			w := NewWalker(arch, func(pc uint64) Code { return Code{Table: table, PC: pc, Known: true} })
			for _, pc := range pcs[:min(len(pcs), 20)] {
				s.Regs.PC = pc
				if frames, end := w.Walk(s); len(frames) == 0 || len(frames) > MaxFrames || end >= NumEnds {
					t.Errorf("%d frames, end %d", len(frames), end)
				}
			}
		}
	})
}

// elfWith is an ELF file with an .eh_frame at address 0x2000.
func elfWith(arch *Arch, frames []byte) []byte {
	names := []byte("\x00.eh_frame\x00.shstrtab\x00")
	var b bytes.Buffer
	put := func(v any) { binary.Write(&b, binary.LittleEndian, v) }
	end := uint64(64 + len(frames) + len(names))
	put(elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(arch.machine), Version: uint32(elf.EV_CURRENT),
		Ehsize: 64, Phentsize: 56, Shoff: end, Shentsize: 64, Shnum: 3, Shstrndx: 2,
	})
	b.Write(frames)
	b.Write(names)
	put(elf.Section64{})
	put(elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Addr: 0x2000, Off: 64, Size: uint64(len(frames))})
	put(elf.Section64{Name: 11, Type: uint32(elf.SHT_STRTAB), Off: uint64(64 + len(frames)), Size: uint64(len(names))})
	return b.Bytes()
}
