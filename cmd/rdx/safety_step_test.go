//go:build amd64

// Needs: root, bpf, watchpoint, gcc, amd64. Targets whose threads are moved on by steps.
package main_test

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

var bySteps = []string{"--burst-engine", "step"}

// The thread is about to go to its next stop, on the way, has come there, or is held there
// when rdx is killed: it goes on, and no signal is left.
func TestStepKilled(t *testing.T) {
	needs.Watchpoints(t)
	signalRounds(t, 20, syscall.SIGKILL, killed, bySteps...)
}

func TestStepEnded(t *testing.T) {
	needs.Watchpoints(t)
	signalRounds(t, 10, syscall.SIGINT, whole(syscall.SIGINT), bySteps...)
}

// How much of their time the threads of the two tests above are in bursts: of what they run for, as others may have the
// processors.
func TestStepKilledWhen(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	p := target(t, compile(t, "sum"), "3")
	holds, ran := 0, 0.0 // s
	bySessions(t, "a second of the target's time", func() bool {
		profile := attach(t, p.pid, append(bySteps, "-d", "2s")...).profile()
		holds += countOf(profile, model.Holds)
		ran += float64(profile.CountOf(model.CPUTarget)) / 1e9
		t.Logf("%d holds in %.2f s; %v", holds, ran, profile.Comments)
		return ran > 1
	})
	if least := 36 * ran; float64(holds) < least { // half of what there are on a virtual machine
		t.Errorf("%d holds, want %.0f", holds, least)
	}
	p.end()
}

// Targets that notice a signal that is not theirs, one that is lost, a flag that was
// changed, or a system call that was interrupted.
func TestStepSignals(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	n := 20
	if long {
		n = 500
	}
	urg, winch := fmt.Sprint(int(syscall.SIGURG)), fmt.Sprint(int(syscall.SIGWINCH))
	for _, tc := range [][]string{
		{"signals", urg}, {"signals", urg, winch}, {"signals", "1", "2", "3", "10", "12", "13", "14"},
		{"trap"}, {"realtime"}, {"ignored"}, {"block"}, {"fork"}, {"gosum"}, {"seccomp"}, {"sum", "2", "0", "leaderexit"},
	} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			p := target(t, append([]string{compile(t, tc[0])}, tc[1:]...)...)
			holds := sampleUntil(t, p.pid, n, bySteps...)
			t.Logf("%d holds; target: %s", holds, p.end())
		})
	}
}

// A thread that is stopped in a restartable sequence goes on elsewhere: that is the end of the burst,
// and no more than that.
func TestStepRestartable(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	path := compile(t, "rseq")
	p := start(t, path)
	switch line := p.line(); line {
	case "ready":
	case "none":
		t.Skip("needs a C library that registers restartable sequences")
	default:
		t.Fatalf("target says %q", line)
	}
	profile := attach(t, p.pid, append(bySteps, "-d", "2s")...).profile()
	if n := countOf(profile, model.BurstEnded.Of(ahead.EndRestarted)) + countOf(profile, model.LostBecause.Of(ahead.NoAccessBefore+ahead.EndRestarted)); n < 5 {
		t.Errorf("%d bursts ended in a sequence: %v", n, profile.Counts)
	}
	assertFree(t, p.pid)
	t.Log(p.end(), profile.Counts)
}

// What steps can't do is refused, not done in another way.
func TestStepRefused(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	self := strconv.Itoa(os.Getpid())
	for _, tc := range []struct{ says, flags string }{
		{"a burst", "--burst=off"},
		{"3 slots at most", "--slots=4"},
		{"one thread's accesses", "--stack=private"},
		{"the access is over", "--source=pebs"},
		{"can't be interrupted", "--interrupt"},
		{"a sample of a line takes 4 slots", "--granularity=line"},
		{"more than the 1000", "--burst=1001"},
	} {
		refused(t, tc.says, "attach", "-p", self, "--burst-engine=step", tc.flags)
	}
}
