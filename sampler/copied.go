package sampler

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"github.com/rdx-profiler/rdx/proc"
)

// Copied is how many bytes the kernel has copied or cleared for a process, as far as it says: what it has read and written
// by system calls (rchar and wchar of /proc/PID/io, also where nothing is copied, as to /dev/null), and a page for each
// minor fault (min_flt of /proc/PID/stat, also where one is only mapped, and where a huge one is cleared). What the program copies by itself is not in it. The error of
// a process that is gone is fs.ErrNotExist or ESRCH.
func Copied(pid int) (uint64, error) {
	fail := func(err error) (uint64, error) { return 0, fmt.Errorf("read what process %d copies: %w", pid, err) }
	var b [1024]byte
	io, err := proc.Read(fmt.Sprintf("/proc/%d/io", pid), b[:])
	if err != nil {
		return fail(err)
	}
	transferred, err := transferredOf(io)
	if err != nil {
		return fail(err)
	}
	stat, err := proc.Read(fmt.Sprintf("/proc/%d/stat", pid), b[:])
	if err != nil {
		return fail(err)
	}
	faults, err := faultsOf(stat)
	if err != nil {
		return fail(err)
	}
	return transferred + faults*uint64(os.Getpagesize()), nil
}

// transferredOf is rchar and wchar of /proc/PID/io, see proc_pid_io(5).
func transferredOf(io []byte) (sum uint64, err error) {
	found := 0
	for line := range bytes.Lines(io) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "rchar" && string(name) != "wchar" {
			continue
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("io has %q", line)
		}
		sum += n
		found++
	}
	if found != 2 {
		return 0, fmt.Errorf("io has %q", io)
	}
	return sum, nil
}

// faultsOf is min_flt of /proc/PID/stat, the tenth field, see proc_pid_stat(5).
func faultsOf(stat []byte) (uint64, error) {
	const afterName = 7
	fields := proc.StatFields(stat)
	if len(fields) <= afterName {
		return 0, fmt.Errorf("stat has %q", stat)
	}
	n, err := strconv.ParseUint(string(fields[afterName]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("stat has %q", stat)
	}
	return n, nil
}
