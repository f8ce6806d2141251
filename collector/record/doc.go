// Package record holds what a session has seen as plain data: observations of accesses
// with what became of them, and the stretches of a thread's run that they stand for.
// The tracing thread fills them in; the profile is made from them when it is done.
//
// The package is rdx's own and may change.
package record
