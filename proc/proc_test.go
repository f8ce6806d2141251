package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// A process may end between the opening of its status and the reading.
func TestStatusOfEnded(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Process.Kill()
	cmd.Wait()
	if tgid, err := statusField(f, "Tgid"); !errors.Is(err, unix.ESRCH) {
		t.Errorf("status of a process that has ended: %q, %v, want %v", tgid, err, unix.ESRCH)
	}
}
