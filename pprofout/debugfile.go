package pprofout

import (
	"bytes"
	"debug/elf"
	"hash/crc32"
	"io"
	"path/filepath"

	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// A debugFile is a file of debug information that was split off.
type debugFile struct {
	elf  *elf.File
	file io.ReaderAt
	name string
}

// A debugRoot opens debug files by name: below the target's root, or ours.
type debugRoot interface {
	Open(name string) (io.ReaderAt, error)
}

// debugDir is below which distributions put them.
const debugDir = "/usr/lib/debug"

// findDebugFile looks where gdb does (its manual, "Separate Debug Files"): by
// build ID, then by the name in .gnu_debuglink beside the file, in .debug
// below it and below the debug directory. The target's own root comes first. One that
// does not belong to the file is not taken. nil if there is none.
func findDebugFile(f *elf.File, id, path string, debugRoots []debugRoot) *debugFile {
	for _, in := range debugRoots {
		if len(id) > 2 {
			d := openDebugFile(in, filepath.Join(debugDir, ".build-id", id[:2], id[2:]+".debug"))
			if d == nil {
				continue
			}
			if got, err := objfile.BuildID(d.elf); err == nil && got == id {
				return d
			}
		}
	}
	name, sum, ok := debugLink(f)
	if !ok || !filepath.IsAbs(path) {
		return nil
	}
	dir := filepath.Dir(path)
	for _, in := range debugRoots {
		for _, place := range []string{filepath.Join(dir, name), filepath.Join(dir, ".debug", name), filepath.Join(debugDir, dir, name)} {
			if place == path {
				continue
			}
			d := openDebugFile(in, place)
			if d == nil {
				continue
			}
			h := crc32.NewIEEE()
			if _, err := io.Copy(h, io.NewSectionReader(d.file, 0, mostDebugFile)); err == nil && h.Sum32() == sum {
				return d
			}
		}
	}
	return nil
}

// mostDebugFile is how much is read of a file to see whether it belongs to another.
const mostDebugFile = 8 << 30

func openDebugFile(in debugRoot, path string) *debugFile {
	file, err := in.Open(path) // the name comes from the target
	if err != nil {
		return nil
	}
	f, err := objfile.Open(file)
	if err != nil {
		return nil
	}
	return &debugFile{f, file, path}
}

// debugLink reads .gnu_debuglink: a file name, zeros up to a multiple of
// four, a CRC-32.
func debugLink(f *elf.File) (name string, sum uint32, ok bool) {
	s := f.Section(".gnu_debuglink")
	if s == nil {
		return "", 0, false
	}
	data, err := objfile.Section(s, 1<<16)
	if err != nil {
		return "", 0, false
	}
	n := bytes.IndexByte(data, 0)
	at := (n + 4) &^ 3
	if n <= 0 || at+4 > len(data) || bytes.ContainsRune(data[:n], '/') {
		return "", 0, false
	}
	return string(data[:n]), f.ByteOrder.Uint32(data[at:]), true
}
