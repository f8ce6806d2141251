// Package sharing finds what threads take from each other by what was read ahead of each.
//
// A watchpoint in another thread is used up by one that writes all the time before it can tell anything, and its trap takes ten
// thousand times as long as what it is to time. But each hold reads ahead some thousand accesses of one thread, with their
// addresses. Joined by cache line they tell both sides: how soon a thread comes back to a line, and how often others write it.
// Of threads that go on independently the chance that a write falls between is the share of moments of the
// other's run that are followed by a write to the line within so long: the forward recurrence time of the writes (Cox, Renewal
// Theory, 1962, chapter 5), taken from the windows themselves, without a law of its own.
//
// Threads that wait for each other are not independent. One that does not run when another is held writes nothing soon.
//
// The package is rdx's own and may change.
package sharing
