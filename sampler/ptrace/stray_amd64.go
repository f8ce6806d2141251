package ptrace

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A watchpoint's exception says in DR6 which register it is of. On a virtual machine SIGTRAPs have come, twice in one run of the tests, as the kernel
// sends them where it does not: probably the hypervisor had lost it, of which KVM's history has fixes (one of them: "Load DR6 with guest value
// only before entering .vcpu_run() loop", Linux 6.14). The kernel then takes it for the instruction int1 and sends SIGTRAP, which would end the target. So would one that
// comes when its watchpoint has just been removed. The target must not see either, nor rdx, which watches words of its own.

// si_code of SIGTRAP, see sigaction(2).
const (
	trapBreakpoint = 1 // TRAP_BRKPT: int1 as the kernel sees it
	trapWatchpoint = 4 // TRAP_HWBKPT: only a tracer's, and nobody else can trace
)

// strayTrap says of a thread stopped by a signal whether that is of a watchpoint's exception which the kernel did not know as such.
func strayTrap(tid int, signal unix.Signal) bool {
	if signal != unix.SIGTRAP {
		return false
	}
	switch signalCode(tid) {
	case trapWatchpoint:
		return true
	case trapBreakpoint:
		return !afterInt1(tid)
	}
	return false
}

// afterInt1 says whether the thread has executed int1 just now, or that can't be found out.
func afterInt1(tid int) bool {
	const int1 = 0xf1
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &regs) != nil {
		return true
	}
	var code [1]byte
	_, err := unix.ProcessVMReadv(tid, []unix.Iovec{{Base: &code[0], Len: 1}}, []unix.RemoteIovec{{Base: uintptr(regs.Rip - 1), Len: 1}}, 0)
	return err != nil || code[0] == int1
}

// strayTrapsOfRdx counts those of rdx.
var strayTrapsOfRdx uint64

// StrayTrapsOfRdx is how many debug exceptions in this process the kernel did not know as those of its watchpoints.
func StrayTrapsOfRdx() uint64 { return atomic.LoadUint64(&strayTrapsOfRdx) }

// strayHandler counts the signal and returns, and strayReturn leaves it. Go's runtime would end the process.
//
//lint:ignore U1000 the assembly uses it
func strayHandler()

//lint:ignore U1000 the assembly uses it
func strayReturn()

// strayEntries are their addresses.
func strayEntries() (handler, restorer uintptr)

// SurviveStrayTraps has this process live on when it gets one.
var SurviveStrayTraps = sync.OnceValue(func() error {
	var action struct {
		handler  uintptr
		flags    uint64
		restorer uintptr
		mask     uint64
	}
	const saRestorer, saOnStack, saRestart = 0x04000000, 0x08000000, 0x10000000
	action.handler, action.restorer = strayEntries()
	action.flags = saRestorer | saOnStack | saRestart
	_, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGTRAP), uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action.mask), 0, 0)
	if e != 0 {
		return fmt.Errorf("handle SIGTRAP of rdx's own watchpoints: %w", os.NewSyscallError("rt_sigaction", e))
	}
	return nil
})
