// Package interp reads ahead of a held thread: it interprets the coming
// x86-64 user-mode instructions on a copy of the registers and reports every
// memory access in order, so that short reuses are known exactly without a
// trap per access.
//
// The target is never touched. Memory has no way to write; pages are copied on
// first use and the interpreter's own stores go to the copies, which are thrown
// away by the next Start. So a burst sees each page as it was when the burst
// first read it, and its own stores on top.
//
// A burst ends when the accesses asked for are done, at a system call, at an
// instruction whose result cannot be known ahead, as it depends on more than the
// thread (cpuid, rdrand; the processor's clock, if SetTime does not say what to take
// it for), and at anything that would fault. The instruction it ended at has not been
// executed; Regs is the state before it.
//
// What only computes does not end a burst. Floating point and what processors
// differ in (estimates, transcendental functions, 16-bit floats) is run natively,
// an instruction at a time: rewritten to fixed registers and a memory operand of
// the interpreter's own, with the thread's MXCSR or x87 state, in memory that is
// never writable and executable at once. MXCSR's exceptions are all masked
// meanwhile, and one that the thread does not mask and that was raised ends the
// burst, as it faults in the thread. An instruction that the processor refuses
// raises SIGILL, whose handler, in front of the Go runtime's, leaves it: the burst
// ends with a fault, as it does in the thread. Where the system allows no
// executable memory the interpreter's own arithmetic takes its place, which knows
// the default MXCSR only; what else needs it is unsupported, and End.Err says why.
//
// Not supported are AMX, FMA4, XOP, AVX10.2, transactions, and parts of the state
// that are not among the vector registers (protection keys).
//
// What counts as an access: one per operand in memory, loads before stores; a
// read-modify-write is two. A vector operand is one access of its full size, a
// masked one covers its first to its last active element and is none if no
// element is active; gathers and scatters are one access per active element.
// String instructions are one or two accesses per iteration. Prefetches, cache
// flushes, lea and nop with an operand are none.
//
// Known bias: another thread's stores after a page was copied are not seen;
// write protection is not checked, since Memory tells nothing of it. Undefined flags
// take some value, not always the CPU's; C1 of the x87 after fcomi and fcmov is
// as on AMD's. Without native instructions the sticky exception flags of MXCSR are
// exact for the usual arithmetic; after rarer operations an instruction that reads
// them ends the burst.
//
// Of the x87 it is not kept where the last instruction and its operand were: what
// stores it stores zeros. An exception that is not masked ends the burst at the
// next instruction that waits for it.
//
// Decoded instructions are kept between bursts by page. A page's bytes are read
// again by the first instruction of every burst that runs there, and what was
// decoded is dropped if they changed, so code that was patched, unmapped or
// compiled anew is noticed without help from the caller.
//
// The package is rdx's own and may change.
package interp
