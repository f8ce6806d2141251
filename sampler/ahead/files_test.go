// Needs: nothing.
package ahead

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Files that are open to write alone leave the room to those that are read.
func TestPlanFilesToRead(t *testing.T) {
	open := func(name string, flags int) int {
		f, err := os.OpenFile(filepath.Join(t.TempDir(), name), flags|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return int(f.Fd())
	}
	var written []int
	for range 2 * mostFiles {
		written = append(written, open("log", os.O_WRONLY|os.O_APPEND))
	}
	read := open("in", os.O_RDONLY)
	var f files
	if err := f.plan(unix.Getpid()); err != nil {
		t.Fatal(err)
	}
	for _, fd := range written {
		if slices.Contains(f.regular, fd) {
			t.Errorf("descriptor %d, open to write alone, is one of those to read: %v", fd, f.regular)
		}
	}
	if len(f.regular) < mostFiles && !slices.Contains(f.regular, read) {
		t.Errorf("descriptor %d, open to read, is not one of those to read: %v", read, f.regular)
	}
}
