package trace

import (
	"bytes"
	"io"

	"github.com/rdx-profiler/rdx/model"
)

// LackeyReader reads what valgrind --tool=lackey --trace-mem=yes writes:
//
//	I  0401ab73,5    an instruction at 0x401ab73 of 5 bytes
//	 L 1fff0005e8,8  it loads 8 bytes
//	 S 1fff0005e0,8  it stores
//	 M 0421e190,4    it modifies: a load and a store
//
// Each load and store is an access with the PC of the instruction line before
// it, 0 if there was none. Lackey does not tell threads apart: all have number
// 0. Valgrind's own messages (==PID==, --PID--, **PID**) are skipped; what the
// program itself wrote in between is bad lines.
type LackeyReader struct {
	textLines
	access model.Access
	isBad  bool
	store  bool // the store of a modify is still to come
	pc     uint64
}

// NewLackeyReader returns a reader of r; name is for messages.
func NewLackeyReader(r io.Reader, name string) *LackeyReader {
	return &LackeyReader{textLines: newTraceLines(r, name)}
}

// Next implements AccessReader.
func (r *LackeyReader) Next() bool {
	if r.store {
		r.store = false
		r.access.Op = model.Store
		return true
	}
	for {
		line, long, ok := r.next()
		if !ok {
			return false
		}
		kind, addr, size := splitLackey(line)
		r.isBad = false
		switch kind {
		case 0:
			if isValgrindMessage(line) || len(line) == 0 {
				continue
			}
			return r.badLine("not a line of lackey's trace", line)
		case 'I':
			pc, ok := parseHex(addr)
			if _, sized := parseDecimal(size); !ok || !sized || long {
				return r.badLine("not an instruction line", line)
			}
			r.pc = pc
			continue
		}
		a, ok := parseHex(addr)
		if !ok || long {
			return r.badLine("address is not a hexadecimal number of up to 64 bits", line)
		}
		n, ok := parseSize(size)
		if !ok {
			return r.badLine(badSize, line)
		}
		r.access = model.Access{Addr: a, Size: n, PC: r.pc, Op: model.Load}
		if kind == 'S' {
			r.access.Op = model.Store
		}
		if r.access.Wraps() {
			return r.badLine(badEnd, line)
		}
		r.store = kind == 'M'
		return true
	}
}

func (r *LackeyReader) badLine(reason string, line []byte) bool {
	r.fail(reason, line)
	r.isBad = true
	return true
}

// Record implements AccessReader.
func (r *LackeyReader) Record() (*model.Access, *BadLine) {
	if r.isBad {
		return nil, &r.bad
	}
	return &r.access, nil
}

// splitLackey cuts a line into its letter and fields; kind is 0 if it does not
// have the form of a trace line.
func splitLackey(line []byte) (kind byte, addr, size []byte) {
	if len(line) < 4 || line[2] != ' ' {
		return 0, nil, nil
	}
	switch {
	case line[0] == 'I' && line[1] == ' ':
		kind = 'I'
	case line[0] == ' ' && (line[1] == 'L' || line[1] == 'S' || line[1] == 'M'):
		kind = line[1]
	default:
		return 0, nil, nil
	}
	addr, size, _ = bytes.Cut(line[3:], []byte{','})
	return kind, addr, size
}

func isValgrindMessage(line []byte) bool {
	if len(line) < 5 {
		return false
	}
	mark := line[:2]
	switch string(mark) {
	case "==", "--", "**":
	default:
		return false
	}
	pid, _, ok := bytes.Cut(line[2:], mark)
	if !ok {
		return false
	}
	_, ok = parseDecimal(pid)
	return ok
}

// looksLikeLackey tells by the first line that is not empty.
func looksLikeLackey(head []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, "\r\n"), []byte{'\n'})
	line = bytes.TrimRight(line, "\r")
	if isValgrindMessage(line) {
		return true
	}
	kind, addr, size := splitLackey(line)
	_, isHex := parseHex(addr)
	_, isSize := parseDecimal(size)
	return kind != 0 && isHex && isSize
}
