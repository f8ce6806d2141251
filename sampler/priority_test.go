// Needs: root.
package sampler

import (
	"os"
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
