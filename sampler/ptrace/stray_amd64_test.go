package ptrace

import (
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A debug exception without a reason, by which Go's runtime would end the process, is counted and no more.
func TestStrayTrapsOfRdx(t *testing.T) {
	if err := SurviveStrayTraps(); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := StrayTrapsOfRdx()
	info := [32]int32{0: int32(unix.SIGTRAP), 2: trapBreakpoint} // siginfo_t; a process may send itself any
	const n = 100
	for range n {
		_, _, e := unix.Syscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(os.Getpid()), uintptr(unix.Gettid()), uintptr(unix.SIGTRAP), uintptr(unsafe.Pointer(&info)), 0, 0)
		if e != 0 {
			t.Fatal(e)
		}
	}
	if got := StrayTrapsOfRdx() - before; got != n {
		t.Errorf("%d traps counted, want %d", got, n)
	}
}
