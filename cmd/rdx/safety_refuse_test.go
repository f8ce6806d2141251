// Needs: root, bpf, watchpoint, gcc, setpriv. Missing rights and bad input: a one-line error that
// says what to do, an exit code that is not 0, no file left behind.
package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
)

// as runs rdx attach with setpriv's arguments before it, in a folder that
// anybody may write to.
func as(t *testing.T, privileges []string, pid int) *session {
	t.Helper()
	dir, err := os.MkdirTemp(built(), "out")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(dir, "p.pb.gz")
	argv := append([]string{"setpriv"}, privileges...)
	argv = append(argv, rdxPath(t), "attach", "-o", output, "-d", "500ms", "-p", strconv.Itoa(pid))
	return &session{start(t, append(argv, busy...)...), output}
}

func TestNotRoot(t *testing.T) {
	needRoot(t)
	needTool(t, "setpriv")
	p := target(t, compile(t, "sum"), "1")
	refusedSession(t, "root", as(t, []string{"--reuid", "65534", "--regid", "65534", "--clear-groups"}, p.pid))
	assertFree(t, p.pid)
	p.end()
}

// Root without one of the capabilities that rdx needs.
func TestMissingCapabilities(t *testing.T) {
	needRoot(t)
	needTool(t, "setpriv")
	sum := compile(t, "sum")
	for _, c := range []struct{ drop, want string }{
		{"-sys_admin,-bpf,-perfmon", "CAP_BPF"},
		{"-sys_admin,-bpf", "CAP_BPF"},
		{"-sys_admin,-perfmon", "CAP_PERFMON"},
	} {
		t.Run(c.drop, func(t *testing.T) {
			p := target(t, sum, "1")
			refusedSession(t, c.want, as(t, []string{"--bounding-set", c.drop, "--inh-caps", c.drop}, p.pid))
			assertFree(t, p.pid)
			p.end()
		})
	}
	t.Run("-sys_ptrace", func(t *testing.T) {
		// Of another user: of one's own, the right is not needed.
		p := target(t, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sum, "1")
		refusedSession(t, "CAP_SYS_PTRACE", as(t, []string{"--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"}, p.pid))
		assertFree(t, p.pid)
		p.end()
	})
	// The least that suffices.
	t.Run("only three", func(t *testing.T) {
		p := target(t, sum, "1")
		caps := "-all,+bpf,+perfmon,+sys_ptrace"
		s := as(t, []string{"--bounding-set", caps, "--inh-caps", caps}, p.pid)
		if n := countOf(s.profile(), model.Holds); n == 0 {
			t.Error("no samples")
		}
		assertFree(t, p.pid)
		p.end()
	})
	// Of another user's process, too: a sample is of use only if its memory can be read, and if it is known that
	// it has no userfaultfd.
	t.Run("only three, another user's", func(t *testing.T) {
		p := target(t, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sum, "1")
		caps := "-all,+bpf,+perfmon,+sys_ptrace"
		var observed, lost int64
		bySessions(t, "observations", func() bool {
			profile := as(t, []string{"--bounding-set", caps, "--inh-caps", caps}, p.pid).profile()
			assertFree(t, p.pid)
			_, n := useNames(profile)
			observed += n
			for _, c := range profile.Counts {
				if model.LostBecause.Has(c.Name) {
					lost += c.N
				}
			}
			return observed > 50
		})
		if lost > observed {
			t.Errorf("%d lost, %d observed", lost, observed)
		}
		p.end()
	})
}

func TestUnwritableOutput(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "sum"), "1")
	defer p.end()
	for _, c := range []struct {
		name, want string
		early      bool // before any sampling
		output     func(t *testing.T, dir string) string
	}{
		{"folder", "is a directory", true, func(t *testing.T, dir string) string { return dir }},
		{"no folder", "no such file or directory", true, func(t *testing.T, dir string) string { return filepath.Join(dir, "none", "p.pb.gz") }},
		{"below a file", "not a directory", true, func(t *testing.T, dir string) string { return "/dev/null/p.pb.gz" }},
		{"full device", "no space left on device", false, func(t *testing.T, dir string) string { return "/dev/full" }},
		{"empty", "no file name", true, func(t *testing.T, dir string) string { return "" }},
		{"full disk", "no space left on device", false, func(t *testing.T, dir string) string {
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"); err != nil {
				t.Skipf("needs tmpfs: %v", err)
			}
			t.Cleanup(func() { unix.Unmount(dir, 0) })
			// One page is the folder's; the other is taken.
			if err := os.WriteFile(filepath.Join(dir, "full"), make([]byte, 8192), 0o600); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(dir, "p.pb.gz")
		}},
		{"read-only", "read-only file system", true, func(t *testing.T, dir string) string {
			if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY, ""); err != nil {
				t.Skipf("needs tmpfs: %v", err)
			}
			t.Cleanup(func() { unix.Unmount(dir, 0) })
			return filepath.Join(dir, "p.pb.gz")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			output := c.output(t, dir)
			duration := "300ms"
			if c.early {
				duration = "1h"
			}
			s := &session{start(t, rdxPath(t), "attach", "-q", "-o", output, "-d", duration, "-p", strconv.Itoa(p.pid)), output}
			code := s.wait()
			said := strings.TrimSuffix(s.stderr.String(), "\n")
			if code != 1 && code != 2 || strings.Contains(said, "\n") || !strings.Contains(said, c.want) {
				t.Errorf("exit code %d: %q, want one line with %q", code, said, c.want)
			}
			t.Log(said)
			entries, _ := os.ReadDir(dir)
			for _, e := range entries {
				if e.Name() != "full" {
					t.Errorf("left behind: %s", e.Name())
				}
			}
			assertFree(t, p.pid)
		})
	}
}

// A profile that can't be replaced stays as it was.
func TestFailedWriteKeepsOldProfile(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "sum"), "1")
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("needs tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, 0) })
	output := filepath.Join(dir, "p.pb.gz")
	old := bytes.Repeat([]byte("old"), 8192/3)
	if err := os.WriteFile(output, old, 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, rdxPath(t), "attach", "-q", "-o", output, "-d", "300ms", "-p", strconv.Itoa(p.pid))
	if s.wait() == 0 {
		t.Error("exit code 0")
	}
	if b, err := os.ReadFile(output); err != nil || !bytes.Equal(b, old) {
		t.Errorf("old profile: %d bytes of %d, %v", len(b), len(old), err)
	}
	p.end()
}

func TestCorruptProfile(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "sum"), "1")
	s := attach(t, p.pid, "-d", "500ms")
	s.profile()
	p.end()
	whole, err := os.ReadFile(s.output)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 0xff
	for name, data := range map[string][]byte{
		"empty":     {},
		"text":      []byte("not a profile\n"),
		"truncated": whole[:len(whole)/2],
		"flipped":   flipped,
		"zeros":     make([]byte, 4096),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		unreadable(t, path)
	}
	unreadable(t, filepath.Join(dir, "none"))
	unreadable(t, dir)
	if out, err := exec.Command(rdxPath(t), "top", s.output).CombinedOutput(); err != nil {
		t.Errorf("rdx top of a good profile: %v: %s", err, out)
	}
}

func unreadable(t *testing.T, path string) {
	t.Helper()
	for _, command := range []string{"top", "hist"} {
		out, err := exec.Command(rdxPath(t), command, path).CombinedOutput()
		said := strings.TrimSuffix(string(out), "\n")
		if err == nil || strings.Contains(said, "\n") || !strings.Contains(said, filepath.Base(path)) {
			t.Errorf("rdx %s %s: %v: %q, want one line that names it", command, path, err, said)
		}
		t.Log(said)
	}
}

func TestBadFlags(t *testing.T) {
	needRoot(t)
	self := strconv.Itoa(os.Getpid())
	for _, flags := range []string{
		"--overhead=0x", "--overhead=-1", "--overhead=101", "--overhead=NaN", "--period=1ns", "--period=-1s", "--slots=5", "--slots=-1",
		"--bins=-3", "--access-rate=-1", "--access-rate=Inf", "--duration=-1s", "--caches=x", "--nosuch", "--burst-engine=x",
	} {
		refused(t, "", "attach", "-p", self, flags)
	}
}
