package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Resident is how much memory a process has resident, in bytes; ok is false if that can't be read.
func Resident(pid int) (n int64, ok bool) {
	var b [128]byte
	text, err := Read(fmt.Sprintf("/proc/%d/statm", pid), b[:])
	if err != nil {
		return 0, false
	}
	const resident = 1 // of its fields, see proc(5)
	fields := bytes.Fields(text)
	if len(fields) <= resident {
		return 0, false
	}
	pages, err := strconv.ParseInt(string(fields[resident]), 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}
