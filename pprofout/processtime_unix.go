//go:build unix

package pprofout

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTime is the CPU time of this process.
func processTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano())
}
