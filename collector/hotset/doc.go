// Package hotset finds sets of blocks that take nearly all of a program's accesses: what holds that are apart in time touch alike.
//
// Such a set bounds misses where nothing can be timed: a cache of s blocks with LRU misses at most s/(s-n) times as often as
// any way to use n blocks does (Sleator and Tarjan, CACM 28, 1985), and one way is to keep the set for good. See model.Lookahead.Hot.
//
// Whether a hold's own blocks are in a set is asked of the other holds alone, so that what is outside of it is as much as of a
// hold that was not made.
//
// The package is rdx's own and may change.
package hotset
