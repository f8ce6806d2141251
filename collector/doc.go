// Package collector runs one profiling session: it follows the threads of the
// target as they come and go, arms a watchpoint for every sample that wins
// one, pairs each use with its reuse and counts everything that is lost on
// the way. Its product is a model.Profile without symbols.
//
// What samples belongs to the tracing thread: each part of a Session holds its own fields
// (targets, holds, watches, observations, timing, ticks, source, account), and the session's
// own loop reaches them only through Tracer.Do, so that nothing is locked and a held thread
// waits for no one. Stacks are unwound, threads' touches merged and the profile made by
// others, of plain data: see callstack, interleave, record and estimate below this folder.
//
// Known bias: samples fall on user-mode CPU time (or accesses, with a PMU), so
// what a thread does in the kernel is not seen; an access that cannot be
// decoded is counted but leaves its instruction underrepresented.
//
// The package is rdx's own and may change.
package collector
