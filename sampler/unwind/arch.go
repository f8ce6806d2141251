package unwind

import "debug/elf"

// numRegs is the number of registers by their DWARF numbers: 0-16 on x86-64,
// of which 16 is the return address, 0-30 and sp on arm64.
const numRegs = 32

// Regs are the registers of a frame by their DWARF numbers.
type Regs struct {
	PC    uint64
	R     [numRegs]uint64
	known uint64 // as bits; set by Walk
}

func (r *Regs) get(n uint64) (uint64, bool) {
	if n >= numRegs || r.known>>n&1 == 0 {
		return 0, false
	}
	return r.R[n], true
}

func (r *Regs) set(n uint8, v uint64) {
	r.R[n] = v
	r.known |= 1 << n
}

// An Arch is what the walk must know of a processor.
type Arch struct {
	machine elf.Machine
	sp, fp  uint8
	names   []string // as readelf prints them
	// codeMask keeps the address of a return address: arm64 may sign it in
	// the bits above those of user addresses (48 bits, which is where Linux
	// puts all code unless a program asks for more).
	codeMask uint64
	// linked: a leaf function may have its return address in a register, and
	// so the CFA of its caller.
	linked bool
}

var (
	AMD64 = &Arch{
		machine: elf.EM_X86_64, sp: 7, fp: 6, codeMask: ^uint64(0),
		names: []string{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
			"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "ra"},
	}
	ARM64 = &Arch{
		machine: elf.EM_AARCH64, sp: 31, fp: 29, codeMask: 1<<48 - 1, linked: true,
		names: []string{"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
			"x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp"},
	}
)
