//go:build !unix

package pprofout

import "time"

var started = time.Now()

// processTime is how long this process has run, where its CPU time can't be asked for.
func processTime() time.Duration { return time.Since(started) }
