package ptrace

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/proc"
)

// Interrupted is the signal that a thread stopped by Tracer.Interrupt is said to
// have been held by, which is none.
const Interrupted = unix.Signal(65)

// Interrupt stops a thread that handles no signals, by PTRACE_INTERRUPT; the
// handler is told of a Hold by Interrupted. ok is false if the thread waits for
// something: it would give up what it waits in, of which the kernel makes most
// again, but a transfer half done it ends.
//
// A thread that runs may be on its way into a system call: who then finds it there
// has it made again.
func (t *Tracer) Interrupt(tid int) (ok bool) {
	pid, _ := t.threads.process(tid)
	return Runs(pid, tid) && interrupt(tid) == nil
}

// Runs says whether a thread runs, or would if it had a CPU.
func Runs(pid, tid int) bool {
	var b [128]byte
	state, err := proc.Read(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid), b[:])
	return err == nil && string(state) == "running\n"
}

// RunsOn says likewise, and on which CPU it is, or was last.
func RunsOn(pid, tid int) (cpu int, runs bool) {
	var b [512]byte
	text, err := proc.Read(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid), b[:])
	if err != nil {
		return -1, false
	}
	fields := proc.StatFields(text)
	const state, processor = 0, 36
	if len(fields) <= processor {
		return -1, false
	}
	if cpu, err = strconv.Atoi(string(fields[processor])); err != nil {
		cpu = -1
	}
	return cpu, string(fields[state]) == "R"
}

func interrupt(tid int) error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_INTERRUPT, uintptr(tid), 0, 0, 0, 0); e != 0 {
		return e
	}
	return nil
}
