// Needs: nothing; root for files of another owner and for mounts.
package safeopen

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// below is a directory taken for a process's root.
func below(t *testing.T, dir string) *Root {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := &Root{fd: fd, resolve: unix.RESOLVE_IN_ROOT, owners: []uint32{uint32(os.Geteuid())}, prefix: dir + "/"}
	t.Cleanup(func() { r.Close() })
	return r
}

// soon fails where f waits for somebody who never comes.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: has not come back in 10 s", what)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// All that somebody can put where rdx looks for a file: none is opened, none waited for.
func TestPlanted(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	outside := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(outside, []byte("secret"), 0o600))
	must(t, unix.Mkfifo(in("fifo"), 0o666))
	must(t, os.Mkdir(in("dir"), 0o755))
	must(t, os.Symlink(outside, in("absolute")))
	must(t, os.Symlink("../../../../../../../.."+outside, in("dots")))
	must(t, os.Symlink("fifo", in("link")))
	must(t, os.Symlink("circle", in("circle")))
	must(t, os.Symlink("/proc/self/fd/0", in("magic")))
	l, err := net.Listen("unix", in("socket"))
	must(t, err)
	defer l.Close()
	root := below(t, dir)
	for name, want := range map[string]string{
		"fifo":     "a named pipe",
		"/fifo":    "a named pipe",
		"link":     "a named pipe",
		"dir":      "a directory",
		"socket":   "a socket",
		"absolute": "no such file", // below the root there is none
		"dots":     "no such file",
		"circle":   "too many levels",
		"magic":    "no such file",
		"none":     "no such file",
	} {
		soon(t, name, func() {
			f, err := root.Open(name, nil)
			if f != nil || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		})
	}
}

// Below the true root: magic links of /proc, its endless files, devices.
func TestKernelsFiles(t *testing.T) {
	root, err := OfProcess()
	must(t, err)
	defer root.Close()
	for name, want := range map[string]string{
		"/proc/self/exe":            "too many levels",
		"/proc/self/root/bin/sh":    "too many levels",
		"/proc/kmsg":                "pseudo file system",
		"/proc/self/maps":           "pseudo file system",
		"/sys/kernel/uevent_seqnum": "pseudo file system",
		"/dev/zero":                 "a device",
		"/dev/tty":                  "a device",
	} {
		soon(t, name, func() {
			f, err := root.Open(name, nil)
			if f != nil || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		})
	}
}

// A link of /proc may lead to what has no end as well.
func TestLink(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	must(t, unix.Mkfifo(fifo, 0o600))
	held, err := unix.Open(fifo, unix.O_RDWR, 0) // both ends, so that opening one more would not wait
	must(t, err)
	defer unix.Close(held)
	soon(t, "fifo", func() {
		f, err := Link("/proc/self/fd/" + strconv.Itoa(held))
		if refused := (*Refused)(nil); f != nil || !errors.As(err, &refused) {
			t.Errorf("%v, want it refused", err)
		}
	})
	plain := filepath.Join(dir, "plain")
	must(t, os.WriteFile(plain, []byte("x"), 0o600))
	held, err = unix.Open(plain, unix.O_RDONLY, 0)
	must(t, err)
	defer unix.Close(held)
	must(t, os.Remove(plain)) // deleted, it is still there
	f, err := Link("/proc/self/fd/" + strconv.Itoa(held))
	must(t, err)
	defer f.Close()
	if b, err := io.ReadAll(f); string(b) != "x" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

func TestOpens(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "tmp"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "tmp", "map"), []byte("names"), 0o600))
	must(t, os.Symlink("/tmp/map", filepath.Join(dir, "link"))) // as the process means it
	root := below(t, dir)
	for _, name := range []string{"/tmp/map", "tmp/map", "/link", "/../tmp/map"} {
		f, err := root.Open(name, root.Owners())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if b, err := io.ReadAll(f); string(b) != "names" || err != nil {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		f.Close()
	}
	if _, err := root.Open("/none", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want that there is none", err)
	}
}

// What another user has written is not believed of a process.
func TestOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "map")
	must(t, os.WriteFile(name, nil, 0o644))
	must(t, os.Chown(name, 65534, 65534))
	root := below(t, dir)
	_, err := root.Open("map", root.Owners())
	if refused := (*Refused)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "user 65534") {
		t.Errorf("%v, want it refused for its owner", err)
	}
	f, err := root.Open("map", []uint32{0, 65534})
	must(t, err)
	f.Close()
}

// A process's root is that of its mount namespace, and owners are it and root.
func TestOfProcess(t *testing.T) {
	root, err := Of(os.Getpid())
	must(t, err)
	defer root.Close()
	name := filepath.Join(t.TempDir(), "map")
	must(t, os.WriteFile(name, nil, 0o644))
	f, err := root.Open(name, root.Owners())
	must(t, err)
	f.Close()
	cwd, err := Working(os.Getpid())
	must(t, err)
	defer cwd.Close()
	f, err = cwd.Open("safeopen_test.go", nil)
	must(t, err)
	f.Close()
	if _, err := cwd.Open("../safeopen/safeopen_test.go", nil); err == nil {
		t.Error("a name that leads out of the directory was followed")
	}
	if _, err := Of(1 << 30); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want that there is no such process", err)
	}
}
