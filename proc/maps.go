package proc

import (
	"bytes"
	"fmt"
	"iter"
	"os"

	"golang.org/x/sys/unix"
)

// A Mapping is a line of /proc/PID/maps: memory from Start to before Limit, which has
// the bytes of a file from Offset on.
type Mapping struct {
	Start, Limit, Offset           uint64
	Readable, Writable, Executable bool
	Device, Inode                  uint64 // as unix.Stat_t has them; Inode 0: of no file
	// Name is the file's path, with " (deleted)" behind it if it has none any more, or
	// [heap], [stack] and the like, or empty. It is part of what was read.
	Name []byte
}

// ReadMappings reads /proc/PID/maps, for Mappings. Of a process that has ended it is empty.
func ReadMappings(pid int) ([]byte, error) {
	return os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
}

// Mappings are those in what ReadMappings has read, in order. A line that is none is passed over.
func Mappings(maps []byte) iter.Seq[Mapping] {
	return func(yield func(Mapping) bool) {
		for line := range bytes.Lines(maps) {
			if m, ok := parseMapping(line); ok && !yield(m) {
				return
			}
		}
	}
}

// parseMapping parses "start-limit perms offset major:minor inode   name".
func parseMapping(line []byte) (m Mapping, ok bool) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	var perms []byte
	if m.Start, line, ok = number(line, 16, '-'); !ok {
		return m, false
	}
	if m.Limit, line, ok = number(line, 16, ' '); !ok {
		return m, false
	}
	if perms, line, ok = bytes.Cut(line, []byte(" ")); !ok || len(perms) < 4 {
		return m, false
	}
	m.Readable, m.Writable, m.Executable = perms[0] == 'r', perms[1] == 'w', perms[2] == 'x'
	if m.Offset, line, ok = number(line, 16, ' '); !ok {
		return m, false
	}
	var major, minor uint64
	if major, line, ok = number(line, 16, ':'); !ok {
		return m, false
	}
	if minor, line, ok = number(line, 16, ' '); !ok {
		return m, false
	}
	m.Device = unix.Mkdev(uint32(major), uint32(minor))
	if m.Inode, line, ok = number(line, 10, ' '); !ok {
		return m, false
	}
	m.Name = bytes.TrimLeft(line, " ")
	return m, true
}

// number reads a number, and what is behind the character after it, which may be the end.
func number(b []byte, base uint64, after byte) (n uint64, rest []byte, ok bool) {
	for i, c := range b {
		var digit uint64
		switch {
		case '0' <= c && c <= '9':
			digit = uint64(c - '0')
		case base == 16 && 'a' <= c && c <= 'f':
			digit = uint64(c - 'a' + 10)
		default:
			return n, b[i+1:], i > 0 && c == after
		}
		if n > (1<<64-1-digit)/base {
			return 0, nil, false
		}
		n = n*base + digit
	}
	return n, nil, len(b) > 0 && after == ' '
}
