// Package target knows the processes of a target: who is there and who was, their
// mappings with the files behind them, what lies at an address, and how long they ran.
//
// All of it belongs to one goroutine at a time: the tracing thread's while the target is
// traced, then that of whoever makes the profile. What is handed to others, lists of
// mappings and of regions, is never changed afterwards.
//
// The package is rdx's own and may change.
package target
