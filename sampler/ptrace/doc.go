// Package ptrace holds threads of other processes without harm to them.
//
// A Tracer owns the one OS thread from which all ptrace requests are made. It seizes
// threads, calls its Handler when one is held, and lets it run on as it was: a signal
// that ended a system call has that call made again (mend_amd64.go), and on arm64 a
// watchpoint that the kernel has turned off for one instruction comes back
// (resume_arm64.go).
//
// A thread that is seized runs on when its tracer dies: PTRACE_O_EXITKILL is never set.
// Nothing is ever single-stepped, but for the kernel's own step on arm64: a tracer that
// dies while it steps takes its tracee with it.
//
// The package is rdx's own and may change.
package ptrace
