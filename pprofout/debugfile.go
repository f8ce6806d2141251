package pprofout

import (
	"bytes"
	"debug/elf"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/rdx-profiler/rdx/sampler/objfile"
	"github.com/rdx-profiler/rdx/sampler/safeopen"
)

// A debugFile is a file of debug information that was split off.
type debugFile struct {
	elf  *elf.File
	file *os.File
}

func (d *debugFile) Close() { d.file.Close() }

// findDebugFile looks where gdb does (its manual, "Separate Debug Files"): by
// build ID, then by the name in .gnu_debuglink beside the file, in .debug
// below it and below the debug directories. One that does not belong to the
// file is not taken. nil if there is none.
func findDebugFile(f *elf.File, id, path string, dirs []string) *debugFile {
	if len(id) > 2 {
		for _, dir := range dirs {
			d := openDebugFile(filepath.Join(dir, ".build-id", id[:2], id[2:]+".debug"))
			if d == nil {
				continue
			}
			if got, err := objfile.BuildID(d.elf); err == nil && got == id {
				return d
			}
			d.Close()
		}
	}
	name, sum, ok := debugLink(f)
	if !ok || !filepath.IsAbs(path) {
		return nil
	}
	dir := filepath.Dir(path)
	places := []string{filepath.Join(dir, name), filepath.Join(dir, ".debug", name)}
	for _, d := range dirs {
		places = append(places, filepath.Join(d, dir, name))
	}
	for _, place := range places {
		if place == path {
			continue
		}
		d := openDebugFile(place)
		if d == nil {
			continue
		}
		h := crc32.NewIEEE()
		if _, err := io.Copy(h, io.NewSectionReader(d.file, 0, 1<<62)); err == nil && h.Sum32() == sum {
			return d
		}
		d.Close()
	}
	return nil
}

func openDebugFile(path string) *debugFile {
	root, err := safeopen.Own()
	if err != nil {
		return nil
	}
	defer root.Close()
	file, err := root.Open(path, nil) // the name comes from the target
	if err != nil {
		return nil
	}
	f, err := objfile.Open(file)
	if err != nil {
		file.Close()
		return nil
	}
	return &debugFile{f, file}
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
