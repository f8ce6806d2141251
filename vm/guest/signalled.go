package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// signalledArg makes this program one that walks through an array and takes a
// signal every millisecond meanwhile, in a handler of its own. It says where the
// array is, and ends with its standard input.
const signalledArg = "signalled"

const (
	signalEvery    = time.Millisecond
	signalledWords = 1 << 14
)

func init() {
	// The walk is the first thread's, which takes the signals.
	runtime.LockOSThread()
}

func runSignalled() {
	array := make([]uint64, signalledWords)
	fmt.Printf("ready %#x\n", uintptr(unsafe.Pointer(&array[len(array)/2])))
	var ended atomic.Bool
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		ended.Store(true)
	}()
	// Nobody reads the channel: it is the handler that matters.
	signal.Notify(make(chan os.Signal, 1), unix.SIGALRM)
	every := unix.NsecToTimeval(int64(signalEvery))
	if _, err := unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{Interval: every, Value: every}); err != nil {
		fmt.Println("setitimer:", err)
		os.Exit(1)
	}
	sum := uint64(0)
	for !ended.Load() {
		for _, v := range array {
			sum += v
		}
	}
	fmt.Println(sum)
}

// startSignalled starts the program, which ends with stdin, and says where its
// array is.
func startSignalled() (cmd *exec.Cmd, stdin io.Closer, addr uint64, err error) {
	cmd, stdin, ready, err := startProgram("/proc/self/exe", signalledArg)
	if err != nil {
		return nil, nil, 0, err
	}
	if addr, err = strconv.ParseUint(ready, 0, 64); err != nil {
		stdin.Close()
		_ = cmd.Wait()
		return nil, nil, 0, fmt.Errorf("program did not say where its array is: %w", err)
	}
	return cmd, stdin, addr, nil
}

// startProgram starts a program that ends with stdin and says "ready", and what else,
// when it is.
func startProgram(path string, args ...string) (cmd *exec.Cmd, stdin io.WriteCloser, said string, err error) {
	cmd = exec.Command(path, args...)
	cmd.Env = []string{"GOGC=off", "GOMAXPROCS=1"}
	if stdin, err = cmd.StdinPipe(); err != nil {
		return nil, nil, "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, "", err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	said, ready := strings.CutPrefix(line, "ready")
	if err != nil || !ready {
		stdin.Close()
		_ = cmd.Wait()
		return nil, nil, "", fmt.Errorf("program did not start: %q", line)
	}
	return cmd, stdin, strings.TrimSpace(said), nil
}

// fewestSeen is the share of uses that must be seen beside signals. Of few a handful may not: the session may end before the
// thread that was held last has run again, and what a handler does may lead Go's runtime elsewhere than was read ahead.
const (
	fewestSeen = .99
	handful    = 3
)

// signalled profiles the program that takes signals. It says what share of the
// uses was seen, and fails if it is too small or if, afterwards, a watchpoint of
// somebody else's does not fire in the thread.
func signalled() (string, error) {
	cmd, stdin, addr, err := startSignalled()
	if err != nil {
		return "", err
	}
	defer cmd.Wait()
	defer stdin.Close()
	const out = "/tmp/signalled.pb.gz"
	rdx := exec.Command("/rdx", "attach", "-p", strconv.Itoa(cmd.Process.Pid), "--overhead", "50", "--duration", "3s", "--source", "clock", "-o", out, "--caches", "32K")
	if text, err := rdx.CombinedOutput(); err != nil {
		return "", fmt.Errorf("rdx attach: %w: %.200s", err, text)
	}
	u, err := usesOf(out)
	if err != nil {
		return "", err
	}
	all := float64(max(u.seen+u.interrupted+u.missed, 1))
	seen := float64(u.seen+u.interrupted) / all
	cell := fmt.Sprintf("%.1f %% / %.1f %%", 100*seen, 100*float64(u.interrupted)/all)
	if seen < fewestSeen && u.missed > handful {
		return cell, errors.New("uses are not seen")
	}
	traps, err := trapsOf(cmd.Process.Pid, addr)
	if err == nil && traps == 0 {
		err = errors.New("the thread's watchpoints are dead")
	}
	return cell, err
}

// uses are how many of the samples watched had their use seen, not seen, or lost because a handler came between its trap and
// the use.
type uses struct{ seen, missed, interrupted int64 }

func usesOf(path string) (u uses, err error) {
	p, err := pprofout.ReadFile(path)
	if err != nil {
		return u, err
	}
	for _, r := range p.Records {
		u.seen += r.Observations
	}
	for _, c := range p.Counts {
		switch c.Name {
		case model.LostBecause.Of(model.UseNotSeen):
			u.missed = c.N
		case model.LostBecause.Of(model.HandlerBetween):
			u.interrupted = c.N
		}
	}
	return u, nil
}

// trapsOf counts the accesses to a word in the thread, for a while.
func trapsOf(tid int, addr uint64) (uint64, error) {
	const readWrite = 3
	attr := unix.PerfEventAttr{
		Type:    unix.PERF_TYPE_BREAKPOINT,
		Size:    uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bp_type: readWrite,
		Ext1:    addr,
		Ext2:    8,
		Bits:    unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
	fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("watch a word: %w", err)
	}
	defer unix.Close(fd)
	time.Sleep(200 * time.Millisecond)
	var n [8]byte
	if _, err := unix.Read(fd, n[:]); err != nil {
		return 0, fmt.Errorf("read watchpoint: %w", err)
	}
	return *(*uint64)(unsafe.Pointer(&n)), nil
}
