package operand

import (
	"errors"
	"fmt"
)

// Access is one load or store of one instruction. A read-modify-write
// instruction has two of them at the same address, the load first.
type Access struct {
	Addr  uint64 // linear address of the lowest byte
	Size  int    // bytes
	Store bool
	// Elements is 1, except for a gather or scatter and for a string
	// instruction under REP: there it is how many elements the instruction
	// will touch (at most, where the data can stop it), of which this access
	// is the first. A string's others follow upwards, downwards with RFLAGS.DF.
	Elements uint64
	// Approx says that the extent is not exact: a CPU may touch fewer bytes
	// (of the 16 that punpckl, unpckl and shift counts name, some fetch 8; of the 32
	// of vmovddup Zen 1 fetches bytes 0-7 and 16-23, which are all it needs; the
	// end of an fxsave area; all lanes, when the mask is not known), or more: of
	// a vector under a known mask the span of its active lanes is given, and
	// some CPUs touch the inactive lanes beside it as well. Addr is touched,
	// unless the mask is not known.
	Approx bool
}

// RegSet is a set of registers. Bits 0 to 31 are the general registers in
// encoding order (x86-64: rax rcx rdx rbx rsp rbp rsi rdi r8..r15; arm64: x0..x30, sp).
type RegSet uint64

// Register groups that are tracked as a whole.
const (
	RegFlags   RegSet = 1 << (32 + iota) // RFLAGS, NZCV
	RegVector                            // any vector, SIMD or MMX register
	RegMask                              // any AVX-512 mask register
	RegSegment                           // FS or GS base, TPIDR
)

// Branch is how an instruction can leave straight-line flow.
type Branch uint8

const (
	BranchNone     Branch = iota // falls through
	BranchJump                   // direct, always taken
	BranchCond                   // direct, may be taken
	BranchIndirect               // target from a register or from memory
	BranchCall                   // direct call
	BranchCallInd                // call through a register or memory
	BranchReturn                 // return from a call
	BranchSyscall                // enters the kernel and comes back behind it
	BranchTrap                   // interrupt, undefined, privileged, transactional
)

var branchNames = [...]string{"none", "jump", "cond", "indirect", "call", "call-indirect", "return", "syscall", "trap"}

// String returns the kind's name, for messages and counters.
func (b Branch) String() string { return branchNames[b] }

var (
	// ErrTruncated says that the instruction continues past the given bytes.
	ErrTruncated = errors.New("decode operand: code ends inside the instruction")
	// ErrUnsupported is what every UnsupportedError is, for errors.Is.
	ErrUnsupported = errors.New("decode operand: unsupported instruction")
	// ErrNeedVectors says that the addresses depend on vector or mask registers
	// that the caller did not supply.
	ErrNeedVectors = errors.New("compute operand address: vector registers not supplied")
	// ErrNeedZVABlock says that dc zva cannot be sized without ARM64Regs.ZVABlock.
	ErrNeedZVABlock = errors.New("compute operand size: dc zva block size not supplied")
)

// UnsupportedError names an encoding that this package declines. Name has few
// distinct values (an opcode, not a whole instruction), so it can label a counter.
type UnsupportedError struct {
	Name string // such as "0f ae /4" or "a64 sve 523"
	Why  string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("decode operand: unsupported instruction %s: %s", e.Name, e.Why)
}

// Is makes errors.Is(err, ErrUnsupported) true.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }
