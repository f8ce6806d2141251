// Needs: root, bpf, watchpoint, gcc.
package collector

import (
	"math"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/interp"
)

// TestKernelShare: most of a program's CPU time is the kernel's. What is timed has that in it, and samples don't fall on it: the rate is
// over both, and reuses are where the order of accesses has them.
func TestKernelShare(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	const words = 200_000
	p, _, ns := profilePattern(t, compilePattern(t), Config{Burst: AutoBurst, Granularity: Word, Overhead: 0.05}, 0, "calls", "200000", "12")
	var apart []float64 // by factors of two
	for _, r := range p.Records {
		if r.Kind == model.Reuse && !r.Exact {
			apart = append(apart, math.Log2(float64(r.Time)/words))
		}
	}
	slices.Sort(apart)
	if record.SystemCall != interp.Syscall.String() {
		t.Errorf("a hold whose reading ahead ends by %q is not known as one by %q", interp.Syscall, record.SystemCall)
	}
	c := &p.Clock
	t.Logf("%.3g accesses a ns [%.3g, %.3g], made %.3g; %d reuses; %v; %v", c.Rate, c.RateLow, c.RateHigh, 1/ns, len(apart), apart, p.Comments)
	if c.RateLow > 1/ns || c.RateHigh < 1/ns {
		t.Errorf("between %.3g and %.3g accesses a ns, made %.3g", c.RateLow, c.RateHigh, 1/ns)
	}
	if len(apart) < 10 {
		t.Fatalf("%d timed reuses", len(apart))
	}
	if off := apart[len(apart)/2]; math.Abs(off) > 1 {
		t.Errorf("reuses are %.2f octaves too late at the median", off)
	}
}
