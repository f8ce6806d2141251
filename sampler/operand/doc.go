// Package operand says which memory accesses an instruction is about to make:
// address, size and direction, from its bytes and the thread's registers.
//
// The sampler needs it where no hardware source delivers the data address: it
// holds a thread before its next instruction, decodes that instruction, and
// arms a watchpoint on what the instruction will touch. It also walks forward
// over instructions that touch nothing, so each decoded instruction tells what
// registers it may write and how it may leave straight-line flow.
//
// Decode once, ask often: [DecodeX86] and [DecodeARM64] depend on the code
// bytes only, so their results can be kept by address; the Accesses methods
// combine a decoded instruction with register values and do not allocate.
//
// Nothing is guessed. An encoding outside the tables is an
// [*UnsupportedError], to be counted by the caller. Where only an upper bound
// is known (a masked vector move without the mask), the access says so in
// Approx. A gather or scatter reports its first active element and how many
// there are.
//
// What the tests hold it to: objdump for length, address and size, LLVM for
// direction, written registers and length, over the code of whatever real
// binaries the machine has and over every combination of prefix, map and
// opcode; and on x86-64 the CPU itself, which runs the instructions one by one
// under watchpoints on the first and last predicted byte and beside them.
// RDX_LONG=1 takes all of it instead of samples; RDX_X86_BINARIES and
// RDX_ARM64_BINARIES name further binaries.
//
// What watchpoints showed on Zen 4, to know when arming on a prediction:
// masked-off lanes fire too, even under an empty mask, but elements of a
// broadcast tuple that no active lane needs do not (on Zen 5 they do); clflush
// and clwb fire like a load; REP strings and gathers can stop between elements with the
// instruction pointer unmoved; a failing cmpxchg and a shift by zero do store.
//
// Known limits: far transfers, port I/O, the XSAVE family, AMX, APX, XOP
// and system instructions are declined on x86-64, SVE and SME on arm64. Page
// walks, shadow stacks and instruction fetch are not accesses here.
//
// The package is rdx's own and may change.
package operand
