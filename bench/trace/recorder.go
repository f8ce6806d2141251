package main

import (
	"os"
	"path/filepath"
)

// recorder is an rdx and the folder of its engine.
type recorder struct{ rdx, engine string }

// record is the command that records a program into a new file: to truncate the one of
// the run before takes a tenth as long as the recording.
func (r recorder) record(rdt string, extra ...string) func([]string) []string {
	return func(p []string) []string {
		os.Remove(rdt)
		return append(append([]string{r.rdx, "trace", "record", "-q", "--max-size=0", "--engine", r.engine, "-o", rdt}, extra...), append([]string{"--"}, p...)...)
	}
}

// exact is the command that analyses a program while it runs.
func (r recorder) exact(extra ...string) func([]string) []string {
	return func(p []string) []string {
		return append(append([]string{r.rdx, "exact", "--engine", r.engine}, extra...), append([]string{"--"}, p...)...)
	}
}

// alone is the command that runs a program under the engine with nobody to read what it writes.
func (r recorder) alone(extra ...string) func([]string) []string {
	return func(p []string) []string {
		return append(append([]string{filepath.Join(r.engine, "rdx-amd64-linux"), "-q", "--tool=rdx", "--vgdb=no", "--log-file=/dev/null"}, extra...), p...)
	}
}
