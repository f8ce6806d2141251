// Package clock reads the clock that the kernel stamps events with.
//
// The package is rdx's own and may change.
package clock

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic is the time by CLOCK_MONOTONIC. It is read as Go does, without a system
// call: while a thread is held it is asked for each page that is read.
func Monotonic() time.Duration { return monotonic.at + time.Since(monotonic.start) }

var monotonic = alignMonotonic()

// aligned is a moment by Go's clock and by the kernel's, which run alike.
type aligned struct {
	start time.Time
	at    time.Duration
}

// alignMonotonic has them less than a microsecond apart, if one of the attempts is not disturbed.
func alignMonotonic() (best aligned) {
	const attempts = 16
	for shortest, n := time.Duration(math.MaxInt64), 0; n < attempts; n++ {
		var ts unix.Timespec
		start := time.Now()
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
		if elapsed := time.Since(start); elapsed < shortest {
			shortest, best = elapsed, aligned{start, time.Duration(ts.Nano()) - elapsed/2}
		}
	}
	return best
}
