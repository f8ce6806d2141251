// Package pipeline foretells how long a processor takes for a stretch of instructions that was read ahead: a
// scoreboard (Thornton 1964) with a window, as interval models have it (Karkhanis and Smith, A first-order superscalar
// processor model, ISCA 2004). Each instruction waits for the registers and words that it reads, at most so many enter
// in a cycle, of one line of code, and no more are under way than the window has room for.
//
// Where lines come from that the stretch has not touched before is not known to it. So the time is told
// for several cases: that all of them are in the first cache, or all or every eighth in a further one or in memory. Between
// these the caller goes by the shares that it knows. Lines in a row of steady strides are taken to be fetched ahead.
//
// Branches go by a predictor that learns over all stretches. What a processor does beyond that (ports, banks,
// pages, instruction caches) is left out: times are right within a third or so, not more.
//
// It knows the instructions of x86-64. The package is rdx's own and may change.
package pipeline
