package sampler

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/operand"
)

// maxInst is the length of every A64 instruction.
const maxInst = 4

// Locator finds the next access of a held thread by decoding from where it
// stands; the thread itself is not moved. It is for the tracing thread only.
type Locator struct {
	follower a64Follower
	memory   targetMemory
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

// Locate finds the next access of the held thread tid of process pid. Of an
// instruction with several, pick(n) chooses one of n. The error is a
// *Declined if the sample is lost for a reason worth counting.
func (l *Locator) Locate(pid, tid int, pick func(n int) int) (Located, error) {
	var u userRegs
	iov := unix.Iovec{Base: (*byte)(unsafe.Pointer(&u)), Len: uint64(unsafe.Sizeof(u))}
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), ntPRStatus, uintptr(unsafe.Pointer(&iov)), 0, 0); e != 0 {
		return Located{}, &Declined{Reason: "registers not readable"}
	}
	if u.pstate&pstate32 != 0 {
		return Located{}, &Declined{Reason: "32-bit code"}
	}
	l.follower.ARM64Regs = operand.ARM64Regs{X: u.x, SP: u.sp, PC: u.pc, NZCV: u.pstate & pstateNZCV}
	l.memory.pid = pid
	return l.follower.follow(l.memory.code, pick)
}

// Accessing is ip: here a trap reports the accessing instruction itself.
func (l *Locator) Accessing(_ int, ip uint64) uint64 { return ip }
