// Package objfile reads the ELF files of programs that are profiled. They are input like
// any other: whoever built the program, or the image of its container, may have put
// anything in them. What a file says of its own sizes is believed only as far as there
// are bytes, and what is decompressed is bounded by what it is made of.
//
// The package is rdx's own and may change.
package objfile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
)

// Open reads the headers of an ELF file. A damaged one gives an error, where
// elf.NewFile may panic.
func Open(r io.ReaderAt) (f *elf.File, err error) {
	defer func() {
		if e := recover(); e != nil {
			f, err = nil, fmt.Errorf("damaged ELF file: %v", e)
		}
	}()
	m := &meter{r: r, left: mostHeaders}
	if f, err = elf.NewFile(m); err != nil {
		return nil, err
	}
	m.left = -1
	return f, nil
}

// mostHeaders bounds what is read to open a file: names of sections, mostly.
const mostHeaders = 64 << 20

// meter reads no more than some bytes in all.
type meter struct {
	r    io.ReaderAt
	left int64 // < 0: as many as there are
}

func (m *meter) ReadAt(b []byte, off int64) (int, error) {
	if m.left >= 0 {
		if m.left -= int64(len(b)); m.left < 0 {
			m.left = 0
			return 0, errors.New("headers too large")
		}
	}
	return m.r.ReadAt(b, off)
}

const (
	// expansion and expansionBase bound what a compressed section may become: debug information
	// shrinks to a third, seldom to a tenth.
	expansion     = 64
	expansionBase = 16 << 20
)

// Section is the content of a section, decompressed if need be, of at most so many
// bytes. One without bytes in the file (SHT_NOBITS) is an error.
func Section(s *elf.Section, most uint64) ([]byte, error) {
	if s.Type == elf.SHT_NOBITS {
		return nil, fmt.Errorf("section %s has no bytes in the file", s.Name)
	}
	if s.Flags&elf.SHF_COMPRESSED == 0 {
		return content(s, s.Size, most, "section "+s.Name)
	}
	if s.Size > most || s.Size > expansionBase+expansion*min(s.FileSize, most) {
		return nil, fmt.Errorf("section %s of %d bytes claims to be %d when decompressed", s.Name, s.FileSize, s.Size)
	}
	packed, err := unpacking(s, most)
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", s.Name, err)
	}
	data := make([]byte, 0, min(s.Size, 1<<20))
	r := io.LimitReader(packed, int64(s.Size))
	for uint64(len(data)) < s.Size {
		if len(data) == cap(data) { // by large steps: what is copied is garbage
			data = append(make([]byte, 0, min(s.Size, max(expansionBase, 2*uint64(cap(data))))), data...)
		}
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) && uint64(len(data)) < s.Size {
			err = io.ErrUnexpectedEOF
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("section %s: %w", s.Name, err)
		}
	}
	return data, nil
}

// unpacking decompresses a section. Of zlib's form, as nearly all have, debug/elf would take half as long again.
func unpacking(s *elf.Section, most uint64) (io.Reader, error) {
	as := *s
	as.Flags &^= elf.SHF_COMPRESSED
	raw, ok := as.Open().(io.ReaderAt)
	if !ok || s.Flags&elf.SHF_ALLOC != 0 { // there can't be any of these
		return s.Open(), nil
	}
	packed, err := content(raw, s.FileSize, most, "section "+s.Name)
	if err != nil {
		return nil, err
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		const header32, header64 = 12, 24 // elf.Chdr32, elf.Chdr64
		switch {
		case len(packed) < header64 || order.Uint32(packed) != uint32(elf.COMPRESS_ZLIB):
		case order.Uint64(packed[8:]) == s.Size:
			return zlib.NewReader(bytes.NewReader(packed[header64:]))
		case uint64(order.Uint32(packed[4:])) == s.Size:
			return zlib.NewReader(bytes.NewReader(packed[header32:]))
		}
	}
	return s.Open(), nil
}

// Segment is what the file has of a segment, of at most so many bytes.
func Segment(p *elf.Prog, most uint64) ([]byte, error) {
	return content(p, p.Filesz, most, "segment "+p.Type.String())
}

// content makes room only when there is a last byte.
func content(r io.ReaderAt, size, most uint64, what string) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	if size > most {
		return nil, fmt.Errorf("%s is of %d bytes, too large", what, size)
	}
	var last [1]byte
	if _, err := r.ReadAt(last[:], int64(size)-1); err != nil {
		return nil, fmt.Errorf("%s, of %d bytes, is cut off: %w", what, size, err)
	}
	data := make([]byte, size)
	if _, err := r.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return data, nil
}
