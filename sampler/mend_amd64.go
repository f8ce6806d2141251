package sampler

import "golang.org/x/sys/unix"

// Results of an interrupted system call as seen at a ptrace stop, from
// linux/errno.h: only the kernel's own, user code never sees them.
const (
	restartNoHand = -514 // ERESTARTNOHAND: made again if no handler runs
	restartBlock  = -516 // ERESTART_RESTARTBLOCK: goes on as restart_syscall
)

// mendSyscall undoes what a hold does to a system call. The signal that holds
// a thread is sent by an interrupt of its own, which may come when the thread
// has just entered a system call. The kernel then makes the call again by
// itself, save in two cases, in which this asks it to: calls that would return
// EINTR, and those that go on as restart_syscall, which a seccomp filter may
// not allow. A call made again waits for all of its time-out once more.
//
// The register is the only thing rdx ever writes in a target.
func mendSyscall(tid int) {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &regs) != nil || int64(regs.Orig_rax) < 0 {
		return
	}
	switch result := int64(regs.Rax); {
	case result == -int64(unix.EINTR):
	case result == restartBlock && filtered(tid):
	default:
		return
	}
	const (
		pokeUser  = 6      // PTRACE_POKEUSR
		offsetRax = 10 * 8 // in struct user
	)
	code := int64(restartNoHand)
	// An error means that the thread was killed meanwhile.
	_, _, _ = unix.Syscall6(unix.SYS_PTRACE, pokeUser, uintptr(tid), offsetRax, uintptr(code), 0, 0)
}

// filtered says whether a seccomp filter judges the thread's system calls.
func filtered(tid int) bool {
	mode, err := procStatus(tid, "Seccomp")
	return err != nil || mode != "0"
}
