// Needs: root or ptrace of own children.
package ptrace

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stuckHandler never comes back from a hold.
type stuckHandler struct {
	watcher
	how string
}

func (h stuckHandler) Hold(int, unix.Signal) (bool, bool) {
	fmt.Println("held")
	switch h.how {
	case "blocked": // as by a pipe that nobody writes to
		var fds [2]int
		_ = unix.Pipe(fds[:])
		var b [1]byte
		for {
			_, _ = unix.Read(fds[0], b[:])
		}
	default:
		//lint:ignore SA5002 that is what it is for
		for {
		}
	}
}

// TestStuckTracer is run by TestGuard in a process of its own.
func TestStuckTracer(t *testing.T) {
	pid, _ := strconv.Atoi(os.Getenv("RDX_TEST_STUCK_PID"))
	if pid == 0 {
		t.Skip("is part of TestGuard")
	}
	tr, err := NewTracer(stuckHandler{watcher{make(chan int, 10)}, os.Getenv("RDX_TEST_STUCK_HOW")}, false)
	if err != nil {
		t.Fatal(err)
	}
	tr.Do(func() { err = tr.Seize(pid) })
	fmt.Println("seized", err)
	<-tr.Done()
}

// A tracing thread that does not come back from a hold: the process ends, says why, and the target runs on.
func TestGuard(t *testing.T) {
	for _, how := range []string{"blocked", "endless"} {
		t.Run(how, func(t *testing.T) {
			target := exec.Command("sh", "-c", "while :; do :; done")
			if err := target.Start(); err != nil {
				t.Skip(err)
			}
			defer func() { target.Process.Kill(); target.Wait() }()
			rdx := exec.Command(os.Args[0], "-test.run=^TestStuckTracer$", "-test.v")
			rdx.Env = append(os.Environ(), "RDX_TEST_STUCK_HOW="+how, "RDX_TEST_STUCK_PID="+strconv.Itoa(target.Process.Pid))
			var said bytes.Buffer
			rdx.Stderr = &said
			out, err := rdx.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := rdx.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			var stdout bytes.Buffer
			b := make([]byte, 4096)
			for !strings.Contains(stdout.String(), "seized") {
				n, err := out.Read(b)
				if stdout.Write(b[:n]); err != nil {
					t.Fatalf("%v: %s%s", err, &stdout, &said)
				}
			}
			start := time.Now()
			unix.Kill(target.Process.Pid, unix.SIGURG)
			go func() {
				stdout.ReadFrom(out)
				ended <- rdx.Wait()
			}()
			select {
			case err := <-ended:
				t.Logf("after %v: %v; %s", time.Since(start), err, &said)
				if err == nil || !strings.Contains(said.String(), "has been at one thing for") {
					t.Errorf("ends with %v and says %q", err, &said)
				}
				if how == "blocked" && !strings.Contains(said.String(), "system call 0") && !strings.Contains(said.String(), "system call 63") { // read
					t.Errorf("does not say what it was at: %q", &said)
				}
			case <-time.After(30 * time.Second):
				rdx.Process.Kill()
				t.Fatal("has not ended in 30 s")
			}
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", target.Process.Pid))
			if !strings.Contains(string(status), "TracerPid:\t0\n") || !strings.Contains(string(status), "State:\tR") {
				t.Errorf("the target is not free:\n%.200s", status)
			}
		})
	}
}

// A tracer at work, and one that waits, is let be.
func TestGuardLetsBe(t *testing.T) {
	tr := traced(t, "sh", "-c", "while :; do sleep 0.01; done")
	why := make(chan string, 1)
	tr.Do(func() { tr.stuck = func(s string) { why <- s } })
	end := time.Now().Add(3 * guardLimit)
	for time.Now().Before(end) {
		tr.Do(func() { time.Sleep(guardLimit / 20) })
		time.Sleep(guardLimit / 5)
	}
	tr.Detach()
	select {
	case s := <-why:
		t.Error(s)
	default:
	}
}
