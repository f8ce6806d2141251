package sampler

import (
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/operand"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// ReadsAhead says whether a Locator does more than find the next access.
const ReadsAhead = false

// Locator finds the next access of a held thread by decoding from where it
// stands; the thread itself is not moved. It is for the tracing thread only.
//
// Unlike on x86 it cannot read on from there: every reuse is timed, and a
// sample is the first access after the tick.
type Locator struct {
	follower a64Follower
	code     [4]byte
	// InSyscall is false once a thread was looked at: arm64's registers do not tell.
	InSyscall bool
	// StackTop is not looked at: the traps have the stacks.
	StackTop uint64
}

// NewLocator returns a Locator, to be used again and again.
func NewLocator() *Locator { return new(Locator) }

// userRegs is struct user_pt_regs of the kernel.
type userRegs struct {
	x              [31]uint64
	sp, pc, pstate uint64
}

const (
	ntPRStatus = 1
	pstate32   = 1 << 4 // AArch32
	pstateNZCV = 0xf << 28
)

// Prepare has nothing to do: the code alone is read.
func (l *Locator) Prepare(int) {}

// Ahead finds the next access of the held thread tid of process pid. Of an
// instruction with several, pick(n) chooses one of n. The error is a
// *Declined: the sample is lost.
func (l *Locator) Ahead(pid, tid int, _ []int, _, _ int, pick func(n int) int) (Ahead, error) {
	u, err := readUserRegs(tid)
	if err != nil {
		return Ahead{}, &Declined{Reason: "registers not readable"}
	}
	l.InSyscall = false
	if u.pstate&stepping != 0 {
		return Ahead{}, &Declined{Reason: "held with its watchpoints off"}
	}
	if u.pstate&pstate32 != 0 {
		return Ahead{}, &Declined{Reason: "32-bit code"}
	}
	l.follower.ARM64Regs = operand.ARM64Regs{X: u.x, SP: u.sp, PC: u.pc, NZCV: u.pstate & pstateNZCV}
	use, err := l.follower.follow(func(pc uint64) ([]byte, error) { return l.read(pid, pc) }, pick)
	if err != nil {
		return Ahead{}, err
	}
	return Ahead{Followed: Followed{Use: use, Word: use.Word(pick(use.Words()))}, End: "not read ahead on arm64"}, nil
}

// read reads one instruction.
func (l *Locator) read(pid int, pc uint64) ([]byte, error) {
	n, err := unix.ProcessVMReadv(pid,
		[]unix.Iovec{{Base: &l.code[0], Len: uint64(len(l.code))}},
		[]unix.RemoteIovec{{Base: uintptr(pc), Len: len(l.code)}}, 0)
	return l.code[:max(n, 0)], err
}

// Reported completes an access of which a source has reported the address and
// the instruction: its size is not in a report.
func (l *Locator) Reported(pid int, pc, addr uint64, store bool) Located {
	var operands []operand.Access
	if code, err := l.read(pid, pc); err == nil {
		if in, err := operand.DecodeARM64(code); err == nil {
			if in.Stores() && !in.Loads() {
				store = true
			}
			var regs operand.ARM64Regs
			operands, _ = in.Accesses(&regs, nil)
		}
	}
	return reported(operands, addr, store)
}

// HeldStack is never asked for: no source of arm64 reports its accesses.
func (l *Locator) HeldStack(_, _ int) *unwind.Snapshot { return nil }

// Stretch would time accesses that were read ahead; there are none here.
func (l *Locator) Stretch(_, _, _, _ int) (Stretch, bool) { return Stretch{}, false }

// Accessing is ip: here a trap reports the accessing instruction itself.
func (l *Locator) Accessing(_ int, ip uint64) uint64 { return ip }
