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
	return foretoldWindow{times: t, open: open}
}

// Two holds of three find code that computes, in a third of the accesses' time: the mean over time is that of the rates, and
// what comes from memory is charged to what is open.
func TestForetoldRate(t *testing.T) {
	f := foretoldOf(map[int]foretoldWindow{})
	for i := range 10 {
		f.windows[3*i+1], f.windows[3*i+2], f.windows[3*i+3] = windowOf(0.5, 10, 0), windowOf(0.5, 10, 0), windowOf(0.5, 10, 0.1)
	}
	f.settle([]origins{{}})
	if rate, _ := f.rate(); math.Abs(rate-2) > 1e-9 {
		t.Errorf("nothing comes from memory: %v per ns, want 2", rate)
	}
	// The third's accesses are a share s = r/(4+r) of all, of which a tenth is open; of these all that come from memory.
	f.settle([]origins{{{0, 0, 0.01}}})
	rate, off := f.rate()
	third := 1 / f.perAccess(f.windows[3], 1)
	if want := (4 + third) / 3; math.Abs(rate-want) > 1e-9 {
		t.Errorf("%v per ns, want %v", rate, want)
	}
	if open := third * 0.1 / (4 + third); math.Abs(f.classes[0].open-open) > 0.02*open {
		t.Errorf("open %v, want %v", f.classes[0].open, open)
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

// A few holds tell of the rate, but roughly: the fewer, the more that they have not met may be slower or faster.
func TestForetoldFew(t *testing.T) {
	before := math.Inf(1)
	for _, n := range []int{2, 4, 8, 32} {
		f := foretoldOf(map[int]foretoldWindow{})
		for i := range n {
			f.windows[i+1] = windowOf(0.5*(1+0.4*float64(i%2)), 10, 0)
		}
		f.settle([]origins{{}})
		_, off := f.rate()
		if off >= before || n == 2 && off < 0.8 || n == 32 && off > modelError+0.03 {
			t.Errorf("%d holds: standard error %v, after %v", n, off, before)
		}
		before = off
	}
}

// Whether what is open comes from the second cache or from memory is not known: the rate is in the middle, and its interval
// reaches both ends.
func TestForetoldBetween(t *testing.T) {
	f := foretoldOf(map[int]foretoldWindow{1: windowOf(0.5, 10, 0.05), 2: windowOf(0.5, 10, 0.1)})
	near, far := []origins{{{0.045, 0, 0.005}}}, []origins{{{0, 0, 0.05}}}
	f.settle(near)
	fast := f.mean()
	f.settle(far)
	slow := f.mean()
	if slow > fast/1.3 {
		t.Fatalf("%v and %v per ns: want them apart", slow, fast)
	}
	f.settleBetween(near, far)
	rate, _ := f.rate()
	if want := math.Sqrt(slow * fast); math.Abs(rate-want) > 0.01*want {
		t.Errorf("%v per ns, want %v", rate, want)
	}
	if r := f.reach(); r.low > slow || r.high < fast {
		t.Errorf("the rate is [%v, %v], want [%v, %v] in it", r.low, r.high, slow, fast)
	}
	_, wait := f.plain()
	f.settle(far)
	if _, most := f.plain(); most > wait*f.within*1.001 {
		t.Errorf("an open access waits %v ns within %v, want %v in it", wait, f.within, most)
	}
	f.settle(near)
	if _, least := f.plain(); least < wait/f.within/1.001 {
		t.Errorf("an open access waits %v ns within %v, want %v in it", wait, f.within, least)
	}
	if f.settleBetween([]origins{{}}, far); f.within != 0 {
		t.Errorf("they may wait not at all, or %v ns within %v", wait, f.within)
	}
	f.settleBetween(far, far)
	if f.unsure != 0 || math.Abs(f.within-waitWithin) > 1e-9 {
		t.Errorf("where it is known: %v, %v", f.unsure, f.within)
	}
}

// Half of a window's cold lines compete for few sets, and are found in the third cache; the others in the second. Where
// more would come from a level than there are cold lines, all do.
func TestForetoldCrowded(t *testing.T) {
	times := &pipeline.Times{Instructions: 4000, Accesses: 1000, Cold: 100, Near: 500}
	times.Crowded[4] = 50
	times.Far[0], times.Far[1] = [2]float64{100.0 / 8, 100}, [2]float64{1000.0 / 8, 1000}
	f := foretoldOf(map[int]foretoldWindow{1: {times: times, open: 0.1}})
	var b origins
	b[0], b[4] = levels{0.1, 0, 0}, levels{0.3, 0.1, 0}
	f.settle([]origins{b})
	if got, want := f.perAccess(f.windows[1], 1), (500+50+500)/1000.0; math.Abs(got-want) > 1e-9 {
		t.Errorf("an access takes %v ns, want %v", got, want)
	}
	if got, want := f.perAccess(f.windows[1], 0.5), (500+25+25+250)/1000.0; math.Abs(got-want) > 1e-9 {
		t.Errorf("with half of the misses %v ns, want %v", got, want)
	}
	if got := f.degrees(); len(got) != 2 || got[0] != 0 || got[1] != 4 {
		t.Errorf("degrees %v", got)
	}
}

// TestWaiting: a program whose code takes half a ns an access where nothing waits makes as few as if it waited three quarters of its time.
func TestWaiting(t *testing.T) {
	f := foretoldOf(map[int]foretoldWindow{})
	for i := range 10 {
		f.windows[i+1] = windowOf(0.5, 10, 0.1)
	}
	f.settle([]origins{{{0, 0, 0.01}}}) // which the model takes to wait less
	for rate, want := range map[float64]float64{0.5: 0.75, 1: 0.5, 2: 0, 3: 0} {
		if got := f.waiting(rate); math.Abs(got-want) > 0.01 {
			t.Errorf("%v accesses a ns: waits %v of the time, want %v", rate, got, want)
		}
	}
}
