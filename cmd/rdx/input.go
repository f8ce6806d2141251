package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// input is a file that is read: named, or standard input for "-". It may be a pipe, of which nothing
// can be read twice: what was peeked at is read again from here.
type input struct {
	*bufio.Reader
	name  string
	file  *os.File // nil for a reader that is no file
	owned bool
	spool *os.File // what a pipe had, if it was asked for
}

// openInput opens it. A name is opened once.
func openInput(path string, stdin io.Reader) (*input, error) {
	if path == "-" {
		f, _ := stdin.(*os.File)
		return &input{Reader: bufio.NewReaderSize(stdin, 1<<16), name: "standard input", file: f}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err == nil && fi.IsDir() {
		f.Close()
		return nil, fmt.Errorf("%s is a directory: name a file in it", path)
	}
	return &input{Reader: bufio.NewReaderSize(f, 1<<16), name: path, file: f, owned: true}, nil
}

// Seekable is the whole input where any part can be read: the file itself, or a copy of what came
// through a pipe. Nothing but peeking may have been done before.
func (in *input) Seekable() (io.ReaderAt, int64, error) {
	if s := in.section(); s != nil {
		return s, s.Size(), nil
	}
	f, err := os.CreateTemp("", "rdx-input-")
	if err != nil {
		return nil, 0, fmt.Errorf("keep what %s has, to read it anywhere: %w", in.name, err)
	}
	os.Remove(f.Name())
	in.spool = f
	n, err := io.Copy(f, in.Reader)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", in.name, err)
	}
	return f, n, nil
}

// section is what a file has, nil of a pipe.
func (in *input) section() *io.SectionReader {
	if in.file == nil {
		return nil
	}
	fi, err := in.file.Stat()
	if err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	// Standard input may stand somewhere else than at its beginning.
	at, err := in.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil
	}
	at -= int64(in.Buffered())
	return io.NewSectionReader(in.file, at, fi.Size()-at)
}

// Close closes what was opened here.
func (in *input) Close() error {
	if in.spool != nil {
		in.spool.Close()
	}
	if in.owned {
		return in.file.Close()
	}
	return nil
}

// loadProfile reads a profile as it was written, of standard input if it is named "-".
func loadProfile(path string) (*model.Profile, error) {
	in, err := openInput(path, os.Stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if s := in.section(); s != nil && s.Size() > 0 {
		return in.profile(s)
	}
	return in.profile(in)
}

// sized is a reader whose size is known, which saves copies of what was read.
type sized struct {
	io.Reader
	size int64
}

func (s sized) Size() int64 { return s.size }

// profile reads one of this input from r.
func (in *input) profile(r io.Reader) (*model.Profile, error) {
	b := bufio.NewReader(r)
	// A recording of rdx trace, which is no profile, is a likely mistake.
	if head, err := b.Peek(len(recordingMagic)); err == nil && bytes.Equal(head, []byte(recordingMagic)) {
		return nil, fmt.Errorf("%s is a recording of rdx trace, not a profile: rdx exact reads it, and with -o makes a profile of it", in.name)
	}
	var all io.Reader = b
	if s, ok := r.(*io.SectionReader); ok {
		all = sized{b, s.Size()}
	}
	p, err := pprofout.Read(all)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	return p, nil
}
