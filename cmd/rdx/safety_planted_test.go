// Needs: root, bpf, watchpoint, gcc. Files that somebody has put where rdx looks for a target's: the target
// runs on, rdx ends in time, and believes none of them.
package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const nobody = 65534

// A perf map in /tmp can be anybody's.
func TestPlantedPerfMap(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	foreign := func(name string) error {
		if err := os.WriteFile(name, []byte("10000000 1000 evil\n"), 0o644); err != nil {
			return err
		}
		return os.Chown(name, nobody, nobody)
	}
	for _, c := range []struct {
		what  string
		plant func(name string) error
		says  string // in the profile; the reason why there are no names
	}{
		{"fifo", func(name string) error {
			if err := unix.Mkfifo(name, 0o666); err != nil {
				return err
			}
			return os.Chown(name, nobody, nobody)
		}, "it is a named pipe"},
		{"device", func(name string) error { return unix.Mknod(name, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) }, "it is a device"}, // zero
		{"link to a device", func(name string) error { return os.Symlink("/dev/zero", name) }, "it is a device"},
		{"directory", func(name string) error { return os.Mkdir(name, 0o755) }, "it is a directory"},
		{"file of another", foreign, "it belongs to user 65534"},
		{"link to the file of another", func(name string) error {
			file := filepath.Join(dir, "map")
			if err := foreign(file); err != nil {
				return err
			}
			return os.Symlink(file, name)
		}, "it belongs to user 65534"},
		{"endless line", func(name string) error {
			f, err := os.Create(name)
			if err != nil {
				return err
			}
			defer f.Close()
			return f.Truncate(1 << 40)
		}, "is longer than"},
		{"link in a circle", func(name string) error { return os.Symlink(name, name) }, "too many levels"},
		{"pseudo file", func(name string) error { return os.Symlink("/proc/kmsg", name) }, "pseudo file system"},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := target(t, compile(t, "jit"), "walk", "10000000", "none")
			name := fmt.Sprintf("/tmp/perf-%d.map", p.pid)
			t.Cleanup(func() { os.Remove(name) })
			if err := c.plant(name); err != nil {
				t.Fatal(err)
			}
			profile := attach(t, p.pid, "-d", "1s").profile()
			assertFree(t, p.pid)
			for i := range profile.Records {
				for _, l := range profile.Records[i].Use {
					if len(l.Lines) > 0 && strings.Contains(l.Lines[0].Function, "evil") {
						t.Fatal("a name out of the file of another user was believed")
					}
				}
			}
			if said := strings.Join(profile.Comments, "\n"); !strings.Contains(said, c.says) {
				t.Errorf("the profile does not say %q:\n%s", c.says, said)
			}
			assertLaps(t, p)
		})
	}
}

// assertLaps wants that no lap of testdata/safety/jit.c, of half a millisecond, took so long that
// it must have been stopped, and not only have waited for a CPU.
func assertLaps(t *testing.T, p *process) {
	t.Helper()
	var longest float64
	if _, err := fmt.Sscanf(p.end(), "ok longest=%f", &longest); err != nil {
		t.Fatal(err)
	}
	if most := 5 * time.Second; longest > most.Seconds() {
		t.Errorf("the target stood still for %.2f s", longest)
	}
}
