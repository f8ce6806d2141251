// Needs: root, bpf, watchpoint, gcc, gdb, strace, setpriv, unshare. Targets of every
// kind: correct work or a clear error, and nothing left behind.
package main_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/interp"
)

// refused expects rdx to end with a one-line error that contains want, and to
// leave no file.
func refused(t *testing.T, want string, args ...string) {
	t.Helper()
	s := rdx(t, args...)
	s.stdin.Close()
	refusedSession(t, want, s)
}

func refusedSession(t *testing.T, want string, s *session) {
	t.Helper()
	code := s.wait()
	said := strings.TrimSuffix(s.stderr.String(), "\n")
	if code != 1 && code != 2 {
		t.Errorf("%v: exit code %d, want 1 or 2", s.cmd.Args[1:], code)
	}
	if strings.Count(said, "\n") > 0 || !strings.HasPrefix(said, "rdx: ") || !strings.Contains(said, want) {
		t.Errorf("%v says %q, want one line with %q", s.cmd.Args[1:], said, want)
	}
	t.Log(said)
	assertNoFile(t, filepath.Dir(s.output))
}

// attachable expects that rdx can sample the process and does it no harm.
func attachable(t *testing.T, pid int) {
	t.Helper()
	holds := 0
	bySessions(t, "samples", func() bool {
		p := attach(t, pid, "-d", "300ms").profile()
		assertFree(t, pid)
		holds += countOf(p, model.Holds)
		return holds > 20 && len(p.Records) > 0
	})
	t.Logf("%d samples", holds)
}

func refuse(t *testing.T, pid int, want string) {
	t.Helper()
	refused(t, want, "attach", "-p", strconv.Itoa(pid), "-d", "1s")
}

func TestTracedByGDB(t *testing.T) {
	needRoot(t)
	needTool(t, "gdb")
	tracedBy(t, "gdb", "-q", "-nx", "-p")
}

func TestTracedByStrace(t *testing.T) {
	needRoot(t)
	needTool(t, "strace")
	tracedBy(t, "strace", "-f", "-o", "/dev/null", "-p")
}

func tracedBy(t *testing.T, argv ...string) {
	p := target(t, compile(t, "sum"), "2")
	// rdx first: the other is turned away, and the session goes on.
	s := attach(t, p.pid)
	other := start(t, append(argv, strconv.Itoa(p.pid))...)
	other.stdin.Close()
	other.wait()
	s.stop()
	assertFree(t, p.pid)
	// The other first.
	other = start(t, append(argv, strconv.Itoa(p.pid))...)
	eventually(t, "the tracer attaches", func() bool {
		tracer := procField(p.pid, "TracerPid")
		return tracer != "0" && tracer != ""
	})
	refuse(t, p.pid, fmt.Sprintf("already traced by process %d", other.pid))
	// gdb leaves at the end of its input, strace when it is told to.
	other.stdin.Close()
	if argv[0] == "strace" {
		other.cmd.Process.Signal(syscall.SIGTERM)
	}
	other.wait()
	eventually(t, "the tracer is gone", func() bool { return procField(p.pid, "TracerPid") == "0" })
	attachable(t, p.pid)
	p.end()
}

func TestKernelThread(t *testing.T) {
	needRoot(t)
	if procField(2, "VmSize") != "" || procField(2, "Name") != "kthreadd" {
		t.Skip("needs kernel threads: not the host's PID namespace")
	}
	refuse(t, 2, "kernel thread")
}

func TestZombie(t *testing.T) {
	needRoot(t)
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	eventually(t, "zombie", func() bool { return strings.HasPrefix(procField(cmd.Process.Pid, "State"), "Z") })
	refuse(t, cmd.Process.Pid, "zombie")
}

func TestNoSuchProcess(t *testing.T) {
	needRoot(t)
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	refuse(t, cmd.Process.Pid, "no such process")
	refused(t, "name a process", "attach")
	refused(t, "not a process number", "attach", "-p", "-5")
	refused(t, "no process is named", "attach", "-p", "x")
}

// rdx knows 64-bit code only and says so.
func TestAttach32Bit(t *testing.T) {
	needRoot(t)
	p := target(t, compile32(t))
	refuse(t, p.pid, "32-bit")
	assertFree(t, p.pid)
	p.end()
}

func TestRun32Bit(t *testing.T) {
	needRoot(t)
	s := rdx(t, append(append([]string{"run"}, busy...), "--", compile32(t), "40")...)
	s.stdin.Close()
	if code := s.wait(); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.stderr.String())
	}
	p := readProfile(t, s.output)
	if len(p.Records) > 0 || countOf(p, model.LostBecause.Of("32-bit code")) == 0 {
		t.Errorf("%d records, counts %v", len(p.Records), p.Counts)
	}
}

func compile32(t *testing.T) string {
	t.Helper()
	path := filepath.Join(built(), "gosum386")
	cmd := exec.Command("go", "build", "-o", path, "./testdata/safety/gosum")
	cmd.Env = append(os.Environ(), "GOARCH=386", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", path, err, out)
	}
	if err := exec.Command(path).Run(); errors.Is(err, syscall.ENOEXEC) {
		t.Skip("needs a kernel that runs 32-bit programs")
	}
	return path
}

func childOf(t *testing.T, pid int) (child int) {
	t.Helper()
	eventually(t, "child process", func() bool {
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			if n, err := strconv.Atoi(e.Name()); err == nil && procField(n, "PPid") == strconv.Itoa(pid) {
				child = n
				return true
			}
		}
		return false
	})
	return child
}

// As in a container: PIDs and mounts of the target's own.
func TestOtherNamespaces(t *testing.T) {
	needRoot(t)
	needTool(t, "unshare")
	p := target(t, "unshare", "-pm", "--fork", "--mount-proc", compile(t, "sum"), "2")
	attachable(t, childOf(t, p.pid))
	p.end()
}

// The other way round rdx cannot work, and says why.
func TestInsidePIDNamespace(t *testing.T) {
	needRoot(t)
	needTool(t, "unshare")
	output := filepath.Join(t.TempDir(), "p.pb.gz")
	p := start(t, "unshare", "-pm", "--fork", "--mount-proc", rdxPath(t), "run", "-o", output, "--", compile(t, "sum"), "1", "10")
	refusedSession(t, "PID namespace", &session{p, output})
}

// The target ends at any instant of an attachment: before rdx looks for it, when some of its threads are seized, or
// when it is sampled.
func TestExitsDuringAttach(t *testing.T) {
	needRoot(t)
	r := random(t)
	sum := compile(t, "sum")
	n := 25
	if long {
		n = 400
	}
	// On average so long after rdx was started: sooner after a profile, later after an error, which is about when rdx
	// attaches, however long that takes here and now.
	after := 100 * time.Millisecond
	profiles, errors := 0, 0
	for range n {
		p := target(t, sum, "2")
		s := startAttach(t, p.pid)
		time.Sleep(time.Duration(2 * r.Float64() * float64(after)))
		p.stdin.Close()
		switch code := s.wait(); code {
		default:
			t.Errorf("rdx: exit code %d: %s", code, s.stderr.String())
		case 0:
			profiles++
			after = after * 4 / 5
			s.profile()
		case 1:
			errors++
			after = after * 5 / 4
			want := "no such process"
			if strings.Contains(s.stderr.String(), "zombie") {
				want = "zombie"
			}
			refusedSession(t, want, s)
		}
		if code := p.wait(); code != 0 {
			t.Fatalf("target: exit code %d", code)
		}
	}
	t.Logf("%d profiles, %d errors; at last after %v on average", profiles, errors, after)
	if profiles == 0 || errors == 0 {
		t.Error("want some of both")
	}
}

func TestExecChain(t *testing.T) {
	needRoot(t)
	for _, mode := range []string{"plain", "thread"} {
		s := rdx(t, append(append([]string{"run"}, busy...), "--", compile(t, "exec"), "20", mode)...)
		if code := s.wait(); code != 7 {
			t.Errorf("exit code %d, want 7: %s", code, s.stderr.String())
		}
		if line := s.line(); line != "ok" {
			t.Errorf("target says %q", line)
		}
		p := readProfile(t, s.output)
		if countOf(p, model.Holds) == 0 {
			t.Error("no samples")
		}
		t.Logf("%d samples, %d records", countOf(p, model.Holds), len(p.Records))
	}
}

// An ordinary user's process executes a set-user-ID program while rdx, run by
// root, is attached: it gets its rights as ever.
func TestExecSetuid(t *testing.T) {
	needRoot(t)
	needTool(t, "setpriv")
	plain := compile(t, "setuid")
	privileged := filepath.Join(built(), "setuid-root")
	b, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(privileged, b, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(privileged, os.ModeSetuid|0o755); err != nil {
		t.Fatal(err)
	}
	asNobody := []string{"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"}
	direct := start(t, append(asNobody, privileged)...)
	direct.stdin.Close()
	if line := direct.line(); line != "ok euid=0" {
		t.Skipf("set-user-ID programs do not work in %s: %s", built(), line)
	}
	p := target(t, append(asNobody, plain, privileged)...)
	s := attach(t, p.pid)
	if line := p.end(); line != "ok euid=0" {
		t.Errorf("target says %q, want euid=0", line)
	}
	profile := s.profile()
	t.Logf("%d samples", countOf(profile, model.Holds))
}

func TestForkHeavy(t *testing.T) { sampled(t, 200, compile(t, "fork")) }
func TestForkFollow(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "fork"))
	profile := attach(t, p.pid, "--follow", "-d", "1s").profile()
	assertFree(t, p.pid)
	t.Logf("%d samples; target: %s", countOf(profile, model.Holds), p.end())
}

// Ten thousand threads come and go while rdx attaches and detaches.
func TestThreadChurn(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "churn"))
	n := 8
	if long {
		n = 50
	}
	holds := 0
	for range n {
		profile := attach(t, p.pid, "-d", "400ms").profile()
		holds += countOf(profile, model.Holds)
		assertUntraced(t, p.pid)
	}
	end := p.end()
	var threads int
	fmt.Sscanf(end, "ok threads=%d", &threads)
	if threads < 100*n || holds == 0 {
		t.Errorf("%d threads, %d samples", threads, holds)
	}
	t.Logf("%d samples; target: %s", holds, end)
}

// Processes and threads by the thousand that end before anything can be seen of them are
// counted, each of them, with no more descriptors than few processes need: what they map is
// the same few files.
func TestStorm(t *testing.T) {
	needRoot(t)
	needTool(t, "prlimit")
	const children, descriptors = 2000, 256
	output := filepath.Join(t.TempDir(), "p.pb.gz")
	p := start(t, "prlimit", fmt.Sprintf("--nofile=%d:%[1]d", descriptors), rdxPath(t), "run", "-q", "--follow", "-o", output, "--", compile(t, "storm"), fmt.Sprint(children))
	if said := p.line(); said != "ok" {
		t.Errorf("target says %q", said)
	}
	if code := p.wait(); code != 0 || p.stderr.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, p.stderr.String())
	}
	profile := readProfile(t, output)
	ended, ticks := countOf(profile, model.ThreadsNeverTick), countOf(profile, model.Samples)
	t.Logf("%d threads ended before their first tick, %d ticks: %v", ended, ticks, profile.Counts)
	// The ticks are mostly those of the program itself.
	if ended+ticks < children || ended < children*9/10 || countOf(profile, model.LostBecause.Of(model.ThreadNotSampled)) > 0 {
		t.Errorf("%d of %d threads ended before their first tick, %d ticks: %v", ended, children, ticks, profile.Counts)
	}
}

// runTimed profiles a program with rdx run, and returns how long it says that it ran, in ns, too.
func runTimed(t *testing.T, args ...string) (profile *model.Profile, ns float64) {
	t.Helper()
	s := rdx(t, append([]string{"run", "-q"}, args...)...)
	said := s.line()
	if code := s.wait(); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.stderr.String())
	}
	if _, err := fmt.Sscanf(said, "ok ns=%f", &ns); err != nil {
		t.Fatalf("target says %q", said)
	}
	return readProfile(t, s.output), ns
}

// The CPU time of processes that live shorter than rdx looks is counted, too, and that of the last tenth of a second.
func TestShortChildrenTime(t *testing.T) {
	needRoot(t)
	profile, ns := runTimed(t, "--follow", "--", compile(t, "children"), "20", "40000000")
	got := float64(profile.CountOf(model.CPUTarget))
	t.Logf("%.0f ms of %.0f", got/1e6, ns/1e6)
	// What a process does before it is seen, and while it exits, is one part in some.
	if got < .9*ns || got > 1.1*ns {
		t.Errorf("%.0f ms of CPU time counted, want %.0f", got/1e6, ns/1e6)
	}
}

// A thread that lives shorter than a period has its chance of a tick, too: of so much
// CPU time, so many ticks, however many threads it is of.
func TestShortThreads(t *testing.T) {
	needRoot(t)
	const period = 2e6 // ns
	for _, c := range []struct {
		threads int
		life    int // ns
	}{
		{2000, 400_000},
		{400, 2_400_000},
	} {
		profile, ns := runTimed(t, "--period", "2ms", "--overhead", "1", compile(t, "short"), fmt.Sprint(c.threads), fmt.Sprint(c.life))
		ticks, want := float64(countOf(profile, model.Samples)), ns/period
		// A thread has one tick more or less than the mean has it, no more.
		sigma := math.Sqrt(float64(c.threads) / 4)
		t.Logf("%d threads of %.1f periods: %.0f ticks, want %.0f, standard deviation %.0f; %d and %d passed over; CPU time %.2f s, sampled %.2f s", c.threads, float64(c.life)/period, ticks, want, sigma,
			countOf(profile, model.TicksPassedOver), countOf(profile, model.TicksLate), ns/1e9, float64(countOf(profile, model.CPUSampled))/1e9)
		if math.Abs(ticks-want) > 4*sigma+0.05*want {
			t.Errorf("%.0f ticks, want %.0f", ticks, want)
		}
		if sampled := float64(countOf(profile, model.CPUSampled)); math.Abs(sampled-ns) > 4*sigma*period+0.05*ns {
			t.Errorf("%.3g ns of CPU time sampled, want %.3g", sampled, ns)
		}
	}
}

func TestGoProgram(t *testing.T)   { sampled(t, 300, compile(t, "gosum")) }
func TestSeccomp(t *testing.T)     { sampled(t, 200, compile(t, "seccomp")) }
func TestNotDumpable(t *testing.T) { sampled(t, 200, compile(t, "sum"), "2", "0", "nodump") }

// A process whose first thread has exited, before rdx comes or meanwhile, is read by another one: /proc/PID has neither
// memory nor mappings then.
func TestLeaderExited(t *testing.T) {
	needRoot(t)
	for _, when := range []string{"before", "meanwhile"} {
		t.Run(when, func(t *testing.T) {
			mode := map[string]string{"before": "leaderexit", "meanwhile": "leaderexits"}[when]
			p := target(t, compile(t, "sum"), "2", "0", mode)
			exited := func() bool { return strings.HasPrefix(procField(p.pid, "State"), "Z") }
			var s *session
			if when == "before" {
				eventually(t, "the first thread exits", exited)
				s = attach(t, p.pid, "-d", "2s")
			} else {
				s = attach(t, p.pid, "-d", "2s")
				if err := unix.Tgkill(p.pid, p.pid, syscall.SIGUSR1); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the first thread exits", exited)
			}
			profile := s.profile()
			holds, lost := countOf(profile, model.Holds), countOf(profile, model.LostBecause.Of(model.Reason(ahead.NoAccessBefore+interp.Unreadable.String())))
			named := 0
			for _, r := range profile.Records {
				if m := r.Use[0].Mapping; m != nil && filepath.Base(m.File) == "sum" {
					named++
				}
			}
			if holds == 0 || lost > holds || named == 0 {
				t.Errorf("%d of %d holds lost, %d of %d records in the program", lost, holds, named, len(profile.Records))
			}
			t.Logf("%d holds, %d lost, %d of %d records in the program; target: %s", holds, lost, named, len(profile.Records), p.end())
		})
	}
}

// -p with the number of a thread means its process.
func TestAttachToThread(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "sum"), "2")
	threads := tids(p.pid) // by their numbers as words
	attachable(t, threads[(slices.Index(threads, p.pid)+1)%len(threads)])
	p.end()
}

// A held thread's page may have to be provided by another thread, which may
// itself be waiting to be let go.
func TestUserfault(t *testing.T) {
	needRoot(t)
	p := start(t, compile(t, "uffd"))
	if line := p.line(); line != "ready" {
		t.Skip(line)
	}
	holds := sampleUntil(t, p.pid, 300)
	t.Logf("%d samples; target: %s", holds, p.end())
}

func TestJobControl(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "sum"), "2")
	stopped := func(want bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("stopped: %v", want), func() bool {
			for _, tid := range tids(p.pid) {
				state := procField(tid, "State")
				if (state[0] == 'T' || state[0] == 't') != want {
					return false
				}
			}
			return true
		})
	}
	for _, end := range []string{"cont", "kill", "interrupt", "attached while stopped"} {
		t.Run(end, func(t *testing.T) {
			var s *session
			if end == "attached while stopped" {
				p.cmd.Process.Signal(syscall.SIGSTOP)
				stopped(true)
				s = attach(t, p.pid)
			} else {
				s = attach(t, p.pid)
				p.cmd.Process.Signal(syscall.SIGSTOP)
				stopped(true)
			}
			switch end {
			case "cont", "attached while stopped":
				p.cmd.Process.Signal(syscall.SIGCONT)
				stopped(false)
				eventually(t, "target works on", works(p.pid))
				s.stop()
			case "kill":
				s.cmd.Process.Kill()
				s.wait()
				stopped(true) // as it would be without rdx
				p.cmd.Process.Signal(syscall.SIGCONT)
			case "interrupt":
				s.stop()
				stopped(true)
				p.cmd.Process.Signal(syscall.SIGCONT)
			}
			stopped(false)
			assertFree(t, p.pid)
			eventually(t, "target works on", works(p.pid))
		})
	}
	p.end()
}

// Ctrl-Z on rdx would leave the target's threads held.
func TestStopKey(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "sum"), "2")
	cmd := exec.Command(rdxPath(t), append(append([]string{"attach", "-o", filepath.Join(t.TempDir(), "p.pb.gz")}, busy...), "-p", strconv.Itoa(p.pid))...)
	// A process group of its own, as a shell makes: members of an orphaned
	// one do not stop.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s := &session{startCmd(t, cmd), cmd.Args[3]}
	s.seized(p.pid)
	for _, signal := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTOU, syscall.SIGTTIN} {
		cmd.Process.Signal(signal)
		eventually(t, "target works on", works(p.pid))
		if state := procField(s.pid, "State"); state[0] == 'T' {
			t.Errorf("rdx after %v: %s", signal, state)
		}
	}
	s.stop()
	p.end()
}

// works returns a function that says whether the process has used CPU time
// since.
func works(pid int) func() bool {
	ticks := func() int {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(b), ") ")
		f := strings.Fields(rest)
		if len(f) < 12 {
			return 0
		}
		n, _ := strconv.Atoi(f[11])
		return n
	}
	before := ticks()
	return func() bool { return ticks() > before+5 }
}

// waits returns a function that says whether a process that only computes has waited since: it has been held.
func waits(pid int) func() bool {
	switches := func() int {
		n, _ := strconv.Atoi(procField(pid, "voluntary_ctxt_switches"))
		return n
	}
	before := switches()
	return func() bool { return switches() > before+5 }
}
