// Needs: root, bpf, watchpoint, gcc. Threads whose sharing is known by construction.
package main_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
)

// shares are how the uses in a function of the program end, and who ended them.
type shares struct {
	observations            int64
	accesses                float64
	invalidated, falsely    float64
	foreign                 float64 // reuses by the other thread
	wrongWriter, wrongWords int
	squares                 float64 // of the weights
}

// anyWord of a line may be the one written.
const anyWord = ^uint64(0)

// worth is how many observations of equal weight these are worth.
func (s *shares) worth() int64 { return int64(s.accesses * s.accesses / s.squares) }

func (s *shares) add(p *model.Profile, function, writer string, offset uint64) {
	leaf := func(stack []*model.Location) string {
		if len(stack) > 0 && len(stack[0].Lines) > 0 {
			return stack[0].Lines[0].Function
		}
		return ""
	}
	// By Kaplan-Meier: those with a long way to their end are cut off more often.
	if err := p.Derive(); err != nil {
		panic(err)
	}
	for i := range p.Records {
		r := &p.Records[i]
		if leaf(r.Use) != function {
			continue
		}
		switch r.Kind {
		case model.FalseSharing:
			s.falsely += r.Accesses
			if r.Written%64 != offset && offset != anyWord || leaf(r.Reuse) != writer {
				s.wrongWords++
			}
			continue
		case model.Invalidated:
			s.invalidated += r.Estimated()
			if leaf(r.Reuse) != writer {
				s.wrongWriter++
			}
		case model.Reuse:
			if r.EndTID != 0 {
				s.foreign += r.Estimated()
			}
		default:
			continue
		}
		s.accesses += r.Estimated()
		s.squares += r.Estimated() * r.Estimated() / float64(max(r.Observations, 1))
		s.observations += r.Observations
	}
}

// profiles runs the program and hands each profile on, until that is enough: how
// many samples a run gets depends on what else the machine does.
func profiles(t *testing.T, stack, kind string, enough func(*model.Profile) bool) {
	t.Helper()
	bin := compile(t, "sharing", "-O1", "-g", "-fno-omit-frame-pointer")
	for end := time.Now().Add(deadline); ; {
		p := rdx(t, "run", "-q", "--stack", stack, "--overhead", "30", "--", bin, kind, "2").profile()
		if enough(p) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: too few samples in %v: %v", kind, deadline, p.Counts)
		}
	}
}

// judge collects a program's profiles until its shares are of fewestShared observations
// each, and has them checked. One time in many chance alone puts a share outside what it
// may: so what is wrong then is judged again by four times as many, against half as
// much chance.
func judge(t *testing.T, stack, kind string, add func(*model.Profile) (observations int64), check func() (wrong []string)) {
	t.Helper()
	for fewest := int64(fewestShared); ; fewest *= 4 {
		profiles(t, stack, kind, func(p *model.Profile) bool { return add(p) >= fewest })
		wrong := check()
		if len(wrong) == 0 {
			return
		}
		if fewest > fewestShared {
			t.Errorf("%s: %s", kind, strings.Join(wrong, "; "))
			return
		}
		t.Logf("%s, of few: %s", kind, strings.Join(wrong, "; "))
	}
}

// within5 says of a share what is wrong if it is not within five points of what the
// program was made for, or within what that many observations can differ by chance
// (three standard deviations).
func within5(t *testing.T, what string, got, want float64, n int64) []string {
	t.Helper()
	chance := 3 * math.Sqrt(max(want*(1-want), 0.01)/float64(n))
	t.Logf("%s: %.3f, by construction %.3f (%d observations)", what, got, want, n)
	if math.Abs(got-want) > max(0.05, chance) {
		return []string{fmt.Sprintf("%s: %.3f, want %.3f within %.3f", what, got, want, max(0.05, chance))}
	}
	return nil
}

const fewestShared = 100

// Each function's share of invalidated uses and false sharing, and the writers.
func TestPrivateStack(t *testing.T) {
	needRoot(t)
	for _, c := range []struct {
		kind     string
		a, b     float64 // share invalidated of uses in KIND_a, KIND_b
		false_   float64 // of both
		aAt, bAt uint64  // where they write
	}{
		{kind: "pingpong", a: .5, b: .5},
		{kind: "false", false_: .5, aAt: 0, bAt: 40},
		{kind: "wide", false_: .5, aAt: 0, bAt: anyWord},
		{kind: "readmostly", b: 1. / 8},
		{kind: "queue", b: 1},
		{kind: "private"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			var a, b shares
			judge(t, "private", c.kind, func(p *model.Profile) int64 {
				a.add(p, c.kind+"_a", c.kind+"_b", c.bAt)
				b.add(p, c.kind+"_b", c.kind+"_a", c.aAt)
				return min(a.observations, b.observations)
			}, func() (wrong []string) {
				for _, f := range []struct {
					name string
					want float64
					got  *shares
				}{{"a", c.a, &a}, {"b", c.b, &b}} {
					got := f.got
					wrong = append(wrong, within5(t, fmt.Sprintf("%s_%s invalidated", c.kind, f.name), got.invalidated/got.accesses, f.want, got.worth())...)
					// A word that is written was watched with a probability of
					// 3/7 or more: each write seen stands for 7/3 at most.
					wrong = append(wrong, within5(t, fmt.Sprintf("%s_%s false sharing", c.kind, f.name), got.falsely/got.accesses, c.false_, got.worth()*3/7)...)
				}
				return wrong
			})
			for name, got := range map[string]*shares{"a": &a, "b": &b} {
				if got.wrongWriter+got.wrongWords > 0 {
					t.Errorf("%s_%s: %d invalidations by another function, %d by another or at another word", c.kind, name, got.wrongWriter, got.wrongWords)
				}
			}
		})
	}
}

// In a shared stack the other thread's access is a reuse like any.
func TestSharedStack(t *testing.T) {
	needRoot(t)
	for _, c := range []struct {
		kind string
		a, b float64 // share of uses whose reuse is the other thread's
	}{
		{"pingpong", .5, .5},
		{"readmostly", 8. / 9, 1},
		{"queue", 1, 1},
		{"private", 0, 0},
	} {
		t.Run(c.kind, func(t *testing.T) {
			var a, b shares
			judge(t, "shared", c.kind, func(p *model.Profile) int64 {
				a.add(p, c.kind+"_a", "", 0)
				b.add(p, c.kind+"_b", "", 0)
				return min(a.observations, b.observations)
			}, func() []string {
				return append(within5(t, c.kind+"_a reused by the other", a.foreign/a.accesses, c.a, a.worth()),
					within5(t, c.kind+"_b reused by the other", b.foreign/b.accesses, c.b, b.worth())...)
			})
			if n := a.invalidated + b.invalidated; n > 0 {
				t.Errorf("%s: %.0f accesses invalidated in a shared stack", c.kind, n)
			}
		})
	}
}

// watchCPU takes a debug register of CPU 0.
func watchCPU() (fd int, err error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_BREAKPOINT, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bp_type: 3, Ext1: 0x1000, Ext2: 8, Sample: 1,
		Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
	return unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
}

// needCPURegisters skips the test if the debug registers of a CPU can't be had,
// because some thread of another process has all of its own taken: the kernel then
// refuses them for as long.
func needCPURegisters(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(10 * time.Millisecond) {
		fd, err := watchCPU()
		if err == nil {
			unix.Close(fd)
			return
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("open watchpoint on CPU 0: %v", err)
		}
		if time.Now().After(end) {
			t.Skipf("needs debug registers of a CPU: for %v some process of this machine has had all of a thread's (a debugger, or another rdx)", deadline)
		}
	}
}

// Many threads are watched by CPU; nothing of that is left behind, and threads
// that come and go while they are watched lose nothing.
func TestManyThreadsPrivate(t *testing.T) {
	needRoot(t)
	needCPURegisters(t)
	p := target(t, compile(t, "sum"), "40")
	kinds := map[model.StackKind]int{}
	unwatched, holds := 0, 0
	// On two CPUs a held thread waits long for its turn, and few come to an end.
	eventually(t, "observations of both stacks", func() bool {
		profile := attach(t, p.pid, "--stack", "both", "-d", "1s").profile()
		assertFree(t, p.pid)
		if n := countOf(profile, "lost: not watched in all threads"); n*20 > countOf(profile, "holds") && strings.Contains(strings.Join(profile.Comments, "\n"), "no free debug register") {
			t.Logf("%d samples lost to another process that has debug registers taken; once more", n)
			needCPURegisters(t)
			return false
		}
		for _, r := range profile.Records {
			kinds[r.Stack]++
		}
		unwatched += countOf(profile, "lost: not watched in all threads")
		holds += countOf(profile, "holds")
		t.Logf("records by stack %v, counts %v", kinds, profile.Counts)
		return kinds[model.StackPrivate] > 0 && kinds[model.StackShared] > 0
	})
	if kinds[model.StackOwn] > 0 || unwatched*20 > holds {
		t.Errorf("records by stack: %v; %d of %d samples not watched in all threads", kinds, unwatched, holds)
	}
	p.end()
	p = target(t, compile(t, "churn"))
	profile := attach(t, p.pid, "--stack", "both", "-d", "1s").profile()
	assertUntraced(t, p.pid)
	t.Logf("%d holds; target: %s", countOf(profile, "holds"), p.end())
	if countOf(profile, "lost: thread not sampled") > 0 || countOf(profile, "threads that ended before their first tick") == 0 {
		t.Errorf("%v", profile.Counts)
	}
}
