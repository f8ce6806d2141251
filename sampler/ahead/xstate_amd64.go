package ahead

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/interp"
)

const ntX86XState = 0x202 // NT_X86_XSTATE

// readVector reads the vector registers of a held thread into v; area is
// scratch.
func readVector(tid int, layout interp.XSAVELayout, area []byte, v *interp.Vector) error {
	iov := unix.Iovec{Base: &area[0], Len: uint64(len(area))}
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), ntX86XState,
		uintptr(unsafe.Pointer(&iov)), 0, 0)
	if e != 0 {
		return fmt.Errorf("read vector registers of thread %d: %w", tid, e)
	}
	return layout.Decode(v, area[:iov.Len])
}
