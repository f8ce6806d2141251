// Package sampler is all of rdx that touches the kernel: the access sources
// that interrupt a thread at a random access, the hold that keeps it there
// while it is looked at, the watchpoints that catch the use and the reuse, and
// the clock between them.
//
// Its three parts live as long as one profiling session. A Kernel holds the
// loaded BPF programs and the thread table shared with them. A Tracer owns the
// one OS thread from which all ptrace requests are made; it seizes threads and
// calls back when one is held. Watchpoints belong to a slot of a thread, are
// armed while it is held and never outlive the process that opened them.
//
// Safety rests on four facts of the kernel: a thread seized by ptrace runs on
// when its tracer dies; the signal that holds it is one whose default is to be
// ignored; samples fire in user mode only, so no system call is interrupted;
// perf events vanish with their file descriptors. Nothing is ever stepped by ptrace
// (a tracer that dies while single-stepping takes its tracee with it; see Steps), no
// running thread is ever interrupted, and no memory of the target is written.
package sampler
