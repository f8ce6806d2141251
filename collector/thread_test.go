package collector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// A slot that was won and not used must be won by the next candidate again;
// one that watches keeps its count.
func TestReleaseKeepsDrawFair(t *testing.T) {
	for state, want := range map[sampler.SlotState]uint64{
		sampler.SlotFree:  0,
		sampler.SlotDone:  0,
		sampler.SlotArmed: 5,
		sampler.SlotUsed:  5,
	} {
		shared := &sampler.Thread{Hold: 23, HoldSlot: 2}
		shared.Slots[2] = sampler.Slot{State: state, N: 5}
		shared.Slots[1] = sampler.Slot{State: sampler.SlotFree, N: 3}
		(&thread{shared: shared, process: new(target.Process)}).release()
		if shared.Slots[2].N != want || shared.Slots[1].N != 3 || shared.Hold != 0 || shared.Holds != 1 {
			t.Errorf("state %v: %+v", state, shared)
		}
	}
}

// Of many holds the few that have something to be watched draw for the slot
// among themselves.
func TestUndraw(t *testing.T) {
	const runs, useful = 2000, 5
	rng := rand.New(rand.NewPCG(9, 9))
	var won [useful]int // who had the slot at the end
	for range runs {
		th := &thread{shared: new(sampler.Thread), process: new(target.Process)}
		slot, last := &th.shared.Slots[0], 0
		for hold := range 20 * useful {
			slot.N++ // as on_sample does
			wins := rng.Uint64N(slot.N) == 0
			switch {
			case hold%20 != 19:
				th.undraw(0)
			case wins:
				last = hold / 20
			}
		}
		won[last]++
	}
	for i, n := range won {
		if d := math.Abs(float64(n) - runs/useful); d > 4*math.Sqrt(runs/useful) {
			t.Errorf("hold %d of %d had the slot in %d of %d runs: %v", i, useful, n, runs, won)
		}
	}
}

// An interrupt that was sent must be taken when it comes, one that was not must
// not be waited for.
func TestLateInterrupt(t *testing.T) {
	late := make(lateHolds)
	th := &thread{tid: 7, shared: &sampler.Thread{Hold: uint32(ptrace.Interrupted)}}
	late.expect(th)
	if len(late) > 0 {
		t.Errorf("waits for an interrupt that was not sent: %v", late)
	}
	th.interrupted = true
	late.expect(th)
	if !late.take(7, ptrace.Interrupted) || len(late) > 0 {
		t.Errorf("not taken: %v", late)
	}
	if late.take(7, ptrace.Interrupted) {
		t.Error("taken twice")
	}
}

// The first period must be what is left of a period at a random moment: its density at
// x is the probability that a period is longer, over the mean period.
func TestFirstPeriod(t *testing.T) {
	const n, period = 200_000, 1e6
	s := (&sampling{rand: rand.New(rand.NewPCG(1, 2)), ticks: tickPace{meanPeriod: period}}).wire()
	var below [3]float64
	at := [3]float64{0.1, 0.5, 1} // in periods
	sum := 0.0
	for range n {
		x := float64(s.ticks.drawFirst()) / period
		sum += x
		for i := range at {
			if x < at[i] {
				below[i]++
			}
		}
	}
	// E[x²] / 2E[x], and the density's integral: 1 up to the least period, then falling to 0 at the most.
	for i, want := range [3]float64{0.1, 0.5, 1 - 0.25*0.5/2} {
		if got := below[i] / n; math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/n) {
			t.Errorf("below %g periods: %.4f, want %.4f", at[i], got, want)
		}
	}
	if want := (1 + 0.25/12) / 2; math.Abs(sum/n-want) > 0.005 {
		t.Errorf("mean %.4f, want %.4f", sum/n, want)
	}
}
