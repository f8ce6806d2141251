package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sleeperArg makes this program one that works and sleeps in turn, in several
// system calls that a signal would end early, and counts how often one did.
const sleeperArg = "sleeper"

const (
	sleepRounds = 400
	workRounds  = 200_000
)

// runSleeper prints the number of system calls that ended with EINTR.
func runSleeper() {
	epoll, err := unix.EpollCreate1(0)
	if err != nil {
		fmt.Println("epoll:", err)
		os.Exit(1)
	}
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		fmt.Println("pipe:", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	short := unix.NsecToTimespec(int64(time.Millisecond))
	array := make([]uint64, 1<<12)
	calls := []func() error{
		func() error { return unix.Nanosleep(&short, nil) },
		func() error {
			_, err := unix.EpollWait(epoll, make([]unix.EpollEvent, 1), 1)
			return err
		},
		func() error {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(pipe[0]), Events: unix.POLLIN}}, 1)
			return err
		},
		func() error {
			var word uint32
			const futexWait = 0
			_, _, e := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&word)), futexWait, 0, uintptr(unsafe.Pointer(&short)), 0, 0)
			if e == unix.ETIMEDOUT {
				return nil
			}
			return e
		},
	}
	interrupted, sum := 0, uint64(0)
	for range sleepRounds {
		for i := range workRounds {
			sum += array[i%len(array)]
		}
		for _, call := range calls {
			if err := call(); errors.Is(err, unix.EINTR) {
				interrupted++
			}
		}
	}
	fmt.Println(interrupted, sum)
}

// interruptions profiles the sleeper and says how many of its system calls
// were interrupted, or what went wrong.
func interruptions() string {
	cmd := exec.Command("/proc/self/exe", sleeperArg)
	// Go's own scheduler would interrupt it.
	cmd.Env = []string{"GODEBUG=asyncpreemptoff=1", "GOGC=off", "GOMAXPROCS=1"}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err.Error()
	}
	if err := cmd.Start(); err != nil {
		return err.Error()
	}
	defer cmd.Wait()
	r := bufio.NewReader(stdout)
	if _, err := r.ReadString('\n'); err != nil {
		return "sleeper did not start: " + err.Error()
	}
	rdx := exec.Command("/rdx", "attach", "-p", strconv.Itoa(cmd.Process.Pid), "--overhead", "50", "-o", "/tmp/sleeper.pb.gz", "--caches", "32K")
	out, rdxErr := rdx.CombinedOutput()
	line, err := r.ReadString('\n')
	if err != nil {
		return "sleeper died: " + err.Error()
	}
	if rdxErr != nil {
		return fmt.Sprintf("rdx attach: %v: %.200s", rdxErr, out)
	}
	n, _, _ := strings.Cut(line, " ")
	return n
}
