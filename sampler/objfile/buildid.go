package objfile

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
)

// ErrNoBuildID: the file is in order, but was linked without a build ID.
var ErrNoBuildID = errors.New("no build ID")

// BuildID is the GNU build ID of an ELF file in hex, or for lack of it Go's. The error
// is ErrNoBuildID if it has neither.
func BuildID(f *elf.File) (string, error) {
	var goID string
	look := func(data []byte, align uint64) string {
		gnu := ""
		eachNote(f, data, align, func(name string, typ uint32, desc []byte) {
			switch {
			case name == "GNU" && typ == 3 && gnu == "": // NT_GNU_BUILD_ID
				gnu = hex.EncodeToString(desc)
			case name == "Go" && typ == 4: // cmd/internal/buildid
				goID = hex.EncodeToString(desc)
			}
		})
		return gnu
	}
	// Sections first: in a separate debug file the segments are hollow. What
	// was never linked to be a file, such as the vdso, may lack sections.
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOTE {
			continue
		}
		if data, err := Section(s, mostNotes); err == nil {
			if id := look(data, s.Addralign); id != "" {
				return id, nil
			}
		}
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		if data, err := Segment(p, mostNotes); err == nil {
			if id := look(data, p.Align); id != "" {
				return id, nil
			}
		}
	}
	if goID == "" {
		return "", ErrNoBuildID
	}
	return goID, nil
}

// eachNote walks the notes of one section or segment (gabi, "Note Section");
// it stops at the first that is cut off.
func eachNote(f *elf.File, data []byte, align uint64, do func(name string, typ uint32, desc []byte)) {
	if align != 8 {
		align = 4 // also for the 0 and 1 that some linkers write
	}
	pad := func(n uint64) uint64 { return (n + align - 1) &^ (align - 1) }
	for len(data) >= 12 {
		nameLen := uint64(f.ByteOrder.Uint32(data))
		descLen := uint64(f.ByteOrder.Uint32(data[4:]))
		typ := f.ByteOrder.Uint32(data[8:])
		descAt := pad(12 + nameLen)
		if descAt+descLen > uint64(len(data)) {
			return
		}
		name := string(bytes.TrimRight(data[12:12+nameLen], "\x00"))
		do(name, typ, data[descAt:descAt+descLen])
		data = data[min(pad(descAt+descLen), uint64(len(data))):]
	}
}

const mostNotes = 1 << 20
