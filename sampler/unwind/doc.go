// Package unwind walks call stacks from a copy of registers and stack memory,
// by the call frame information (CFI) that compilers leave in .eh_frame and
// .debug_frame for C++ exceptions and debuggers. Code built without frame
// pointers, PLT stubs and signal frames have it too.
//
// Nothing here touches a process: who has the copy may unwind it later. Where
// code has no CFI the walk goes on by frame pointers, and every walk says how
// it ended: a stack that is cut short is never taken for a whole one.
//
// The formats are those of the DWARF 5 standard, section 6.4, and the Linux
// Standard Base, "Exception Frames". x86-64 and arm64 are known.
//
// The package is rdx's own and may change.
package unwind
