// Package sampler is all of rdx that touches the kernel: the access sources
// that interrupt a thread at a random access, the hold that keeps it there
// while it is looked at, the watchpoints that catch the use and the reuse, and
// the clock between them.
//
// Its parts live as long as one profiling session. A Kernel holds the loaded BPF
// programs and the thread table shared with them. A ptrace.Tracer, in a package of its
// own, owns the one OS thread from which all ptrace requests are made. Watchpoints
// belong to a slot of a thread, are armed while it is held and never outlive the
// process that opened them. Package ahead reads what a held thread does next.
//
// Safety rests on four facts of the kernel: a thread seized by ptrace runs on
// when its tracer dies; the signal that holds it is one whose default is to be
// ignored; samples fire in user mode only, so that a hold interrupts no system call;
// perf events vanish with their file descriptors. A running thread is interrupted only
// where that was asked for (Tracer.Interrupt), and of the target's memory only heap
// tracing has anything written: the breakpoints that the kernel puts in place of
// instructions of its allocator (uprobes, see HeapProbes).
//
// The package is rdx's own and may change.
package sampler
