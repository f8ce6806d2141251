// Needs: root, bpf, watchpoint, gcc, xz. Targets that would notice a signal, or an
// interrupted system call, that is not theirs.
package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// Threads that block in every system call that a signal interrupts for good,
// or with a timeout, alternating with work.
func TestBlockingCalls(t *testing.T) {
	needRoot(t)
	n := 1000
	if long {
		n = 10_000
	}
	p := target(t, compile(t, "block"))
	holds := sampleUntil(t, p.pid, n)
	t.Logf("%d samples; target: %s", holds, p.end())
}

// The same with all signals blocked, where no signal can hold a thread: none is
// held, and the CPU time is counted as not sampled.
func TestBlockingCallsMasked(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "block"), "masked")
	profile := attach(t, p.pid, "-d", "1s").profile()
	assertUnsampled(t, profile, model.CPUMasked, 1)
	if n := countOf(profile, model.Holds); n > 0 {
		t.Errorf("%d holds", n)
	}
	assertFree(t, p.pid)
	if end := p.end(); !strings.HasSuffix(end, " cut=0") {
		t.Errorf("transfers cut short: %s", end)
	}
}

// assertUnsampled wants at least that share of the CPU time to be counted under
// the name, but for a tick that is under way when the counts are read.
func assertUnsampled(t *testing.T, profile *model.Profile, name model.CountName, share float64) {
	t.Helper()
	masked, sampled := profile.CountOf(name), profile.CountOf(model.CPUSampled)
	t.Logf("%v sampled, %v not", time.Duration(sampled), time.Duration(masked))
	tick := 1.25 * float64(masked+sampled) / float64(max(countOf(profile, model.Samples), 1))
	if all := float64(masked + sampled); all == 0 || float64(masked) < share*all-tick {
		t.Errorf("%d ns of CPU time sampled, %d not, want %g not: %v", sampled, masked, share, profile.Counts)
	}
}

// With --interrupt those that often wait are left alone, and none is interrupted
// at a wait, nor a transfer ended half-way.
func TestBlockingCallsMaskedInterrupted(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "block"), "masked")
	interrupts, left := 0, 0
	for range 4 {
		profile := attach(t, p.pid, "--interrupt", "-d", "700ms").profile()
		interrupts += countOf(profile, model.HoldInterrupts)
		left += countOf(profile, model.LostBecause.Of(model.SignalsWaited))
		if n := countOf(profile, model.Holds); n != countOf(profile, model.HoldInterrupts) {
			t.Errorf("%d holds, %d by interrupt", n, countOf(profile, model.HoldInterrupts))
		}
		assertUnsampled(t, profile, model.CPUWaiting, 0.01)
		assertFree(t, p.pid)
	}
	end := p.end()
	t.Logf("%d interrupts, %d ticks left alone; target: %s", interrupts, left, end)
	if interrupts == 0 || left == 0 {
		t.Error("want some of both")
	}
	if !strings.HasSuffix(end, " cut=0") {
		t.Error("transfers cut short")
	}
}

// sampled runs a target under rdx until it was held n times.
func sampled(t *testing.T, n int, argv ...string) string {
	t.Helper()
	needRoot(t)
	if long {
		n *= 10
	}
	p := target(t, argv...)
	holds := sampleUntil(t, p.pid, n)
	end := p.end()
	t.Logf("%d samples; target: %s", holds, end)
	return end
}

func TestHandlesURG(t *testing.T) {
	sampled(t, 400, compile(t, "signals"), fmt.Sprint(int(syscall.SIGURG)))
}

// With both signals handled, rdx holds by SIGWINCH.
func TestHandlesURGAndWINCH(t *testing.T) {
	sampled(t, 400, compile(t, "signals"), fmt.Sprint(int(syscall.SIGURG)), fmt.Sprint(int(syscall.SIGWINCH)))
}

func TestHandlesOtherSignals(t *testing.T) {
	sampled(t, 200, compile(t, "signals"), "1", "2", "3", "10", "12", "13", "14")
}

// Every session's end, too, must leave no signal behind.
func TestHandlesURGAndWINCHAttachedOften(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "signals"), fmt.Sprint(int(syscall.SIGURG)), fmt.Sprint(int(syscall.SIGWINCH)))
	r := random(t)
	for range 25 {
		startAttach(t, p.pid, "-d", fmt.Sprintf("%dms", 1+r.IntN(40))).profile()
	}
	t.Log(p.end())
}

func TestUsesSIGTRAP(t *testing.T) { sampled(t, 200, compile(t, "trap")) }

// A hypervisor may lose what a watchpoint's exception was of. The kernel then sends a SIGTRAP, which a target that is watched must not see.
func TestStrayTraps(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("arm64 has no such exceptions")
	}
	stray := compile(t, "stray")
	var status *exec.ExitError
	if err := exec.Command(stray, "1").Run(); !errors.As(err, &status) || status.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTRAP {
		t.Fatalf("by itself it ends with %v, want SIGTRAP", err)
	}
	const traps = 500
	p := rdx(t, "run", "-q", "--", stray, fmt.Sprint(traps)).profile()
	if got := countOf(p, model.TrapsStray); got != traps {
		t.Errorf("%d traps counted, want %d", got, traps)
	}
}

// No signal can hold such threads: they are not sampled, or interrupted, and
// nothing but what the target sends itself may ever be pending.
func TestBlocksAllSignals(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "blockall"))
	profile := attach(t, p.pid, "-d", "500ms").profile()
	assertUnsampled(t, profile, model.CPUMasked, 1)
	assertFree(t, p.pid)
	profile = attach(t, p.pid, "--interrupt", "-d", "1s").profile()
	lost := countOf(profile, model.LostBecause.Of(model.SignalsWaited))
	if n := countOf(profile, model.HoldInterrupts); n != countOf(profile, model.Holds) || n+lost == 0 {
		t.Errorf("%d holds by interrupt, %d lost: %v", n, lost, profile.Counts)
	}
	assertFree(t, p.pid)
	t.Log(p.end())
}

func TestRealTimeSignals(t *testing.T) { sampled(t, 50, compile(t, "realtime")) }

// Signals that a program ignores reach it if it is traced, and interrupt
// epoll_wait: rdx has the call made again.
func TestIgnoredSignals(t *testing.T) {
	end := sampled(t, 300, compile(t, "ignored"))
	if !strings.Contains(end, "interrupted=0") {
		t.Error("ignored signals interrupted epoll_wait")
	}
}

// The workers of xz -T2 block all signals. They must do right, and be seen, or
// what they did be told as not seen.
func TestMaskedWorkers(t *testing.T) {
	t.Run("left alone", func(t *testing.T) {
		profile, seen := maskedWorkers(t)
		assertUnsampled(t, profile, model.CPUMasked, 0.5)
		if len(seen) > 0 || countOf(profile, model.HoldInterrupts) > 0 {
			t.Errorf("observations by worker: %v, counts %v", seen, profile.Counts)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		profile, seen := maskedWorkers(t, "--interrupt")
		t.Logf("%d interrupts; observations by worker: %v", countOf(profile, model.HoldInterrupts), seen)
		if countOf(profile, model.HoldInterrupts) < 50 || len(seen) != 2 {
			t.Errorf("%v", profile.Counts)
		}
	})
}

// maskedWorkers profiles xz -T2, whose output must be right, and says how many
// observations there were of each worker.
func maskedWorkers(t *testing.T, flags ...string) (*model.Profile, map[int]int) {
	t.Helper()
	needRoot(t)
	needTool(t, "xz")
	in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
	r, data := random(t), make([]byte, 24<<20)
	for i := range data {
		data[i] = 'a' + byte(r.IntN(4)) // compresses, slowly
	}
	if err := os.WriteFile(in, data, 0o600); err != nil {
		t.Fatal(err)
	}
	rdxPath(t) // built before xz begins, which ends by itself
	p := start(t, "sh", "-c", fmt.Sprintf("exec xz -T2 -1 --block-size=1MiB -c %s >%s", in, out))
	eventually(t, "xz has its workers", func() bool { return len(tids(p.pid)) > 2 })
	profile := attachBriefly(t, p, flags...).profile()
	if code := p.wait(); code != 0 {
		t.Errorf("xz: exit code %d", code)
	}
	again, err := exec.Command("xz", "-dc", out).Output()
	if err != nil || !bytes.Equal(again, data) {
		t.Errorf("xz has written something else: %v", err)
	}
	threads := make(map[int]int)
	for _, r := range profile.Records {
		threads[r.TID] += int(r.Observations)
	}
	delete(threads, p.pid)
	return profile, threads
}
