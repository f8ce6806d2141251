// Package exact analyses access streams exactly: reuse times, stack distances and
// footprints, on one LRU stack that all threads share or on one a thread, on one
// processor or several. Beside it stand the estimates that are held against it: Shards,
// Log2Stack and ThreadSampler. A Generator makes streams whose stack distances are known.
//
// Distances are in blocks, times in touches of blocks; an access that overlaps several
// blocks touches each. The algorithms are those of Olken (1981) on a bitmap over time, of
// HP-RDA (Cui et al.) for several processors, of Schuff et al. (PACT 2010) for stacks a
// thread, of Waldspurger et al. (FAST 2015) for Shards, and of Shen and Shaw for the
// generator.
//
// It imports model alone, builds on any OS and needs no privileges; where the processor
// has AVX2 some of it is assembly, with the same results.
//
// # For others to import
//
// Stable: Analysis, Parallel, Shards, the stacks, Generator and what they return. Functions and
// types that only rdx's own front end has a use for, those of pieces, relays and pair tallies,
// may change. Shapes: accesses come in slices of any length, in the stream's order, and are not
// kept. Histograms have the bins they were made with; a first access is Cold. Errors: a block
// size that is no power of two, an analyser that is given more blocks than it can count
// (ErrTooManyBlocks), and memory that can't be had; after one of these its counts are not to be used.
package exact
