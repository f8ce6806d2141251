// Needs: root, bpf, watchpoint, gcc. rdx run passes on what the program does and gets.
package main_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"golang.org/x/sys/unix"
)

func run(t *testing.T, argv ...string) *session {
	t.Helper()
	return rdx(t, append(append([]string{"run"}, busy...), append([]string{"--"}, argv...)...)...)
}

func TestRunExitCode(t *testing.T) {
	needRoot(t)
	for _, c := range []struct {
		script string
		code   int
	}{
		{"exit 0", 0},
		{"exit 3", 3},
		{"exit 255", 255},
		{"kill -TERM $$", 128 + 15},
		{"kill -KILL $$", 128 + 9},
		{"kill -SEGV $$", 128 + 11},
	} {
		s := run(t, "sh", "-c", c.script)
		if code := s.wait(); code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s", c.script, code, c.code, s.stderr.String())
		}
		readProfile(t, s.output)
	}
}

// Needs: root, bpf, watchpoint, gcc. Where it is the children that work the user is told what profiles them, and not where they
// don't, or are profiled.
func TestRunSuggestsFollow(t *testing.T) {
	needRoot(t)
	bin := compile(t, "sum")
	for _, c := range []struct {
		told bool
		argv []string
	}{
		{true, []string{"--", "sh", "-c", bin + " 1 6000; true"}},
		{false, []string{"--follow", "--", "sh", "-c", bin + " 1 6000; true"}},
		{false, []string{"--", bin, "1", "6000"}},
	} {
		output := filepath.Join(t.TempDir(), "p.pb.gz")
		s := &session{start(t, append([]string{rdxPath(t), "run", "-o", output}, c.argv...)...), output}
		if code := s.wait(); code != 0 {
			t.Fatalf("%v: exit code %d: %s", c.argv, code, s.stderr.String())
		}
		if told := strings.Contains(strings.Join(strings.Fields(s.stderr.String()), " "), "--follow profiles them, too"); told != c.told {
			t.Errorf("%v: told %v, want %v: %s", c.argv, told, c.told, s.stderr.String())
		}
	}
}

// A program that ends at once: a valid profile with hardly a sample.
func TestRunEndsAtOnce(t *testing.T) {
	needRoot(t)
	s := run(t, "true")
	p := s.profile()
	// A tick every 100 µs at most of the few milliseconds that the program takes, and
	// eight samples of each hold.
	sampled := time.Duration(p.CountOf(model.CPUSampled))
	if most := 8 * int(1+sampled/(100*time.Microsecond)); len(p.Records) > most || sampled > 20*time.Millisecond {
		t.Errorf("%d records of %v, want %d at most", len(p.Records), sampled, most)
	}
	if p.Command != "true" {
		t.Errorf("command %q", p.Command)
	}
	t.Logf("%d records of %v", len(p.Records), sampled)
	if out, err := exec.Command(rdxPath(t), "top", s.output).CombinedOutput(); err != nil {
		t.Errorf("rdx top of it: %v: %s", err, out)
	}
}

func TestRunNotFound(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	notExecutable := filepath.Join(dir, "text")
	os.WriteFile(notExecutable, []byte("x"), 0o644)
	notProgram := filepath.Join(dir, "data")
	os.WriteFile(notProgram, []byte("\x7fELF nonsense"), 0o755)
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		os.WriteFile(path, []byte(text), 0o755)
		return path
	}
	for _, c := range []struct {
		program, want string
		code          int
	}{
		{"no-such-program-anywhere", "no-such-program-anywhere", 127},
		{filepath.Join(dir, "none"), "no such file", 127},
		{notExecutable, "permission denied", 126},
		{dir, "is a directory", 126},
		{notProgram, "exec format error (a program that is damaged", 126},
		{script("plain", "echo x\n"), "or a script without a first line such as #!/bin/sh: rdx run -- sh /", 126},
		{script("lost", "#!/nonesuch/sh\n"), "the file is there, what it is run by is not", 127},
	} {
		s := run(t, c.program)
		code := s.wait()
		said := strings.TrimSuffix(s.stderr.String(), "\n")
		if code != c.code || strings.Contains(said, "\n") || !strings.Contains(said, c.want) {
			t.Errorf("exit code %d, want %d; says %q, want one line with %q", code, c.code, said, c.want)
		}
		t.Log(said)
		assertNoFile(t, filepath.Dir(s.output))
	}
}

func TestRunReadsStdin(t *testing.T) {
	needRoot(t)
	s := run(t, "cat")
	go func() {
		io.WriteString(s.stdin, "one\ntwo\n")
		s.stdin.Close()
	}()
	if a, b, c := s.line(), s.line(), s.line(); a != "one" || b != "two" || c != "" {
		t.Errorf("cat says %q, %q, %q", a, b, c)
	}
	s.profile()
}

// What a program can see of how it was started is the same with and without
// rdx before it.
func TestRunTransparent(t *testing.T) {
	needRoot(t)
	const script = `ulimit -a; umask; pwd; nice; tty; ls -l /proc/self/fd | sed 's/.*[0-9] //' | grep -v -e pipe -e /proc; grep -E 'Sig(Blk|Ign|Cgt)|ShdPnd|NoNewPrivs|Seccomp|Cap' /proc/self/status; ps -o pgid= -p $$ | wc -w; env | grep -v '^_=' | sort`
	// Files that are open beside the standard ones, as those of make's job server are.
	const opened = `exec 3</dev/null 4>/dev/zero 7</etc/passwd; exec "$@"`
	plain := start(t, "sh", "-c", opened, "sh", "sh", "-c", script)
	plain.stdin.Close()
	output := filepath.Join(t.TempDir(), "p.pb.gz")
	argv := append([]string{"sh", "-c", opened, "sh", rdxPath(t), "run", "-o", output}, busy...)
	traced := &session{start(t, append(argv, "--", "sh", "-c", script)...), output}
	traced.stdin.Close()
	for {
		a, b := plain.line(), traced.line()
		if a != b {
			t.Errorf("rdx run: %q, without: %q", b, a)
		}
		if a == "" || b == "" {
			break
		}
	}
	traced.profile()
}

// Under nohup both rdx and the program outlive the terminal.
func TestRunIgnoredSignals(t *testing.T) {
	needRoot(t)
	output := filepath.Join(t.TempDir(), "p.pb.gz")
	script := "trap '' HUP INT; exec " + rdxPath(t) + " run -q -o " + output + " -- " + compile(t, "sum") + " 1"
	s := &session{start(t, "sh", "-c", script), output}
	if line := s.line(); line != "ready" {
		t.Fatalf("target says %q", line)
	}
	target := childOf(t, s.pid)
	for _, pid := range []int{s.pid, target} {
		unix.Kill(pid, unix.SIGHUP)
		unix.Kill(pid, unix.SIGINT)
	}
	eventually(t, "target works on", works(target))
	if procField(target, "TracerPid") == "0" {
		t.Error("the session has ended")
	}
	s.stdin.Close()
	s.profile()
}

// Ctrl-C on a terminal goes to both: the program ends by it, or as it likes,
// and the profile is written.
func TestRunInterrupted(t *testing.T) {
	needRoot(t)
	sum := compile(t, "sum")
	for _, c := range []struct {
		name string
		argv []string
		code int
	}{
		{"dies", []string{sum, "2"}, 128 + 2},
		{"cleans up", []string{"sh", "-c", "trap 'sleep 0.3; echo bye; exit 5' INT; echo ready; while :; do :; done"}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			output := filepath.Join(t.TempDir(), "p.pb.gz")
			cmd := exec.Command(rdxPath(t), append(append([]string{"run", "-o", output}, busy...), append([]string{"--"}, c.argv...)...)...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			s := &session{startCmd(t, cmd), output}
			if line := s.line(); line != "ready" {
				t.Fatalf("target says %q", line)
			}
			eventually(t, "the target is held", waits(childOf(t, s.pid)))
			unix.Kill(-s.pid, unix.SIGINT)
			if code := s.wait(); code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, s.stderr.String())
			}
			if c.code == 5 {
				if line := s.line(); line != "bye" {
					t.Errorf("target says %q", line)
				}
			}
			if p := readProfile(t, s.output); countOf(p, model.Holds) == 0 {
				t.Error("no samples")
			}
		})
	}
}

// A signal that rdx alone gets is passed on once the profile is written.
func TestRunTerminated(t *testing.T) {
	needRoot(t)
	for signal, code := range map[syscall.Signal]int{syscall.SIGTERM: 128 + 15, syscall.SIGHUP: 128 + 1} {
		s := run(t, compile(t, "sum"), "2")
		if line := s.line(); line != "ready" {
			t.Fatalf("target says %q", line)
		}
		s.cmd.Process.Signal(signal)
		if got := s.wait(); got != code {
			t.Errorf("%v: exit code %d, want %d: %s", signal, got, code, s.stderr.String())
		}
		readProfile(t, s.output)
	}
}

// A duration ends the sampling, not the program, whose exit code counts.
func TestRunDuration(t *testing.T) {
	needRoot(t)
	s := run(t, "sh", "-c", "sleep 0.6; exit 9")
	s2 := rdx(t, "run", "-q", "-d", "100ms", "--", "sh", "-c", "sleep 0.6; exit 9")
	for _, s := range []*session{s, s2} {
		if code := s.wait(); code != 9 {
			t.Errorf("exit code %d, want 9: %s", code, s.stderr.String())
		}
		readProfile(t, s.output)
	}
}

// On a terminal a line tells how the session goes, again and again; it is wiped out
// before the summary.
func TestProgressOnTerminal(t *testing.T) {
	needRoot(t)
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("needs pseudo-terminals: %v", err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("needs pseudo-terminals: %v", err)
	}
	p := target(t, compile(t, "sum"), "2")
	output := filepath.Join(t.TempDir(), "p.pb.gz")
	cmd := exec.Command(rdxPath(t), "attach", "-o", output, "-d", "30s", "-p", strconv.Itoa(p.pid))
	cmd.Stderr = terminal
	s := startCmd(t, cmd)
	terminal.Close()
	line := regexp.MustCompile(`\r +[0-9.]+s  [23] threads  [0-9]+ samples  [0-9]+ pairs  overhead [0-9.]+%  \(Ctrl-C ends\)\x1b\[K`)
	var said []byte
	ended := false
	for b := make([]byte, 4096); ; {
		n, err := master.Read(b)
		said = append(said, b[:n]...)
		if err != nil { // rdx has closed the other end: EIO
			break
		}
		// As many as are asked for, however long they take.
		if !ended && len(line.FindAll(said, -1)) >= 3 {
			ended = true
			cmd.Process.Signal(syscall.SIGINT)
		}
	}
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	lines := line.FindAllIndex(said, -1)
	if len(lines) < 3 {
		t.Fatalf("%d lines of progress in %q", len(lines), said)
	}
	if summary := said[lines[len(lines)-1][1]:]; !bytes.HasPrefix(summary, []byte("\r\x1b[K")) || !bytes.Contains(summary, []byte(output)) {
		t.Errorf("after the last line: %q", summary)
	}
	readProfile(t, output)
	p.end()
}
