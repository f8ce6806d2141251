// Package ahead reads what a held thread is about to do: which memory its next
// instructions touch, and when they touch a datum again.
//
// A Locator decodes the instruction before which the thread stands (package operand), and
// runs the code behind it in an interpreter on copies of registers and memory (package
// interp). Nothing of the target changes: its memory is read by process_vm_readv, and
// never where a read would wake somebody who waits for a page fault (userfault.go). A
// Checkpoint is the copy of a whole process, from which what it does next is replayed
// when stamps say how far it got. Steps go to the same places by breakpoints in the
// target instead, for code that no interpreter knows.
//
// What can't be read ahead is declined with a reason, and counted by whoever asked.
//
// The package is rdx's own and may change.
package ahead
