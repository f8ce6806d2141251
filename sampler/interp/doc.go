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
// instruction that is not supported or whose result cannot be known ahead
// (rdtsc, cpuid, rdrand; so in the vDSO's clocks), and at anything that would
// fault. The instruction it ended at has not been executed; Regs is the state
// before it.
//
// What counts as an access: one per operand in memory, loads before stores; a
// read-modify-write is two. A vector operand is one access of its full size, a
// masked one covers its first to its last active element and is none if no
// element is active; gathers and scatters are one access per active element.
// String instructions are one or two accesses per iteration. Prefetches, cache
// flushes, lea and nop with an operand are none.
//
// Known bias: another thread's stores after a page was copied are not seen;
// write protection is not checked, since Memory tells nothing of it. The sticky
// exception flags of MXCSR are exact for the usual arithmetic; after rarer
// operations an instruction that reads them ends the burst. Undefined flags
// take some value, not always the CPU's; C1 of the x87 after fcomi and fcmov is
// as on AMD's.
//
// Of the x87 the transcendental functions are not supported, whose last bits
// differ between CPUs, nor decimal numbers, nor what stores or loads the environment:
// where the last instruction and its operand were is not kept. Like a SIMD
// exception, one of the x87 that is not masked ends the burst.
//
// Decoded instructions are kept between bursts by page. A page's bytes are read
// again by the first instruction of every burst that runs there, and what was
// decoded is dropped if they changed, so code that was patched, unmapped or
// compiled anew is noticed without help from the caller.
package interp
