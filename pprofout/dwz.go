package pprofout

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// An alternate is a file of debug information that several share: dwz moves there what is the same in them (DWARF 5,
// section 7.3.6, "supplementary object file").
type alternate struct {
	data *dwarf.Data
	str  []byte
}

// alternate reads the file that .gnu_debugaltlink names, once: by its name, or by its build ID, which it must have.
func (s *debugSource) alternate() (*alternate, error) {
	if !s.lookedForAlt {
		s.lookedForAlt = true
		s.alt, s.noAlt = s.findAlternate()
	}
	return s.alt, s.noAlt
}

func (s *debugSource) findAlternate() (*alternate, error) {
	sec := s.elf.Section(".gnu_debugaltlink")
	if sec == nil {
		return nil, errors.New("no .gnu_debugaltlink")
	}
	link, err := objfile.Section(sec, 1<<16)
	if err != nil {
		return nil, err
	}
	name, id, ok := bytes.Cut(link, []byte{0})
	if !ok || len(id) < 2 {
		return nil, errors.New("damaged .gnu_debugaltlink")
	}
	want := hex.EncodeToString(id)
	names := []string{filepath.Join(debugDir, ".build-id", want[:2], want[2:]+".debug")}
	if filepath.IsAbs(string(name)) {
		names = append(names, string(name))
	} else {
		for _, from := range s.names {
			names = append(names, filepath.Join(filepath.Dir(from), string(name)))
		}
	}
	for _, in := range s.debugRoots {
		for _, n := range names {
			r, err := in.Open(n)
			if err != nil {
				continue
			}
			f, err := objfile.Open(r)
			if err != nil {
				continue
			}
			if got, err := objfile.BuildID(f); err != nil || got != want {
				continue
			}
			return readAlternate(f, s.limit)
		}
	}
	return nil, fmt.Errorf("the file that it shares debug information with, %s, is not there", name)
}

func readAlternate(f *elf.File, limit *timeLimit) (*alternate, error) {
	src := debugSource{elf: f, limit: limit}
	if err := src.load(); err != nil {
		return nil, err
	}
	if src.data == nil {
		return nil, errors.New("the file that it shares debug information with has none")
	}
	limit.allow(uint64(len(src.sections["info"])))
	return &alternate{src.data, src.sections["str"]}, nil
}

// text is a string of the shared file.
func (a *alternate) text(off uint64) string {
	if off >= uint64(len(a.str)) {
		return ""
	}
	s, _, _ := bytes.Cut(a.str[off:], []byte{0})
	return string(s)
}

// offsetIn is the value of an attribute that points into a shared file.
func offsetIn(e *dwarf.Entry, attr dwarf.Attr, class dwarf.Class) (uint64, bool) {
	f := e.AttrField(attr)
	if f == nil || f.Class != class {
		return 0, false
	}
	switch v := f.Val.(type) {
	case int64:
		return uint64(v), true
	case uint32:
		return uint64(v), true
	case uint64:
		return v, true
	}
	return 0, false
}
