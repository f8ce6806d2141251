package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/rdx-profiler/rdx/model"
)

// AccessReader reads a trace of accesses. A line that cannot be read is a
// record like any other, and it is for the caller to stop there or to count
// it and go on:
//
//	for r.Next() {
//		if access, bad := r.Record(); bad != nil { ... }
//	}
//	if err := r.Err(); err != nil { ... }
type AccessReader interface {
	// Next reads the next record and reports whether there is one.
	Next() bool
	// Record returns the access or the bad line that Next has read; the other
	// is nil. Both are overwritten by Next.
	Record() (*model.Access, *BadLine)
	// Err is the error that ended reading, nil at the end of the trace.
	Err() error
}

// BatchReader is a AccessReader that has its accesses in slices, and no bad
// lines.
type BatchReader interface {
	AccessReader
	// NextBatch returns the next accesses, nil at the end or an error. They are
	// overwritten by the next call.
	NextBatch() []model.Access
}

// BadLine is a line of a trace that is not an access.
type BadLine struct {
	Name   string // of the trace
	Line   int    // from 1
	Reason string
	Text   string // the line, cut if it is long
}

func (b *BadLine) Error() string {
	return fmt.Sprintf("%s:%d: %s: %q", b.Name, b.Line, b.Reason, b.Text)
}

const (
	maxLine = 4096 // bytes; longer lines are bad
	maxText = 60   // of a bad line that are kept
	// maxAccessSize bounds what one line can claim. The largest accesses of
	// any instruction (saving all registers) are some kilobytes.
	maxAccessSize = 1 << 20
)

// OpenText returns a reader for the format of the trace, which it tells from
// the beginning: valgrind's lackey (see LackeyReader) or addresses, one a line
// (see PlainReader), either of them compressed by gzip or not. name is for
// messages. An empty trace has no format and no accesses.
func OpenText(r io.Reader, name string) (AccessReader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	if magic, err := b.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("%s: read gzip header: %w", name, truncated(err))
		}
		b = bufio.NewReaderSize(z, 1<<16)
	}
	// An error of Peek will come again when the lines are read.
	head, _ := b.Peek(maxLine)
	if err := notText(head); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if looksLikeLackey(head) {
		return NewLackeyReader(b, name), nil
	}
	return NewPlainReader(b, name), nil
}

// packers are how files of compressors begin that are not unpacked here, and what unpacks them.
var packers = []struct{ magic, tool string }{
	{"\xfd7zXZ\x00", "xz"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"BZh", "bzip2"}, {"\x04\x22\x4d\x18", "lz4"}, {"\x1f\x8b", "gzip"},
}

// notText says what a file that begins like this is, if it cannot be a trace in text.
func notText(head []byte) error {
	for _, p := range packers {
		if bytes.HasPrefix(head, []byte(p.magic)) {
			return fmt.Errorf("compressed by %s, which is not read here (consider: %s -dc FILE | rdx exact -)", p.tool, p.tool)
		}
	}
	if bytes.HasPrefix(head, []byte(fileMagic)) {
		return errors.New("a recording that was compressed: it is read at several places at once (consider: gzip -d FILE)")
	}
	head = head[:min(len(head), 512)]
	odd := 0
	for _, c := range head {
		if c < ' ' && !bytes.ContainsRune([]byte("\t\n\r\f\v"), rune(c)) || c >= 0x7f {
			odd++
		}
	}
	if len(head) > 3 && head[0] == 0x0a && head[2] == 0x08 { // pprof's first field is a sample type, which begins with its number
		return errors.New("a profile, not a trace: rdx top, mrc and others read it")
	}
	if len(head) > 0 && 4*odd > len(head) {
		return errors.New("neither text nor a recording: a trace is what rdx trace record or lackey writes, or one access a line")
	}
	return nil
}

// truncated makes plain what an early end of a compressed file means.
func truncated(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w (the file is truncated)", io.ErrUnexpectedEOF)
	}
	return err
}

// ReadAccesses fills buf with the next accesses of a trace and returns how
// many there were; err is io.EOF when the trace ends before buf is full. bad
// is called with each bad line; if it returns an error reading stops with that.
func ReadAccesses(r AccessReader, buf []model.Access, bad func(*BadLine) error) (n int, err error) {
	for n < len(buf) {
		if !r.Next() {
			if err := r.Err(); err != nil {
				return n, err
			}
			return n, io.EOF
		}
		a, b := r.Record()
		if b != nil {
			if err := bad(b); err != nil {
				return n, err
			}
			continue
		}
		buf[n] = *a
		n++
	}
	return n, nil
}

// textLines reads a text line by line. It is what the readers have in common.
type textLines struct {
	name string
	r    *bufio.Reader
	n    int // number of the line read last
	err  error
	bad  BadLine
}

func newTraceLines(r io.Reader, name string) textLines {
	b, ok := r.(*bufio.Reader)
	if !ok || b.Size() < maxLine {
		b = bufio.NewReaderSize(r, 1<<16)
	}
	return textLines{name: name, r: b}
}

// next returns the next line without its end, and whether it is too long to be
// whole; ok is false at the end or at an error.
func (l *textLines) next() (line []byte, long, ok bool) {
	if l.err != nil {
		return nil, false, false
	}
	line, err := l.r.ReadSlice('\n')
	for err == bufio.ErrBufferFull {
		long = true
		line = append([]byte(nil), line[:maxLine]...)
		_, err = l.r.ReadSlice('\n')
	}
	if err != nil {
		l.err = err
		if err != io.EOF {
			// A last line that was cut short is no line.
			return nil, false, false
		}
		if len(line) == 0 {
			return nil, false, false
		}
	}
	l.n++
	line = bytes.TrimRight(line, "\r\n")
	return line, long || len(line) > maxLine, true
}

func (l *textLines) fail(reason string, line []byte) *BadLine {
	text := string(line[:min(len(line), maxText)])
	l.bad = BadLine{Name: l.name, Line: l.n, Reason: reason, Text: text}
	return &l.bad
}

// Err implements AccessReader.
func (l *textLines) Err() error {
	if l.err == nil || l.err == io.EOF {
		return nil
	}
	return fmt.Errorf("%s: after line %d: %w", l.name, l.n, truncated(l.err))
}

// parseHex and parseDecimal read all of s; ok is false if it is not a number
// of that kind or does not fit into 64 bits.
func parseHex(s []byte) (x uint64, ok bool) {
	if len(s) == 0 {
		return 0, false
	}
	for _, c := range s {
		if x >= 1<<60 {
			return 0, false
		}
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		x = x<<4 | uint64(c)
	}
	return x, true
}

func parseDecimal(s []byte) (x uint64, ok bool) {
	if len(s) == 0 {
		return 0, false
	}
	for _, c := range s {
		d := uint64(c - '0')
		if c < '0' || c > '9' || x > (1<<64-1)/10 || x*10 > 1<<64-1-d {
			return 0, false
		}
		x = x*10 + d
	}
	return x, true
}

// parseSize reads a number of bytes that one access can have.
func parseSize(s []byte) (uint32, bool) {
	n, ok := parseDecimal(s)
	return uint32(n), ok && n >= 1 && n <= maxAccessSize
}

const (
	badSize = "size is not a number from 1 to 1048576"
	badEnd  = "the access goes past the end of the address space"
)
