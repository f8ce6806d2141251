package main

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/rdx-profiler/rdx/sampler/objfile"
	"github.com/rdx-profiler/rdx/sampler/operand"
)

// mostCode bounds how much of a program is looked through, and fewestEVEX is how many instructions of
// AVX-512 are more than a misreading.
const (
	mostCode   = 8 << 20
	fewestEVEX = 8
)

// warnEngine says, before a program runs under an engine, what the engine will not run of it: neither valgrind nor
// QEMU has AVX-512. Libraries that have such code look for it first; a program built for this processor may not.
func warnEngine(w io.Writer, program string) {
	path, err := exec.LookPath(program)
	if err != nil {
		return // which will be said
	}
	if n, in := avx512Code(path); n >= fewestEVEX {
		fmt.Fprintf(w, "rdx: %s has AVX-512 code%s, which the engine does not run: unless it asks first what the processor has, it will end with an illegal instruction; build it without -march=native, or with -mno-avx512f\n", program, in)
	}
}

// avx512Code counts the instructions of a program that only AVX-512 has, and says where the first is.
func avx512Code(path string) (n int, in string) {
	if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() {
		return 0, "" // which will be said, too; to open a pipe is to wait
	}
	r, err := os.Open(path)
	if err != nil {
		return 0, ""
	}
	defer r.Close()
	f, err := objfile.Open(r)
	if err != nil || f.Machine != elf.EM_X86_64 {
		return 0, ""
	}
	left := mostCode
	symbols, _ := f.Symbols() // a stripped program has none
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Size == 0 || s.Size > uint64(left) || int(s.Section) >= len(f.Sections) {
			continue
		}
		section := f.Sections[s.Section]
		code := make([]byte, s.Size)
		if s.Value < section.Addr || section.Flags&elf.SHF_EXECINSTR == 0 {
			continue
		}
		if _, err := section.ReadAt(code, int64(s.Value-section.Addr)); err != nil {
			continue
		}
		left -= len(code)
		if here := countEVEX(code); here > 0 {
			if n += here; in == "" {
				in = " (in " + s.Name + ")"
			}
		}
	}
	if text := f.Section(".text"); len(symbols) == 0 && text != nil {
		if code, err := objfile.Section(text, 1<<32); err == nil {
			n = countEVEX(code[:min(len(code), mostCode)])
		}
	}
	return n, in
}

// countEVEX reads instructions one after the other; what it does not know it steps over byte by byte.
func countEVEX(code []byte) (n int) {
	const evex = 0x62
	for at := 0; at < len(code); {
		inst, err := operand.DecodeX86(code[at:])
		if err != nil || inst.Len == 0 {
			at++
			continue
		}
		if code[at] == evex {
			n++
		}
		at += int(inst.Len)
	}
	return n
}
