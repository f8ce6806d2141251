// Package pprofout writes a model.Profile as a pprof file, reads it back and
// fills in symbols.
//
// One format serves every purpose: go tool pprof and its kin draw it, and rdx
// recomputes everything from it. So the file must stay right under what those
// tools do to it, above all under merging, which adds sample values and keeps
// one copy of equal comments. Only additive values are sample values; means
// and bins are labels.
//
// # Samples
//
// A sample is one (use stack, reuse stack, reuse time bin) of one thread. Its
// locations, leaf first, are
//
//	reuse:        reuse stack, "[reuse of]", use stack
//	invalidated:  stack of the invalidating write, "[invalidation of]", use stack
//	others:       "[censored]", "[cold]", "[pruned]" or "[lost]", use stack
//	a loss count: "[lost: reason]"
//	latency:      use stack; only its latency is not 0, and cycles are shown where they are lost
//
// and its values, in this order,
//
//	observations/count    how often it was seen
//	accesses/count        accesses of the program that these stand for
//	reuses/count          of those, reuses after Kaplan-Meier
//	l1d_misses/count ...  of those, predicted misses, one per cache level
//	stack_distance/bytes  model.Record.Distance
//	squares/square_of_2_15  model.Record.Squares in units of 2^30; only where
//	                      sessions of different weight were merged
//	latency/cycles        cycles that the uses took, where their source tells;
//	                      without such a source there is no such column
//
// The sample type shown by default is the largest cache's whose predicted
// misses are more than chance (model.Profile.Quotable), else reuses.
//
// Labels: kind, access (load, store), data (the object the use touched), clock, below_resolution and exact
// (true: the time was counted by reading ahead), pair (only where half of the
// block was watched, model.Record.Half: how its pair of words ended); with a unit reuse_time (accesses), cpu_time (nanoseconds, only where that is the
// clock's unit), stack_distance (bytes, the mean of the sample), tid,
// stack (private or shared, unless only the thread itself was watched), end_tid, used_address and
// written_address (where another thread ended the observation, or wrote elsewhere in the line), used_member and written_member (which of a
// struct's lie there, where known; of other samples used_member is the part of data, see model.Words.Member),
// group (of the jackknife, of profiles that were merged by a fleet's back end),
// epoch (the stretch of the thread's run, in order, if known; merging makes equal numbers of a thread one),
// distinct (blocks, where they were counted: until the reuse if the sample is exact, else in what was read ahead),
// read_ahead (accesses behind the use among which was no reuse) and pair_time (accesses,
// with pair); data_source is where the use found its data, if the processor said so.
// Censored and pruned samples carry in reuse_time the age at which their
// observation ended.
//
// Times are replaced by the middle of their bin, so that a profile that is
// read and written again does not change. Weights become integers by carrying
// each rounding error to the next sample of the same type: a column's total is
// off by at most one half, however many samples there are. Samples are sorted
// by stack, root first, so the same holds (to within one) for the total below
// any frame.
//
// An address that is not a leaf is a return address and is written less one,
// as pprof wants it: it then lies inside the call. Read undoes that.
//
// # Comments
//
// A comment is "rdx[ID] key=value". ID names the session; it keeps apart the
// comments of merged profiles, which pprof would otherwise fold where they are
// equal. Keys:
//
//	writer            the rdx that took it: version, commit, Go, platform, BPF objects
//	format            1
//	start, duration   RFC 3339 time; Go duration
//	command, source   as in model.Profile
//	clock.name, clock.unit, clock.rate, clock.rate_source, clock.touches, clock.resolution
//	period            mean distance between samples, in clock units
//	block             bytes that count as one datum
//	bins_per_octave   of times
//	distances         "exact" where they were counted: a sample is then one bin
//	                  of distances, too
//	cache             level, size, ways, line; one comment per level, in order
//	observations      total over all samples when it was written
//	count             number and name, for everything lost or noteworthy
//	use               "omitted" where the use stacks were left out
//	comment           free text
//
// A value with control characters, invalid UTF-8 or a leading quote is quoted
// as in Go.
//
// # Merged profiles
//
// Read combines the sessions of a merged profile so: durations and counts add
// up, the start is the earliest, the resolution the coarsest, bins the widest.
// The clock's rate and the period are means weighted by observations; each
// sample keeps the times it was written with. Writers, commands, sources and
// rate sources that differ are joined by " + ". Clocks, blocks or caches that differ are an
// error, since sums over them mean nothing.
//
// A count "lost: reason" is both a comment and a sample, the sample so that
// every viewer shows it. Read takes the larger one: filtering drops samples,
// merging a profile with itself doubles them.
//
// # For others to import
//
// Stable: Read, ReadFile, Write, WriteFile, Decode and the file format, which old profiles keep:
// a new version reads them, and says so where it does not. Symbolize and what it takes may change. Units and
// shapes are those of model.Profile. Errors name the file, and of a damaged profile the sample or comment; a
// profile is written whole or not at all. Sources: the format is that of profile.proto of github.com/google/pprof; symbols
// are found as by DWARF 5, the ELF specification, and the jitdump and perf map formats of Linux's perf.
package pprofout
