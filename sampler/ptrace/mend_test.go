//go:build amd64

// Needs: ptrace of own children, gcc.
package ptrace

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// waiting waits in a call that the kernel never makes again by itself, until its standard input ends or for far longer
// than any test, and says how the call ended.
const waiting = `#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
int main(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	int fd = epoll_create1(0);
	if (epoll_ctl(fd, EPOLL_CTL_ADD, 0, &e) != 0) {
		perror("epoll_ctl");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	int n = epoll_wait(fd, &e, 1, 3600000);
	printf("%d %d %d\n", n, n < 0 ? errno : 0, n > 0 && (e.events & EPOLLHUP) != 0);
	return 0;
}
`

// takesAll takes every SIGURG for a hold, in which it reads the registers.
type takesAll struct {
	watcher
	seen chan int
}

func (h takesAll) Hold(tid int, signal unix.Signal) (ours, running bool) {
	var regs unix.PtraceRegs
	inCall := unix.PtraceGetRegs(tid, &regs) != nil || int64(regs.Orig_rax) >= 0
	h.seen <- tid
	return signal == unix.SIGURG || signal == Interrupted, !inCall
}

// A hold that comes while the thread waits in a system call must not end the
// call.
func TestHoldInSyscall(t *testing.T) { testWaits(t, unix.SIGURG) }

// Nor must a signal that the program ignores, which reaches the thread only
// because it is traced.
func TestIgnoredInSyscall(t *testing.T) { testWaits(t, unix.SIGCHLD) }

// startReady compiles and starts a C program, which says that it is ready. Its standard input is a pipe.
func startReady(t *testing.T, source string) (target *exec.Cmd, in io.Closer, out *bufio.Reader) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "target")
	cc := exec.Command("gcc", "-O2", "-o", bin, "-x", "c", "-")
	cc.Stdin = strings.NewReader(source)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Skipf("needs gcc: %v: %s", err, out)
	}
	target = exec.Command(bin)
	in, err := target.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := target.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Start(); err != nil {
		t.Fatal(err)
	}
	out = bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return target, in, out
}

// Nor must an interrupt, should the thread have entered the call just now.
func TestInterruptedInSyscall(t *testing.T) { testWaits(t, Interrupted) }

// testWaits sends a waiting program signals that must not end its call.
func testWaits(t *testing.T, signal unix.Signal) {
	target, in, out := startReady(t, waiting)
	h := takesAll{watcher{make(chan int, 10)}, make(chan int, 100)}
	tr, err := NewTracer(h, false)
	if err != nil {
		t.Fatal(err)
	}
	pid := target.Process.Pid
	tr.Do(func() { err = tr.Seize(pid) })
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		send := func() error { return unix.Tgkill(pid, pid, signal) }
		if signal == Interrupted {
			// It may still be on its way into the call, or out of the last stop.
			for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Microsecond) {
				if stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); strings.Contains(string(stat), ") S ") {
					break
				}
				if time.Now().After(end) {
					t.Fatal("the target does not wait")
				}
			}
			tr.Do(func() {
				if tr.Interrupt(pid) {
					t.Error("a thread that waits was interrupted")
				}
			})
			send = func() (err error) { tr.Do(func() { err = interrupt(pid) }); return err }
		}
		if err := send(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-h.seen:
		case <-time.After(10 * time.Second):
			t.Fatal("not stopped")
		}
	}
	in.Close()
	line, err := out.ReadString('\n')
	if line != "1 0 1\n" {
		t.Errorf("epoll_wait said %q (%v), want the end of the input and nothing before", line, err)
	}
	tr.Detach()
	target.Wait()
}

// endsCall tells of signals that would end a call.
type endsCall struct {
	watcher
	seen chan bool
}

func (h endsCall) Hold(tid int, _ unix.Signal) (ours, running bool) {
	if interrupted(tid) {
		select {
		case h.seen <- true:
		default:
		}
	}
	return false, false
}

// A signal that the program ignores may be on its way just when tracing ends.
func TestIgnoredAtDetach(t *testing.T) {
	target, in, out := startReady(t, waiting)
	pid := target.Process.Pid
	stop, said := make(chan struct{}), make(chan string, 1)
	go func() {
		line, _ := out.ReadString('\n')
		said <- line
	}()
	var senders sync.WaitGroup
	senders.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Tgkill(pid, pid, unix.SIGWINCH)
			}
		}
	})
	const turns = 300
	for turn := range turns {
		h := endsCall{watcher{make(chan int, 10)}, make(chan bool, 1)}
		tr, err := NewTracer(h, false)
		if err != nil {
			t.Fatal(err)
		}
		tr.Do(func() { err = tr.Seize(pid) })
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-h.seen:
		case line := <-said:
			t.Fatalf("epoll_wait said %q after %d turns", line, turn)
		}
		tr.Detach()
	}
	close(stop)
	senders.Wait()
	in.Close()
	if line := <-said; line != "1 0 1\n" {
		t.Errorf("epoll_wait said %q, want the end of the input and nothing before", line)
	}
	_ = target.Wait()
}
