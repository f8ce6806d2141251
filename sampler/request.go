package sampler

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/ptrace"
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
		_ = ptrace.Preempt()
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
