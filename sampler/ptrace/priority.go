package ptrace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

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
	err := threadsOfRdx(func(tid int) error { return unix.Setpriority(unix.PRIO_PROCESS, tid, nice) })
	if err != nil {
		return fmt.Errorf("set own priority: %w (CAP_SYS_NICE)", err)
	}
	return nil
}

// threadsOfRdx calls f for each thread of this process; that one has ended is no
// error. One started meanwhile, by a thread that f was not yet called for, is
// found by looking again until there is nothing new.
func threadsOfRdx(f func(tid int) error) error {
	seen := make(map[int]bool)
	for found := true; found; {
		found = false
		tids, err := threadsOf(os.Getpid())
		if err != nil {
			return err
		}
		for _, tid := range tids {
			if seen[tid] {
				continue
			}
			if err := f(tid); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			seen[tid], found = true, true
		}
	}
	return nil
}

const (
	// Go's monitor of its threads wakes up every 20 µs for 10 ms whenever a
	// thread has entered a system call, as the tracing thread does after each hold.
	// Each time is an interrupt and two switches of some processor, perhaps of
	// the target's, where caches are to get warm. It never sleeps longer than this
	// while there is something to look after.
	patience   = 10 * time.Millisecond
	usualSlack = 50 * time.Microsecond // the kernel's default
)

// Patient lets the kernel wake this process's threads up to 10 ms late, together
// with what wakes a processor anyway. Real-time threads, like the tracing one, are
// not affected. undo sets it back to the kernel's default. Processes started later
// inherit it.
func Patient() (undo func(), err error) {
	if err := setTimerSlack(patience); err != nil {
		return nil, err
	}
	return func() { _ = setTimerSlack(usualSlack) }, nil
}

func setTimerSlack(d time.Duration) error {
	err := threadsOfRdx(func(tid int) error {
		return os.WriteFile(fmt.Sprintf("/proc/%d/timerslack_ns", tid), []byte(strconv.FormatInt(d.Nanoseconds(), 10)), 0)
	})
	if err != nil {
		return fmt.Errorf("set own timer slack: %w (CAP_SYS_NICE)", err)
	}
	return nil
}
