package trace

import (
	"archive/zip"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// Drmemtrace reads an offline trace of DynamoRIO's drmemtrace: a directory of
// one file per thread (or core), or one such file, after post-processing. It is
// a AccessReader.
//
// Files end in .trace, .trace.gz or .trace.zip. Threads are put in order by
// the timestamps in the trace, which come every few thousand instructions:
// between two of them the order of different threads' accesses is not in the
// trace. Accesses are the loads and stores of user mode; prefetches, flushes
// and the kernel's accesses are left out. See docs/reference/trace-formats.md.
type Drmemtrace struct {
	Partial bool // a damaged file ends, the others go on

	streams []*drStream
	current *drStream
	access  model.Access
	err     error
	closers []io.Closer
	counts  drCounts // of streams that have ended
	types   uint64   // bits of all filetypes
	version uint64
	unread  []string // files of the directory that are traces in a form not read
}

var _ AccessReader = (*Drmemtrace)(nil)

// IsDrmemtrace reports whether path is a directory or a file that
// OpenDrmemtrace is meant for.
func IsDrmemtrace(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return err == nil
	}
	if !info.Mode().IsRegular() {
		return false // a pipe, of which what is read here would be gone
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	b := bufio.NewReader(f)
	magic, _ := b.Peek(4)
	if string(magic) == "PK\x03\x04" {
		return true
	}
	if len(magic) >= 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(b)
		if err != nil {
			return false
		}
		b = bufio.NewReader(z)
	}
	head, _ := b.Peek(drEntryBytes)
	return looksLikeDrmemtrace(head)
}

// OpenDrmemtrace opens a trace directory, the one above it that drmemtrace
// makes, or one file. Close must be called.
func OpenDrmemtrace(path string) (*Drmemtrace, error) {
	d := &Drmemtrace{}
	files, err := d.find(path)
	if err == nil {
		for _, f := range files {
			if err = d.open(f); err != nil {
				break
			}
		}
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// drSuffixes are forms of a trace file; only the first drSuffixesRead are read.
var drSuffixes = []string{".trace", ".trace.gz", ".trace.zip", ".memtrace.gz", ".memtrace.sz", ".trace.sz", ".trace.lz4", ".memtrace"}

const drSuffixesRead = 4

func (d *Drmemtrace) find(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	// drmemtrace makes NAME.dir/raw and NAME.dir/trace.
	if sub := filepath.Join(path, "trace"); isDir(sub) {
		path = sub
	}
	names, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	var files []string
	raw := isDir(filepath.Join(path, "raw"))
	for _, n := range names {
		i := slices.IndexFunc(drSuffixes, func(s string) bool { return strings.HasSuffix(n.Name(), s) })
		switch {
		case n.IsDir():
		case i >= 0 && i < drSuffixesRead:
			files = append(files, filepath.Join(path, n.Name()))
		case i >= 0:
			d.unread = append(d.unread, n.Name())
		case strings.Contains(n.Name(), ".raw"):
			raw = true
		}
	}
	switch {
	case len(files) > 0 && len(d.unread) == 0:
		return files, nil
	case len(d.unread) > 0:
		return nil, fmt.Errorf("%s: %s: snappy and lz4 are not read (consider: drmemtrace's -compress gzip or zip, or unpack it to NAME.trace)", path, d.unread[0])
	case raw:
		return nil, fmt.Errorf("%s: a raw drmemtrace trace, which needs the program's binaries to read (consider: drrun -t drmemtrace -indir %s -tool basic_counts, which makes a trace folder)", path, path)
	}
	return nil, fmt.Errorf("%s: no *.trace, *.trace.gz or *.trace.zip in this directory: not a drmemtrace trace", path)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (d *Drmemtrace) open(path string) error {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("open trace: %w", err)
		}
		return fmt.Errorf("open trace: %w (a trace has a file per thread; consider: ulimit -n)", err)
	}
	d.closers = append(d.closers, f)
	r := bufio.NewReaderSize(f, 1<<16)
	magic, _ := r.Peek(4)
	var in io.Reader = r
	switch {
	case string(magic) == "PK\x03\x04":
		if in, err = openZip(f); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	case len(magic) >= 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		if in, err = gzip.NewReader(r); err != nil {
			return fmt.Errorf("%s: read gzip header: %w", path, err)
		}
	}
	d.streams = append(d.streams, newDrStream(in, path))
	return nil
}

// openZip returns the archive's files one after the other: the chunks of a
// trace.
func openZip(f *os.File) (io.Reader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	z, err := zip.NewReader(f, info.Size())
	if err != nil {
		return nil, err
	}
	return &zipChain{files: z.File}, nil
}

type zipChain struct {
	files []*zip.File
	open  io.ReadCloser
}

func (z *zipChain) Read(b []byte) (int, error) {
	for {
		if z.open == nil {
			if len(z.files) == 0 {
				return 0, io.EOF
			}
			r, err := z.files[0].Open()
			if err != nil {
				return 0, fmt.Errorf("%s: %w", z.files[0].Name, err)
			}
			z.open, z.files = r, z.files[1:]
		}
		n, err := z.open.Read(b)
		if err == io.EOF {
			z.open.Close()
			z.open, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Next reads the next access and reports whether there is one.
func (d *Drmemtrace) Next() bool {
	for {
		if d.current == nil {
			if len(d.streams) == 0 || d.err != nil && !d.Partial {
				return false
			}
			// The earliest; of equals the first in the directory.
			d.current = slices.MinFunc(d.streams, func(a, b *drStream) int {
				if a.time < b.time {
					return -1
				} else if a.time > b.time {
					return 1
				}
				return 0
			})
		}
		isTime, err := d.current.read(&d.access)
		switch {
		case err != nil:
			d.end(d.current)
			if err != io.EOF && d.err == nil {
				d.err = err
			}
			d.current = nil
		case isTime:
			d.current = nil
		default:
			return true
		}
	}
}

func (d *Drmemtrace) end(s *drStream) {
	d.counts.prefetches += s.counts.prefetches
	d.counts.kernel += s.counts.kernel
	d.counts.zeroSize += s.counts.zeroSize
	d.types |= s.filetype
	d.version = max(d.version, s.version)
	d.streams = slices.DeleteFunc(d.streams, func(x *drStream) bool { return x == s })
}

// Record returns the access that Next has read. Lines there are none.
func (d *Drmemtrace) Record() (*model.Access, *BadLine) { return &d.access, nil }

// Err is the first error that ended a file, nil at the end of a whole trace.
func (d *Drmemtrace) Err() error { return d.err }

// Notes says what of the trace is not in the accesses. Valid when Next has
// returned false.
func (d *Drmemtrace) Notes() []string {
	var notes []string
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if d.types&drFiltered != 0 {
		add("the trace was filtered when it was taken: accesses that hit its filter cache are not in it")
	}
	if d.types&drWholeSystem != 0 {
		add("the trace is of the whole system: the kernel's accesses are counted too")
	}
	if d.version > drVersionLast {
		add("the trace has version %d of its format, newer than %d: what that added is not known", d.version, drVersionLast)
	}
	if d.counts.kernel > 0 {
		add("%d accesses of the kernel were left out", d.counts.kernel)
	}
	if d.counts.prefetches > 0 {
		add("%d prefetches were left out", d.counts.prefetches)
	}
	if d.counts.zeroSize > 0 {
		add("%d accesses have no size and were taken as of one byte", d.counts.zeroSize)
	}
	return notes
}

// Close closes the files.
func (d *Drmemtrace) Close() {
	for _, c := range d.closers {
		c.Close()
	}
	d.closers = nil
}
