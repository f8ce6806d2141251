package ptrace

import "golang.org/x/sys/unix"

// resume lets a stopped thread run on, with the signal if it is not 0.
func resume(tid int, signal unix.Signal) error { return unix.PtraceCont(tid, int(signal)) }

// steppedIntoHandler is never true: see resume_arm64.go.
func steppedIntoHandler(int, unix.Signal) bool { return false }
