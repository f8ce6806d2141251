// Needs: root, bpf, watchpoint, gcc, bash; a control group for one. What a user types.
package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// threadsSeen are those of the observations and losses, by thread number.
func threadsSeen(p *model.Profile) map[int]int64 {
	seen := map[int]int64{}
	for i := range p.Records {
		seen[p.Records[i].TID] += p.Records[i].Observations
	}
	return seen
}

// Several processes by number, in all the ways in which they are written, and by name.
func TestAttachSeveral(t *testing.T) {
	needRoot(t)
	sum := compile(t, "sum")
	named := filepath.Join(filepath.Dir(sum), fmt.Sprintf("several%d", os.Getpid()))
	if out, err := exec.Command("cp", sum, named).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	a, b := target(t, named, "1"), target(t, named, "1")
	first, second := strconv.Itoa(a.pid), strconv.Itoa(b.pid)
	for _, how := range [][]string{{first, second}, {"-p", first + "," + second}, {"-p", first + " " + second}, {"-p", first, second}, {filepath.Base(named)}} {
		var last map[int]int64
		bySessions(t, fmt.Sprint("observations of both by ", how), func() bool {
			args := append(append([]string{"attach"}, busy...), "-d", "1s")
			p := rdx(t, append(args, how...)...).profile()
			last = map[int]int64{}
			for tid, n := range threadsSeen(p) {
				for _, pid := range []int{a.pid, b.pid} {
					if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", pid, tid)); err == nil {
						last[pid] += n
					}
				}
			}
			return last[a.pid] > 0 && last[b.pid] > 0
		})
		assertUntraced(t, a.pid)
		assertUntraced(t, b.pid)
	}
	a.end()
	b.end()
}

// A process and what it has started, by tree and by control group.
func TestAttachTree(t *testing.T) {
	needRoot(t)
	needTool(t, "bash")
	sum := compile(t, "sum")
	// The parent waits; its child works.
	parent := start(t, "bash", "-c", `exec 3<&0; "$0" 1 <&3 3<&- & exec 3<&-; wait`, sum)
	if line := parent.line(); line != "ready" {
		t.Fatalf("the child says %q", line)
	}
	defer parent.cmd.Process.Kill()
	args := append(append([]string{"attach"}, busy...), "-d", "1s")
	observed := func(how ...string) func() bool {
		return func() bool {
			_, n := useNames(rdx(t, append(append([]string{}, args...), how...)...).profile())
			return n > 0
		}
	}
	bySessions(t, "observations of the child", observed("--tree", strconv.Itoa(parent.pid)))
	// Without, it is said which process is busy, and what to type.
	bySessions(t, "advice to use --tree", func() bool {
		out, _ := exec.Command(rdxPath(t), "attach", "-d", "1s", "-o", filepath.Join(t.TempDir(), "p.pb.gz"), strconv.Itoa(parent.pid)).CombinedOutput()
		return strings.Contains(strings.Join(strings.Fields(string(out)), " "), "rdx attach --tree "+strconv.Itoa(parent.pid))
	})
	group := ""
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct"} {
		g := filepath.Join(dir, fmt.Sprintf("rdx-test-%d", os.Getpid()))
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil && os.Mkdir(g, 0o755) == nil {
			group = g
			break
		}
	}
	if group == "" {
		t.Skip("no control group can be made here")
	}
	t.Cleanup(func() {
		parent.cmd.Process.Kill()
		for end := time.Now().Add(deadline); os.Remove(group) != nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		}
	})
	child, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent.pid, parent.pid))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), bytes.TrimSpace(child), 0); err != nil {
		t.Skip(err)
	}
	bySessions(t, "observations of the control group", observed("--cgroup", strings.TrimPrefix(group, "/sys/fs/cgroup/")))
}

// -o - writes the profile to standard output, and - is standard input for all that read one.
func TestProfileThroughPipes(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "sum"), "1")
	cmd := exec.Command(rdxPath(t), append([]string{"attach", "-o", "-", "-d", "1s", "-p", strconv.Itoa(p.pid)}, busy...)...)
	profile, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	p.end()
	if _, err := pprofout.Read(bytes.NewReader(profile)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"top", "-"}, {"hist", "-"}, {"mrc", "-"}, {"threads", "-"}} {
		cmd := exec.Command(rdxPath(t), args...)
		cmd.Stdin = bytes.NewReader(profile)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	if _, err := os.Stat("-"); err == nil {
		t.Error("there is a file -")
	}
}

// A trace from a pipe that has a name loses nothing, as /dev/stdin and a shell's <(...) are such.
func TestTraceFromPipe(t *testing.T) {
	needTool(t, "bash")
	direct, err := exec.Command("bash", "-c", `"$0" gen --zipf 1 -n 500 -t 20000 | "$0" exact -`, rdxPath(t)).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{`"$0" exact <("$0" gen --zipf 1 -n 500 -t 20000)`, `"$0" gen --zipf 1 -n 500 -t 20000 | "$0" exact /dev/stdin`} {
		out, err := exec.Command("bash", "-c", how, rdxPath(t)).CombinedOutput()
		_, got, _ := strings.Cut(string(out), "\n")
		_, want, _ := strings.Cut(string(direct), "\n")
		if err != nil || got != want || want == "" {
			t.Errorf("%s: %v\n%s\nwant\n%s", how, err, out, direct)
		}
	}
}

// Ctrl-C while a program is being started, which goes to all of the terminal's processes at once: it has not run, or it
// has and ends by the signal; never is it left to run unprofiled, with a good exit code.
func TestInterruptedStart(t *testing.T) {
	needRoot(t)
	begun, kept := filepath.Join(t.TempDir(), "begun"), t.TempDir()
	begin := func() *process {
		cmd := exec.Command(rdxPath(t), "run", "-q", "-o", filepath.Join(t.TempDir(), "p.pb.gz"), "--", "sh", "-c", "echo x >"+begun+"; exec sleep 60")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Env = append(os.Environ(), "RDX_CACHE="+kept)
		return startCmd(t, cmd)
	}
	// How long it takes here until the program begins, when costs have been measured.
	var took time.Duration
	for range 2 {
		os.Remove(begun)
		start := time.Now()
		s := begin()
		eventually(t, "the program begins", func() bool { _, err := os.Stat(begun); return err == nil })
		took = time.Since(start)
		syscall.Kill(-s.pid, syscall.SIGINT)
		s.wait()
	}
	const moments = 16
	for i := range moments {
		s := begin()
		after := took * time.Duration(i) / (moments - 4)
		time.Sleep(after)
		syscall.Kill(-s.pid, syscall.SIGINT)
		began := time.Now()
		done := make(chan int, 1)
		go func() { done <- s.wait() }()
		select {
		case code := <-done:
			if code == 0 {
				t.Errorf("after %v of %v: exit code 0: %s", after, took, s.stderr.String())
			}
		case <-time.After(20 * time.Second):
			syscall.Kill(-s.pid, syscall.SIGKILL)
			t.Fatalf("after %v of %v: still there %v after Ctrl-C", after, took, time.Since(began))
		}
	}
}

// The disk that was to have the profile is full when the session ends: the summary is shown, and the profile is where the error says.
func TestDiskFullAtTheEnd(t *testing.T) {
	needRoot(t)
	full, elsewhere := t.TempDir(), t.TempDir()
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("mounting a tmpfs:", err)
	}
	defer syscall.Unmount(full, 0)
	p := target(t, compile(t, "sum"), "1")
	cmd := exec.Command(rdxPath(t), append(append([]string{"attach"}, busy[1:]...), "-o", filepath.Join(full, "p.pb.gz"), "-p", strconv.Itoa(p.pid))...)
	cmd.Env = append(os.Environ(), "TMPDIR="+elsewhere)
	s := &session{startCmd(t, cmd), filepath.Join(full, "p.pb.gz")}
	s.seized(p.pid)
	began := cpuTime(t, p.pid)
	eventually(t, "the target runs for a while, of which there is something to write", func() bool { return cpuTime(t, p.pid)-began > 300*time.Millisecond })
	if err := os.WriteFile(filepath.Join(full, "filler"), make([]byte, 2<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	s.cmd.Process.Signal(os.Interrupt)
	if code := s.wait(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	said := s.stderr.String()
	kept, err := filepath.Glob(filepath.Join(elsewhere, "rdx-*.pb.gz"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%q are elsewhere, want one profile: %v, %s", kept, err, said)
	}
	for _, want := range []string{"no space left on device", "it is in " + kept[0] + " instead", "observation"} {
		if !strings.Contains(said, want) {
			t.Errorf("want %q in: %s", want, said)
		}
	}
	readProfile(t, kept[0])
	assertUntraced(t, p.pid)
	p.end()
}
