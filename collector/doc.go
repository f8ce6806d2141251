// Package collector runs one profiling session: it follows the threads of the
// target as they come and go, arms a watchpoint for every sample that wins
// one, pairs each use with its reuse and counts everything that is lost on
// the way. Its product is a model.Profile without symbols.
//
// What samples belongs to the tracing thread: sampling has a part for each thing it keeps
// (targets, the handler of their stops, traps, holds, watches, observations, timing, ticks,
// source, prober, account and some smaller ones), each of which alone writes its own fields, and a
// Session has only traced of it as long as a thread is traced, so that a held thread
// waits for no lock. Stacks are unwound, threads' touches merged and the
// profile made aside, of plain data that was handed over: see callstack, interleave, record
// and estimate below this folder.
//
// Known bias: samples fall on user-mode CPU time (or accesses, with a PMU), so
// what a thread does in the kernel is not seen; an access that cannot be
// decoded is counted but leaves its instruction underrepresented.
//
// The package is rdx's own and may change.
package collector
