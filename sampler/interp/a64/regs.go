package a64

// Bits of Regs.NZCV, as PSTATE has them.
const (
	FlagN = 1 << 31
	FlagZ = 1 << 30
	FlagC = 1 << 29
	FlagV = 1 << 28

	flagShift = 28
)

// Vec is one vector register, 16 bytes, little-endian.
type Vec [2]uint64

// Vector is the state of the vector unit.
type Vector struct {
	V          [32]Vec
	FPCR, FPSR uint32
}

// Regs is what a thread's registers hold at the instruction about to run.
type Regs struct {
	X      [31]uint64
	SP, PC uint64
	NZCV   uint64
	TPIDR  uint64 // TPIDR_EL0, the thread pointer
	// DCZID is DCZID_EL0 of this machine's CPUs, which says how much DC ZVA
	// clears; 0 if that is not known.
	DCZID uint64

	// Vector is read only after LoadVector has filled it; a nil LoadVector
	// says that it is filled already.
	Vector     Vector
	LoadVector func(*Vector) error
}

// Places in Machine.r. As a base or result of some instructions register 31 is the
// stack pointer, elsewhere it reads as zero and swallows what is written.
const (
	regSP   = 31
	regZero = 32
	regNone = 33
	regLink = 30
)

// source is where register n is read that may be zero.
func source(n uint8) uint8 {
	if n == 31 {
		return regZero
	}
	return n
}

// target is where register n is written that may be none.
func target(n uint8) uint8 {
	if n == 31 {
		return regNone
	}
	return n
}
