// Package proc reads what the kernel tells of processes in /proc.
//
// The package is rdx's own and may change.
package proc

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Read reads the beginning of a small file of /proc into b, by a third of the system calls that
// os.ReadFile makes of it: a thread may be held meanwhile.
func Read(name string, b []byte) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, b)
	return b[:max(n, 0)], err
}

// Status reads one field of /proc/PID/status.
func Status(pid int, field string) (string, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "", err
	}
	defer f.Close()
	return statusField(f, field)
}

func statusField(f *os.File, field string) (string, error) {
	s := bufio.NewScanner(f)
	for s.Scan() {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok && name == field {
			return strings.TrimSpace(value), nil
		}
	}
	if err := s.Err(); err != nil { // it may have ended since the file was opened
		return "", err
	}
	return "", fmt.Errorf("read %s: no field %s", f.Name(), field)
}

// StatFields are the fields of a /proc/PID/stat behind the name, the state first: the name may hold anything, but ends in the
// last parenthesis.
func StatFields(stat []byte) [][]byte { return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) }
