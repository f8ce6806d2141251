package sampler

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Hurry gives all threads of this process the highest ordinary priority: what
// is left to do between holds is little, but it must get done beside a target
// with a thousand busy threads. undo sets it back. Processes started later
// inherit it, the target must be started before.
func Hurry() (undo func(), err error) {
	// The system call's result is 20 minus the nice value.
	old, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return nil, fmt.Errorf("read own priority: %w", err)
	}
	if err := setPriority(-20); err != nil {
		return nil, err
	}
	return func() { _ = setPriority(20 - old) }, nil
}

func setPriority(nice int) error {
	tids, err := threadsOf(os.Getpid())
	if err != nil {
		return fmt.Errorf("set own priority: %w", err)
	}
	for _, tid := range tids {
		if err := unix.Setpriority(unix.PRIO_PROCESS, tid, nice); err != nil && err != unix.ESRCH {
			return fmt.Errorf("set own priority: %w (CAP_SYS_NICE)", err)
		}
	}
	return nil
}
