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

	"github.com/rdx-profiler/rdx/sampler/safeopen/stallfs"
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

// The program's file system stops answering, as one whose server is gone: the target, which has what it needs in
// memory, runs on, and the session comes to its end.
func TestStalledFileSystem(t *testing.T) {
	needRoot(t)
	program, err := os.ReadFile(compile(t, "jit", "-static"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	fs, err := stallfs.Mount(dir, map[string][]byte{"jit": program})
	if err != nil {
		t.Skipf("needs fuse: %v", err)
	}
	defer fs.Close()
	// This process serves the files, and so has others touch them; all of it is cached from now on.
	p := target(t, "sh", "-c", `cat "$0" >/dev/null && exec "$0" "$@"`, filepath.Join(dir, "jit"), "walk", "0", "none")
	attach(t, p.pid, "-d", "300ms").profile() // what it runs is in memory
	fs.Stall()
	start := time.Now()
	s := attach(t, p.pid, "-d", "4s", "--heap") // for a hold in the file's code
	eventually(t, "the file system is asked", func() bool { return fs.Asked() > 0 })
	eventually(t, "the profile is written", func() bool { _, err := os.Stat(s.output); return err == nil })
	eventually(t, "the target is free", func() bool { return procField(p.pid, "TracerPid") == "0" })
	// The kernel keeps rdx itself, which has asked, until there is an answer.
	fs.Close()
	profile := s.profile()
	t.Logf("%v, %d records; %q", time.Since(start), len(profile.Records), profile.Comments)
	assertFree(t, p.pid)
	if said := strings.Join(profile.Comments, "\n"); !strings.Contains(said, "does not answer") {
		t.Errorf("it is not said that the file system does not answer:\n%s", said)
	}
	assertLaps(t, p)
}
