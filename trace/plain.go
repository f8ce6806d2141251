package trace

import (
	"bytes"
	"io"

	"github.com/rdx-profiler/rdx/model"
)

// PlainReader reads accesses one a line, as up to five fields separated by
// blanks or commas:
//
//	address [R|W] [size [thread [pc]]]
//
// Numbers are decimal, or hexadecimal after 0x. R, L, READ and LOAD (in any
// case) are loads, W, S, WRITE and STORE stores; without that field the
// direction is unknown. The size is in bytes, 1 if left out. Empty lines and what follows a
// # are skipped.
type PlainReader struct {
	textLines
	access model.Access
	isBad  bool
}

// NewPlainReader returns a reader of r; name is for messages.
func NewPlainReader(r io.Reader, name string) *PlainReader {
	return &PlainReader{textLines: newTraceLines(r, name)}
}

// Next implements AccessReader.
func (r *PlainReader) Next() bool {
	for {
		line, long, ok := r.next()
		if !ok {
			return false
		}
		r.isBad = false
		if long {
			return r.badLine("line is too long", line)
		}
		text, _, _ := bytes.Cut(line, []byte{'#'})
		field, rest := cutField(text)
		if len(field) == 0 {
			if len(rest) > 0 {
				return r.badLine("no address", line)
			}
			continue
		}
		if reason := r.parse(field, rest); reason != "" {
			return r.badLine(reason, line)
		}
		return true
	}
}

// parse sets r.access from the fields of a line, or says what is wrong.
func (r *PlainReader) parse(address, rest []byte) string {
	a := model.Access{Size: 1}
	var ok bool
	if a.Addr, ok = parseNumber(address); !ok {
		return "address is not a decimal or 0x number of up to 64 bits"
	}
	field, rest := cutField(rest)
	if op, ok := parseOp(field); ok {
		a.Op = op
		field, rest = cutField(rest)
	}
	if len(field) > 0 {
		if a.Size, ok = parseSize(field); !ok {
			if a.Op == model.OpUnknown && (field[0] < '0' || field[0] > '9') {
				return "after the address comes neither R or W nor a size"
			}
			return badSize
		}
		field, rest = cutField(rest)
	}
	if len(field) > 0 {
		n, ok := parseDecimal(field)
		if !ok || n > 1<<31-1 {
			return "thread is not a number from 0 to 2147483647"
		}
		a.Thread = int32(n)
		field, rest = cutField(rest)
	}
	if len(field) > 0 {
		if a.PC, ok = parseNumber(field); !ok {
			return "pc is not a decimal or 0x number of up to 64 bits"
		}
		field, rest = cutField(rest)
	}
	if len(field) > 0 || len(rest) > 0 {
		return "more than the fields address, R or W, size, thread, pc"
	}
	if a.Wraps() {
		return badEnd
	}
	r.access = a
	return ""
}

func (r *PlainReader) badLine(reason string, line []byte) bool {
	r.fail(reason, line)
	r.isBad = true
	return true
}

// Record implements AccessReader.
func (r *PlainReader) Record() (*model.Access, *BadLine) {
	if r.isBad {
		return nil, &r.bad
	}
	return &r.access, nil
}

// cutField splits off the first field. A comma ends a field, with blanks
// around it or not, so that two make an empty one.
func cutField(s []byte) (field, rest []byte) {
	s = bytes.TrimLeft(s, " \t")
	end := 0
	for end < len(s) && s[end] != ' ' && s[end] != '\t' && s[end] != ',' {
		end++
	}
	field, rest = s[:end], bytes.TrimLeft(s[end:], " \t")
	if len(rest) > 0 && rest[0] == ',' {
		rest = bytes.TrimLeft(rest[1:], " \t")
		if len(rest) == 0 {
			rest = []byte{','} // a comma with nothing after it
		}
	}
	return field, rest
}

func parseNumber(s []byte) (uint64, bool) {
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		return parseHex(s[2:])
	}
	return parseDecimal(s)
}

func parseOp(s []byte) (model.Op, bool) {
	switch string(bytes.ToUpper(s)) {
	case "R", "L", "LOAD", "READ":
		return model.Load, true
	case "W", "S", "STORE", "WRITE":
		return model.Store, true
	}
	return model.OpUnknown, false
}
