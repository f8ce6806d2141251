package estimate

import (
	"math"
	"testing"

	"github.com/rdx-profiler/rdx/sampler/pipeline"
)

// window is one whose accesses take so long where nothing waits, and so much longer if all cold lines come from memory.
func windowOf(near, far, open float64) foretoldWindow {
	t := &pipeline.Times{Instructions: 4000, Accesses: 1000, Cold: 100, Near: 1000 * near}
	t.Far[2] = [2]float64{1000 * far / 8, 1000 * far}
	return foretoldWindow{t, open}
}

// Two holds of three find code that computes, in a third of the accesses' time: the mean over time is that of the rates, and
// what comes from memory is charged to what is open.
func TestForetoldRate(t *testing.T) {
	f := &foretold{windows: map[int]foretoldWindow{1: windowOf(0.5, 10, 0), 2: windowOf(0.5, 10, 0), 3: windowOf(0.5, 10, 0.1)}}
	f.settle(origins{})
	if rate, _ := f.rate(); math.Abs(rate-2) > 1e-9 {
		t.Errorf("nothing comes from memory: %v per ns, want 2", rate)
	}
	// The third's accesses are a share s = r/(4+r) of all, of which a tenth is open; of these all that come from memory.
	f.settle(origins{0, 0, 0.01})
	rate, off := f.rate()
	third := 1 / f.perAccess(f.windows[3], 1)
	if want := (4 + third) / 3; math.Abs(rate-want) > 1e-9 {
		t.Errorf("%v per ns, want %v", rate, want)
	}
	if open := third * 0.1 / (4 + third); math.Abs(f.open-open) > 0.02*open {
		t.Errorf("open %v, want %v", f.open, open)
	}
	if third > 1 || third < 0.09 {
		t.Errorf("the hold that waits makes %v accesses per ns", third)
	}
	if off < modelError || off > 1 {
		t.Errorf("standard error %v", off)
	}
	if low, high := f.reach().low, f.reach().high; low > rate/1.9 || high < rate*1.9 {
		t.Errorf("the rate is [%v, %v]", low, high)
	}
}
