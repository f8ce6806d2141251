package ptrace

import "golang.org/x/sys/unix"

// A watchpoint of arm64 fires before its access. The kernel then turns the
// thread's watchpoints off, steps it over the access, and turns them on again
// (watchpoint_handler and reinstall_suspended_bps in
// arch/arm64/kernel/hw_breakpoint.c). A thread that is stopped for a signal in
// between must be resumed by a step: PTRACE_CONT would take the kernel's own step
// away (user_disable_single_step), and its watchpoints, those of others and of
// later times included, would stay off for good. The kernel takes the step for its
// own: no SIGTRAP comes of it.
//
// If the signal has a handler the kernel steps into that, stops the thread at
// its first instruction by a SIGTRAP for the tracer alone, and the next step
// turns the watchpoints on; when the handler returns, the access traps again.

// Stepping is PSTATE.SS (DBG_SPSR_SS): set while the thread is being stepped and has
// not made the step yet.
const Stepping = 1 << 21

// steppingOver says whether the stopped thread has an access before it over
// which the kernel steps it.
func steppingOver(tid int) bool {
	u, err := ReadUserRegs(tid)
	return err == nil && u.PSTATE&Stepping != 0
}

// resume lets a stopped thread run on, with the signal if it is not 0.
func resume(tid int, signal unix.Signal) error {
	if !steppingOver(tid) {
		return unix.PtraceCont(tid, int(signal))
	}
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SINGLESTEP, uintptr(tid), 0, uintptr(signal), 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// steppedIntoHandler says of a thread stopped by a signal whether it is the stop
// at the first instruction of a handler, which is no signal: signal_delivered in
// kernel/signal.c makes it with SIGTRAP as its code, too.
func steppedIntoHandler(tid int, signal unix.Signal) bool {
	return signal == unix.SIGTRAP && signalCode(tid) == int32(unix.SIGTRAP) && steppingOver(tid)
}
