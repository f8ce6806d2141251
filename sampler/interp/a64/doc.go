// Package a64 reads ahead of a held thread as package interp does, of arm64's
// 64-bit instructions (A64): same terms, same limits, same promise that the target is
// never touched. It is plain Go without the CPU's help, so that it is built and
// tested on any machine.
//
// Supported are the integer instructions with all their operands, CRC32, flag
// manipulation, all loads and stores of Armv8.0 with those of LSE and RCpc, floating point of
// single and double precision, and Advanced SIMD with AES, SHA-1, SHA-256, PMULL,
// EOR3, BCAX, RAX1, XAR and dot products. SVE, SME, half precision, estimates
// (FRECPE, FRSQRTE and their steps), complex numbers, SQRDMLAH, SHA-512, SM3, SM4, memory
// tagging and memory copy instructions end the burst and are counted by mnemonic; so does what
// cannot be known ahead: CNTVCT_EL0, if SetTime does not say what to take it for,
// registers that the kernel emulates, random numbers, FPSR once floating point was computed (its sticky flags are not
// followed), arithmetic with an FPCR other than zero. An encoding that is not known
// to be an instruction is not run.
//
// What counts as an access: one per instruction, of all the bytes of a register
// pair or structure; two for an atomic read-modify-write, load before store, and one where
// a compare-and-swap does not swap. DC ZVA is a store of its block. Prefetches and cache
// maintenance are none. The top byte of an address is dropped, as Linux has the CPU do.
//
// A store-exclusive succeeds after the load-exclusive to the same address, as it does
// where no other thread comes between; if the burst begins between the two it fails, as
// the thread's own will, since stopping it has cleared its monitor.
// Limit.StopLocked ends the burst at a store-exclusive or an atomic.
//
// Known bias: pointers that the burst signs (PACIASP and the like; the keys are
// the kernel's) are left as they are, and checking a signature takes it off, unchecked.
// What such pointers lead to is the same; their upper bits are not, for who compares
// them. Atomic and ordered accesses that are not aligned end the burst, as not all CPUs
// make them.
//
// The package is rdx's own and may change.
package a64
