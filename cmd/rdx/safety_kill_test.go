// Needs: root, bpf, watchpoint, gcc. rdx or its target die at random instants.
package main_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

// signalRounds attaches n times to a target that checks its own work and
// sends the signal to rdx at a random instant.
func signalRounds(t *testing.T, n int, signal syscall.Signal, ended func(*session), flags ...string) {
	t.Helper()
	needRoot(t)
	if long {
		n = 200
	}
	r := random(t)
	sum := compile(t, "sum")
	target := target(t, sum, "3")
	attached := 0
	for i := range n {
		var s *session
		if i%4 == 0 {
			// Before, during and after attaching.
			s = startAttach(t, target.pid, flags...)
			time.Sleep(time.Duration(r.IntN(100_000)) * time.Microsecond)
		} else {
			s = attach(t, target.pid, flags...)
			time.Sleep(time.Duration(r.IntN(40_000)) * time.Microsecond)
		}
		if procField(target.pid, "TracerPid") != "0" {
			attached++
		}
		s.cmd.Process.Signal(signal)
		ended(s)
		assertFree(t, target.pid)
		if t.Failed() {
			t.Fatalf("in round %d: %s", i, procState(target.pid))
		}
	}
	if attached < n/2 {
		t.Errorf("only %d of %d rounds were attached when the signal came", attached, n)
	}
	t.Logf("%d rounds, %d attached; target: %s", n, attached, target.end())
}

func TestKilled(t *testing.T) {
	signalRounds(t, 200, syscall.SIGKILL, killed)
}

func killed(s *session) {
	s.t.Helper()
	if code := s.wait(); code != 128+9 {
		s.t.Fatalf("rdx: exit code %d: %s", code, s.stderr.String())
	}
}

// A session ended by Ctrl-C or SIGTERM writes a whole profile; one that had
// not yet begun writes none.
func TestInterrupted(t *testing.T) { signalRounds(t, 40, syscall.SIGINT, whole(syscall.SIGINT)) }
func TestTerminated(t *testing.T)  { signalRounds(t, 20, syscall.SIGTERM, whole(syscall.SIGTERM)) }
func TestHungUp(t *testing.T)      { signalRounds(t, 10, syscall.SIGHUP, whole(syscall.SIGHUP)) }

func whole(signal syscall.Signal) func(*session) {
	return func(s *session) {
		s.t.Helper()
		if s.wait() == 128+int(signal) {
			if _, err := os.Stat(s.output); err == nil {
				s.t.Errorf("rdx was killed by %v and has written a profile", signal)
			}
			return
		}
		s.profile()
	}
}

// Targets of their own for each round, started by rdx: they finish without it.
func TestRunKilled(t *testing.T) {
	needRoot(t)
	r := random(t)
	sum := compile(t, "sum")
	want, err := exec.Command(sum, "2", "300").Output()
	if err != nil {
		t.Fatal(err)
	}
	finished := 0
	for i := range 40 {
		s := rdx(t, append(append([]string{"run"}, busy...), "--", sum, "2", "300")...)
		var out strings.Builder
		window := 400 * time.Millisecond
		if i%2 == 0 {
			// When the program is at work; the others before or after it has started.
			out.WriteString(s.line() + "\n")
			window = 150 * time.Millisecond
		}
		time.Sleep(time.Duration(r.IntN(int(window))))
		s.cmd.Process.Kill()
		s.wait()
		for l := s.line(); l != ""; l = s.line() {
			out.WriteString(l + "\n")
		}
		switch out.String() {
		case "": // killed before it had started the program
		case string(want):
			finished++
		default:
			t.Fatalf("round %d: target says %q, want %q", i, out.String(), want)
		}
	}
	if finished < 20 {
		t.Errorf("only %d of 40 targets were started", finished)
	}
	t.Logf("%d of 40 targets were started and finished right", finished)
}

// The target is killed while rdx holds its threads.
func TestTargetKilled(t *testing.T) {
	needRoot(t)
	r := random(t)
	sum := compile(t, "sum")
	n, empty := 40, 0
	if long {
		n = 200
	}
	for range n {
		p := target(t, sum, "3")
		s := attach(t, p.pid)
		// By its own time: where others want the CPU, too, little is sampled in 40 ms of the wall's.
		began, ran := cpuTime(t, p.pid), time.Duration(r.IntN(60_000))*time.Microsecond
		eventually(t, "the target runs", func() bool { return cpuTime(t, p.pid)-began > ran })
		p.cmd.Process.Kill()
		if countOf(s.profile(), model.Holds) == 0 {
			empty++
		}
	}
	t.Logf("%d of %d targets were killed before any sample", empty, n)
	if empty > n/2 {
		t.Error("too many to tell")
	}
}
