// Package callstack unwinds call stacks that were copied while a thread was held or in a
// trap. Nobody waits for that: the tracing thread puts copies into a Queue, and hands
// them over, a good deal at a time, to another goroutine, which has the Table.
//
// The package is rdx's own and may change.
package callstack
