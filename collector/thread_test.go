package collector

import (
	"testing"

	"github.com/rdx-profiler/rdx/sampler"
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
		(&thread{shared: shared, process: new(process)}).release()
		if shared.Slots[2].N != want || shared.Slots[1].N != 3 || shared.Hold != 0 || shared.Holds != 1 {
			t.Errorf("state %v: %+v", state, shared)
		}
	}
}
