package ptrace

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/proc"
)

// A process that is a zombie when it is to be seized may be gone when the reason is looked for: it is no kernel
// thread then, though it has no memory either.
func TestSeizeOfEnded(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if state, err := proc.Status(pid, "State"); err != nil {
			t.Fatal(err)
		} else if strings.HasPrefix(state, "Z") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("true does not end")
		}
	}
	if err := explainSeize(pid, unix.EPERM); !strings.Contains(err.Error(), "zombie") {
		t.Errorf("of a zombie: %v", err)
	}
	cmd.Wait()
	if err := explainSeize(pid, unix.EPERM); !errors.Is(err, unix.ESRCH) {
		t.Errorf("of one that is gone: %v, want %v", err, unix.ESRCH)
	}
}

// Who has the right that it takes is not told to get it: some kernels protect process 1 from everybody.
func TestSeizeOfProtected(t *testing.T) {
	err := explainSeize(1, unix.EPERM)
	if !errors.Is(err, unix.EPERM) || strings.Contains(err.Error(), "run as root") == mayTrace() {
		t.Errorf("CAP_SYS_PTRACE %v: %v", mayTrace(), err)
	}
}

// A process that has ended or never was has no living thread, and one that runs has its first.
func TestLiving(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if tid := Living(pid); tid != pid {
		t.Errorf("of %d, which runs: %d", pid, tid)
	}
	in.Close()
	cmd.Wait()
	if tid := Living(pid); tid != pid {
		t.Errorf("of %d, which is gone: %d", pid, tid)
	}
}
