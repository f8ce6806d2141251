package ptrace

import (
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/proc"
)

// Results of an interrupted system call as seen at a ptrace stop, from
// linux/errno.h: only the kernel's own, user code never sees them.
const (
	restartNoHand = -514 // ERESTARTNOHAND: made again if no handler runs
	restartBlock  = -516 // ERESTART_RESTARTBLOCK: goes on as restart_syscall
)

// MendsSyscalls says whether a system call that a hold has interrupted is made
// again, whichever it is.
const MendsSyscalls = true

// interrupted says whether the thread, stopped for a signal that nobody will
// handle, stands in a system call which that signal would harm. The kernel makes
// most interrupted calls again by itself, save those that would return EINTR,
// and those that go on as restart_syscall, which a seccomp filter may not
// allow.
func interrupted(tid int) bool {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &regs) != nil {
		return false
	}
	switch call, result := int64(regs.Orig_rax), int64(regs.Rax); {
	case call < 0, call == unix.SYS_CLOSE: // which has closed the file by now
		return false
	case result == -int64(unix.EINTR):
		return true
	default:
		return result == restartBlock && filtered(tid)
	}
}

// mendSyscall asks the kernel to make an interrupted call again. It then waits
// for all of its time-out once more.
//
// The register is the only thing rdx ever writes in a target.
func mendSyscall(tid int) {
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
	mode, err := proc.Status(tid, "Seccomp")
	return err != nil || mode != "0"
}
