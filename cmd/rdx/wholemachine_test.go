// Needs: root, bpf, watchpoint, gcc, setpriv. Tests that take the machine's debug registers or set the kernel otherwise, or fill the
// machine with threads: no other runs beside them.
package main_test

import (
	"errors"
	"math"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// The target has taken all debug registers: counted, and its own watchpoints
// work on.
func TestNoFreeDebugRegister(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	p := target(t, compile(t, "debugregs"))
	s := startAttach(t, p.pid, "-d", "1s")
	profile := s.profile()
	// Reuses that were read ahead need no register.
	if countOf(profile, model.LostBecause.Of(model.NoRegister)) == 0 {
		t.Errorf("%d records, counts %v", len(profile.Records), profile.Counts)
	}
	assertUntraced(t, p.pid)
	t.Log(p.end())
}

// Debug registers that others have on every CPU are nobody else's.
func TestNoDebugRegisterAnywhere(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	p := target(t, compile(t, "sum"), "1")
	rdxPath(t) // built before they are taken
	taken := 0
	for ; ; taken++ {
		fd, err := watchCPU()
		if errors.Is(err, unix.ENOSPC) {
			break
		} else if err != nil {
			t.Fatalf("open watchpoint on CPU 0: %v", err)
		}
		defer unix.Close(fd)
	}
	if taken < 4 {
		t.Skip("needs all debug registers of a CPU: some process of this machine has some (a debugger, or another rdx)")
	}
	refuse(t, p.pid, "no free debug register (others watch memory on all threads: end debuggers")
	refused(t, string(model.NoRegister), "run", "--", "true")
	assertUntraced(t, p.pid)
	p.end()
}

// The kernel's own restriction of perf events, where it can be set.
func TestPerfEventParanoid(t *testing.T) {
	needRoot(t)
	needTool(t, "setpriv")
	const name = "/proc/sys/kernel/perf_event_paranoid"
	old, err := os.ReadFile(name)
	if err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(name, []byte("3"), 0); err != nil {
		t.Skip(err)
	}
	defer os.WriteFile(name, old, 0)
	p := target(t, compile(t, "sum"), "1")
	// Root may all the same.
	attachable(t, p.pid)
	refusedSession(t, "root", as(t, []string{"--reuid", "65534", "--regid", "65534", "--clear-groups"}, p.pid))
	p.end()
}

// Of a thousand threads that were there before, and of which none runs for as long as
// a period, what all of them ran for is sampled, and the budget is kept.
func TestLittleEach(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "sum"), "1000", "0", "calm")
	var ran, sampled, ticks float64
	bySessions(t, "a hundred ticks", func() bool {
		profile := attach(t, p.pid, "-d", "1500ms", "--period", "8ms", "--overhead", "5").profile()
		assertFree(t, p.pid)
		ran += float64(profile.CountOf(model.CPUTarget))
		sampled += float64(profile.CountOf(model.CPUSampled))
		ticks += float64(profile.CountOf(model.Samples))
		t.Logf("%.2f s, of which %.2f s sampled in %.0f ticks; %q", ran/1e9, sampled/1e9, ticks, profile.Comments)
		return ticks >= 100
	})
	p.end()
	// At most as far off as ticks that come independently; in the kernel there are none.
	if math.Abs(sampled/ran-1) > 4/math.Sqrt(ticks)+.15 {
		t.Errorf("%.0f %% of the CPU time was sampled", 100*sampled/ran)
	}
}

func TestThousandThreads(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "sum"), "1000", "0", "calm")
	begin := time.Now()
	s := attach(t, p.pid)
	eventually(t, "all threads are seized", func() bool {
		for _, tid := range tids(p.pid) {
			if procField(tid, "TracerPid") == "0" {
				return false
			}
		}
		return true
	})
	attached := time.Since(begin)
	time.Sleep(time.Second) // sampling
	begin = time.Now()
	s.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-s.exited:
	case <-time.After(10 * time.Second):
		s.cmd.Process.Signal(syscall.SIGQUIT) // a stack dump
	}
	profile := s.profile()
	t.Logf("attached in %v, profile written in %v, %d samples", attached, time.Since(begin), countOf(profile, model.Holds))
	if countOf(profile, model.Holds) == 0 {
		t.Error("no samples")
	}
	assertFree(t, p.pid)
	p.end()
}
