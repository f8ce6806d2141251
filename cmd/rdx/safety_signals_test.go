// Needs: root, bpf, watchpoint, gcc. Targets that would notice a signal, or an
// interrupted system call, that is not theirs.
package main_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
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

// Nothing can hold such threads: all samples are lost, and counted.
func TestBlocksAllSignals(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "blockall"))
	profile := attach(t, p.pid, "-d", "1s").profile()
	if n := countOf(profile, "holds"); n > 0 {
		t.Errorf("%d holds of a target that blocks all signals", n)
	}
	if countOf(profile, "lost: thread blocks the hold signals") == 0 {
		t.Errorf("no loss counted: %v", profile.Counts)
	}
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
