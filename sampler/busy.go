package sampler

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/rdx-profiler/rdx/proc"
)

// AllBusy says whether more threads want to run at the moment, the calling one not among them, than could if one of so many
// processors were left idle. A thread that may not run everywhere can leave one idle all the same.
func AllBusy(cpus int) (bool, error) {
	var b [128]byte
	avg, err := proc.Read("/proc/loadavg", b[:])
	if err != nil {
		return false, fmt.Errorf("read how many threads run: %w", err)
	}
	running, err := runningOf(avg)
	return running-1 >= cpus, err
}

// runningOf is the number of threads that run or would if they had a processor, of all: the fourth field of
// /proc/loadavg, before the slash, see proc(5).
func runningOf(loadavg []byte) (int, error) {
	fields := bytes.Fields(loadavg)
	if len(fields) < 4 {
		return 0, fmt.Errorf("read how many threads run: /proc/loadavg has %q", loadavg)
	}
	running, _, _ := bytes.Cut(fields[3], []byte("/"))
	n, err := strconv.Atoi(string(running))
	if err != nil {
		return 0, fmt.Errorf("read how many threads run: /proc/loadavg has %q", loadavg)
	}
	return n, nil
}
