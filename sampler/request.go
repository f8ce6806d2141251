package sampler

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// edges is EPOLLET, which x/sys declares as a negative number.
const edges = 1 << 31

// OnRequest has ask called, by a thread of its own, as soon as the programs ask for
// what can't wait until their traps are read next: it is to have them read. As long as again then returns
// true it is called each millisecond. Call stop, which waits for the last call, before Close.
func (k *Kernel) OnRequest(ask func(), again func() bool) (stop func(), err error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("wait for requests: %w", os.NewSyscallError("epoll_create1", err))
	}
	end, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(poll)
		return nil, fmt.Errorf("wait for requests: %w", os.NewSyscallError("eventfd", err))
	}
	ring := k.obj.Ring.FD()
	// Nobody is woken by traps, and edges are not seen again while traps wait.
	err = errors.Join(
		unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, ring, &unix.EpollEvent{Events: unix.EPOLLIN | edges, Fd: int32(ring)}),
		unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, end, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(end)}),
	)
	if err != nil {
		unix.Close(poll)
		unix.Close(end)
		return nil, fmt.Errorf("wait for requests: %w", os.NewSyscallError("epoll_ctl", err))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: its priority ends with it
		_ = preempt()
		var events [2]unix.EpollEvent
		const forever = -1
		for wait := forever; ; { // ms
			n, err := unix.EpollWait(poll, events[:], wait)
			if err != nil && err != unix.EINTR {
				return
			}
			asked := n <= 0 && again()
			for _, e := range events[:max(n, 0)] {
				if e.Fd == int32(end) {
					return
				}
				ask()
				asked = true
			}
			if wait = forever; asked {
				wait = 1
			}
		}
	}()
	return func() {
		_, _ = unix.Write(end, []byte{7: 1})
		<-done
		unix.Close(poll)
		unix.Close(end)
	}, nil
}

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
	return Runs(t.threads[tid], tid) && interrupt(tid) == nil
}

// Runs says whether a thread runs, or would if it had a CPU.
func Runs(pid, tid int) bool {
	var b [128]byte
	state, err := readProc(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid), b[:])
	return err == nil && string(state) == "running\n"
}

func interrupt(tid int) error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_INTERRUPT, uintptr(tid), 0, 0, 0, 0); e != 0 {
		return e
	}
	return nil
}
