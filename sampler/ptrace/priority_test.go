// Needs: root.
package ptrace

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHurry(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	nice := func() int {
		t.Helper()
		p, err := unix.Getpriority(unix.PRIO_PROCESS, os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		return 20 - p
	}
	before := nice()
	undo, err := Hurry()
	if err != nil {
		t.Fatal(err)
	}
	if n := nice(); n != -20 {
		t.Errorf("nice value %d, want -20", n)
	}
	undo()
	if n := nice(); n != before {
		t.Errorf("nice value %d afterwards, was %d", n, before)
	}
}

func TestPatient(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	slacks := func() map[string]int {
		t.Helper()
		seen := map[string]int{}
		if err := threadsOfRdx(func(tid int) error {
			data, err := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", tid))
			seen[strings.TrimSpace(string(data))]++
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	undo, err := Patient()
	if err != nil {
		t.Fatal(err)
	}
	if seen := slacks(); seen["10000000"] == 0 || seen["50000"] > 0 {
		t.Errorf("threads by timer slack in ns: %v, want 10000000", seen)
	}
	undo()
	if seen := slacks(); seen["50000"] == 0 || seen["10000000"] > 0 {
		t.Errorf("threads by timer slack in ns afterwards: %v, want 50000", seen)
	}
}
