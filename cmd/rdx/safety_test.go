// Needs: root, bpf, watchpoint, gcc; some tests name more. What the safety tests share: the
// rdx binary, targets from testdata/safety, sessions on them, and the check
// that nothing of rdx is left in a target.
package main_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// deadline is for events that normally take milliseconds.
const deadline = 30 * time.Second

// long asks for the full counts, which take minutes.
var long = os.Getenv("RDX_LONG") != ""

// built holds the binaries; ordinary users must be able to run them. TestMain
// makes and removes it.
func built() string { return os.Getenv("RDX_TEST_DIR") }

func needRoot(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

func needTool(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs %s", name)
		}
	}
}

var rdxOnce = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built(), "rdx")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build rdx: %w\n%s", err, out)
	}
	return path, err
})

func rdxPath(t *testing.T) string {
	t.Helper()
	path, err := rdxOnce()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var compiled sync.Map // output path -> func() error

// compile builds a target: testdata/safety/NAME.c, or the Go program in
// testdata/safety/NAME.
func compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	source := filepath.Join("testdata", "safety", name)
	path := filepath.Join(built(), name+strings.Join(flags, ""))
	cmd := exec.Command("gcc", append([]string{"-O2", "-Wall", "-pthread", "-o", path, source + ".c", "-lrt"}, flags...)...)
	if _, err := os.Stat(source); err == nil {
		cmd = exec.Command("go", "build", "-o", path, "./"+source)
	} else {
		needTool(t, "gcc")
	}
	build, _ := compiled.LoadOrStore(path, sync.OnceValue(func() error {
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", path, err, out)
		}
		return nil
	}))
	if err := build.(func() error)(); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually waits for an event that must come.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	within(t, deadline, what, happened)
}

// bySessions waits for what sessions, one after the other, must come to see: beside other work each
// takes several times as long, and sees less.
func bySessions(t *testing.T, what string, seen func() bool) {
	t.Helper()
	within(t, samplesWithin, what, seen)
}

func within(t *testing.T, limit time.Duration, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !happened(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", limit, what)
		}
	}
}

// process is a program a test started. It is gone when the test ends.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	pid    int
	stdin  io.WriteCloser
	lines  chan string // of standard output
	stderr bytes.Buffer
	exited chan struct{}
}

func start(t *testing.T, argv ...string) *process {
	t.Helper()
	return startCmd(t, exec.Command(argv[0], argv[1:]...))
}

// A shell's & has us ignore Ctrl-C, nohup a hang-up; what we start shall not.
var ignoredHere = slices.DeleteFunc([]os.Signal{syscall.SIGINT, syscall.SIGHUP}, func(s os.Signal) bool { return !signal.Ignored(s) })

var handled = make(chan os.Signal, 1)

// handleSignals is called anew for each process: tests that run rdx in this one undo it, after which signal.Ignored
// says false of what is ignored again.
func handleSignals() {
	if len(ignoredHere) > 0 {
		signal.Notify(handled, ignoredHere...)
	}
}

func startCmd(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	handleSignals()
	p := &process{t: t, cmd: cmd, lines: make(chan string, 4096), exited: make(chan struct{})}
	var err error
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	// A pipe of our own: children of the process may hold on to it.
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = in
	if cmd.Stderr == nil {
		cmd.Stderr = &p.stderr
	}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	p.pid = cmd.Process.Pid
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		out.Close()
		close(p.lines)
	}()
	go func() {
		cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			for len(p.lines) > 0 {
				t.Logf("%v says: %s", cmd.Args, <-p.lines)
			}
			if p.stderr.Len() > 0 || !cmd.ProcessState.Success() {
				t.Logf("%v: %v %s", cmd.Args, cmd.ProcessState, p.stderr.String())
			}
		}
	})
	return p
}

// target starts a program of ours and waits until it is at work.
func target(t *testing.T, argv ...string) *process {
	t.Helper()
	p := start(t, argv...)
	if line := p.line(); line != "ready" {
		t.Fatalf("target says %q, want ready", line)
	}
	return p
}

// line is the next line of standard output, "" at its end.
func (p *process) line() string {
	p.t.Helper()
	select {
	case l := <-p.lines:
		return l
	case <-time.After(deadline):
		p.t.Fatalf("process %d (%v): no output in %v", p.pid, p.cmd.Args, deadline)
		return ""
	}
}

// wait returns the exit code, or 128 and the signal.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(deadline):
		p.t.Errorf("process %d (%v) does not end: %s", p.pid, p.cmd.Args, procState(p.pid))
		p.dump()
		p.t.FailNow()
	}
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// dump has rdx say what it is at, and shows what it has started.
func (p *process) dump() {
	p.t.Helper()
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.pid))
	for _, list := range lists {
		pids, _ := os.ReadFile(list)
		for _, pid := range strings.Fields(string(pids)) {
			argv, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			n, _ := strconv.Atoi(pid)
			p.t.Logf("its child %s: %q, %s", pid, argv, procState(n))
		}
	}
	if filepath.Base(p.cmd.Path) != "rdx" {
		return
	}
	p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.exited:
	case <-time.After(deadline / 3):
	}
}

// end lets a target finish, which must have nothing to complain of.
func (p *process) end() string {
	p.t.Helper()
	p.stdin.Close()
	last := ""
	for l := p.line(); l != ""; l = p.line() {
		last = l
	}
	if code := p.wait(); code != 0 || !strings.HasPrefix(last, "ok") {
		p.t.Fatalf("target %v: exit code %d, says %q, %s", p.cmd.Args, code, last, p.stderr.String())
	}
	return last
}

// session is rdx at work.
type session struct {
	*process
	output string
}

// busy makes rdx sample as often as it can, at once: what accesses cost in caches so small is measured within milliseconds.
var busy = []string{"-q", "--period", "200us", "--overhead", "90", "--caches", "32K,1M"}

func rdx(t *testing.T, args ...string) *session {
	t.Helper()
	output := filepath.Join(t.TempDir(), "p.pb.gz")
	argv := append([]string{rdxPath(t), args[0], "-o", output}, args[1:]...)
	return &session{start(t, argv...), output}
}

// attach starts rdx on a process and waits until it has seized it.
func attach(t *testing.T, pid int, args ...string) *session {
	t.Helper()
	s := startAttach(t, pid, args...)
	s.seized(pid)
	return s
}

// attachBriefly is attach to a program that ends by itself: it does nothing until rdx has it, however long that takes.
func attachBriefly(t *testing.T, p *process, args ...string) *session {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGSTOP)
	s := attach(t, p.pid, args...)
	p.cmd.Process.Signal(syscall.SIGCONT)
	return s
}

func startAttach(t *testing.T, pid int, args ...string) *session {
	t.Helper()
	return rdx(t, append(append([]string{"attach", "-p", strconv.Itoa(pid)}, busy...), args...)...)
}

func (s *session) seized(pid int) {
	s.t.Helper()
	eventually(s.t, "rdx seizes the target", func() bool {
		select {
		case <-s.exited:
			if s.cmd.ProcessState.Success() { // a short session may be over before we look
				return true
			}
			s.t.Fatalf("rdx ended: %v", s.cmd.ProcessState)
		default:
		}
		for _, tid := range tids(pid) {
			// The tracer is one of rdx's threads.
			if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%s", s.pid, procField(tid, "TracerPid"))); err == nil {
				return true
			}
		}
		return false
	})
}

// stop ends the session as Ctrl-C would and returns its profile.
func (s *session) stop() *model.Profile {
	s.t.Helper()
	s.cmd.Process.Signal(syscall.SIGINT)
	return s.profile()
}

// profile waits for a session that must end well, without a word.
func (s *session) profile() *model.Profile {
	s.t.Helper()
	if code := s.wait(); code != 0 || s.stderr.Len() > 0 {
		s.t.Fatalf("rdx: exit code %d: %s", code, s.stderr.String())
	}
	return readProfile(s.t, s.output)
}

func readProfile(t *testing.T, path string) *model.Profile {
	t.Helper()
	p, err := pprofout.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Comments {
		if strings.Contains(c, "ended early") {
			t.Errorf("profile: %s", c)
		}
	}
	return p
}

func countOf(p *model.Profile, name model.CountName) int { return int(p.CountOf(name)) }

// longestSession is what sessions grow to that are made until enough was seen: each begins and ends with half a second of CPU time.
const longestSession = 4 * time.Second

// attachUntil samples the target again and again, for longer each time, until its profiles are enough.
func attachUntil(t *testing.T, pid int, enough func(*model.Profile) bool, args ...string) {
	t.Helper()
	d := 500 * time.Millisecond
	for end := time.Now().Add(10 * deadline); ; d = min(2*d, longestSession) {
		profile := attach(t, pid, append([]string{"-d", d.String()}, args...)...).profile()
		assertFree(t, pid)
		switch {
		case enough(profile):
			return
		case time.Now().After(end):
			t.Fatalf("too little was seen in %v", 10*deadline)
		}
	}
}

// sampleUntil attaches again and again until rdx has held the target's
// threads n times.
func sampleUntil(t *testing.T, pid, n int, args ...string) (holds int) {
	t.Helper()
	attachUntil(t, pid, func(p *model.Profile) bool {
		holds += countOf(p, model.Holds)
		return holds >= n
	}, args...)
	return holds
}

func procField(tid int, name string) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	for _, l := range strings.Split(string(b), "\n") {
		if k, v, ok := strings.Cut(l, ":"); ok && k == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func procState(pid int) string {
	var sb strings.Builder
	for _, tid := range tids(pid) {
		fmt.Fprintf(&sb, "thread %d: %s, tracer %s; ", tid, procField(tid, "State"), procField(tid, "TracerPid"))
	}
	return sb.String()
}

func tids(pid int) []int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	var out []int
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, tid)
		}
	}
	return out
}

// assertFree checks, after rdx has ended, that the process is as before: no
// thread traced or stopped, all debug registers free.
func assertFree(t *testing.T, pid int) {
	t.Helper()
	assertUntraced(t, pid)
	for _, tid := range tids(pid) {
		if n := freeRegisters(t, tid); n >= 0 && n < 4 {
			t.Errorf("thread %d: %d debug registers free, want 4", tid, n)
		}
	}
}

func assertUntraced(t *testing.T, pid int) {
	t.Helper()
	for _, tid := range tids(pid) {
		if tracer := procField(tid, "TracerPid"); tracer != "0" && tracer != "" {
			t.Errorf("thread %d is traced by %s", tid, tracer)
		}
		if state := procField(tid, "State"); strings.HasPrefix(state, "T") || strings.HasPrefix(state, "t") {
			t.Errorf("thread %d: %s", tid, state)
		}
	}
}

// freeRegisters says how many watchpoints can be set in a thread, -1 if it is
// gone.
func freeRegisters(t *testing.T, tid int) (n int) {
	t.Helper()
	for n = 0; n < 5; n++ {
		attr := unix.PerfEventAttr{
			Type: unix.PERF_TYPE_BREAKPOINT, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
			Bp_type: 3, Ext1: 0x1000, Ext2: 8, Sample: 1,
			Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
		}
		fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		switch {
		case errors.Is(err, unix.ENOSPC):
			return n
		case errors.Is(err, unix.ESRCH):
			return -1
		case err != nil:
			t.Fatalf("open watchpoint in thread %d: %v", tid, err)
		}
		defer unix.Close(fd)
	}
	return n
}

// assertNoFile checks that nothing was left where a profile would be.
func assertNoFile(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("left behind: %s", filepath.Join(dir, e.Name()))
	}
}

// random instants; the seed is printed.
func random(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("RDX_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("RDX_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
