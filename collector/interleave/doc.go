// Package interleave puts what was read ahead of one thread among what was read ahead of others.
//
// Threads of a program touch the same tables, constants and pointers to functions: what one
// brings between another's use and reuse is in part what that has touched itself, and some of its
// reuses come sooner by the other's. A watchpoint does not tell, for a trap takes a thousand times as long
// as such reuses, and a word that is touched all the time silences it. So what was read ahead of both threads, in holds of
// each in which both ran, is merged in an order in which neither waits for the other.
//
// That is wrong of data that they take turns at, under a lock: these are written by one at least.
// What either was seen to write is taken to be each one's own here, and left to watchpoints.
//
// The package is rdx's own and may change.
package interleave
