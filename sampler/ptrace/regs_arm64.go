package ptrace

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const ntPRStatus = 1

// UserRegs is struct user_pt_regs of the kernel.
type UserRegs struct {
	X              [31]uint64
	SP, PC, PSTATE uint64
}

// ReadRegset reads a set of registers of a stopped thread.
func ReadRegset(tid int, set uintptr, to unsafe.Pointer, size uintptr) error {
	iov := unix.Iovec{Base: (*byte)(to), Len: uint64(size)}
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), set, uintptr(unsafe.Pointer(&iov)), 0, 0)
	if e != 0 {
		return fmt.Errorf("read registers %#x of thread %d: %w", set, tid, e)
	}
	return nil
}

// ReadUserRegs reads the general registers of a stopped thread.
func ReadUserRegs(tid int) (u UserRegs, err error) {
	err = ReadRegset(tid, ntPRStatus, unsafe.Pointer(&u), unsafe.Sizeof(u))
	return u, err
}
