// Needs: root, bpf, watchpoint, gcc, x86-64, Linux 6.11. What the kernel copies for a system call while it is watched.
package main_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// kernelCopies samples the program and gives the median of the reuse times that were timed, in ns, what the program
// says, and a count.
func kernelCopies(t *testing.T, bin, kind string, name model.CountName) (median, says float64, counted int) {
	t.Helper()
	var times []float64
	for end := time.Now().Add(samplesWithin); len(times) < 20 && time.Now().Before(end); {
		s := rdx(t, "run", "-q", "--overhead", "5", "--", bin, kind, "3")
		p := s.profile()
		counted += countOf(p, name)
		for i := range p.Records {
			if r := &p.Records[i]; r.Kind == model.Reuse && !r.Exact && r.Native > 10_000 {
				times = append(times, float64(r.Native))
			}
		}
		for line := range s.lines {
			_, _ = fmt.Sscanf(line, "%g ns", &says)
		}
		if kind == "send" {
			return 0, says, counted
		}
	}
	if len(times) < 20 || says == 0 {
		t.Fatalf("%d reuses were timed, and the program says %v", len(times), says)
	}
	slices.Sort(times)
	return times[len(times)/2], says, counted
}

// A byte of a watched word that the kernel copies costs a trap where it copies by bytes: ten times as long as a lap takes, for
// half a line. That is no part of the time until the thread's own reuse.
func TestKernelCopies(t *testing.T) {
	needs.Watchpoints(t)
	needs.KernelCopies(t)
	needRoot(t)
	bin := compile(t, "kernelcopies", "-O1")
	for _, kind := range []string{"none", "read"} {
		got, lap, traps := kernelCopies(t, bin, kind, model.TrapsCopying)
		t.Logf("%s: reuses take %.0f ns at the median, a lap %.0f, %d traps of the kernel", kind, got, lap, traps)
		if kind == "read" && traps == 0 {
			t.Error("no trap of the kernel was seen")
		}
		if got < 0.6*lap || got > 1.6*lap {
			t.Errorf("%s: reuses take %.0f ns at the median, a lap %.0f", kind, got, lap)
		}
	}
}

// A buffer that is sent again and again, and not touched meanwhile, is not watched for long: of two thousand times that it is copied some
// hundred may be slow, till the next look, and not all.
func TestKernelCopiesSpared(t *testing.T) {
	needs.Watchpoints(t)
	needs.KernelCopies(t)
	needRoot(t)
	bin := compile(t, "kernelcopies", "-O1")
	for end := time.Now().Add(samplesWithin); ; {
		_, most, spared := kernelCopies(t, bin, "send", model.WatchesSpared)
		t.Logf("at most %.1f ms, %d times given up", most/1e6, spared)
		// All of them would take 2000 x 32 traps of 9 us, 576 ms.
		if most > 150e6 {
			t.Errorf("the kernel took %.1f ms for what takes 2", most/1e6)
		}
		if spared > 0 || t.Failed() {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no buffer was given up that was sent again and again")
		}
	}
}
