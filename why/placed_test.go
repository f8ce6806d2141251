package why

import (
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// What the last cache has beyond where it is fast costs as much as memory, in proportion.
func TestPlacedCosts(t *testing.T) {
	p := &model.Profile{Block: 64, BinsPerOctave: 16, Clock: model.Clock{Unit: "accesses", Rate: 1},
		Caches: []model.Cache{{Level: "L1d", Size: 32 << 10}, {Level: "L2", Size: 1 << 20}, {Level: "L3", Size: 512 << 20}},
		Costs:  []model.Cost{{Waits: 2}, {Waits: 5}, {Waits: 50, Streams: 2, Apart: 4, Within: 16 << 20}, {Waits: 250, Streams: 6, Apart: 20}}}
	for h := range 400 { // lists of 4 and of 64 MiB, a quarter of the accesses to the latter
		lines := uint64(1 << 16)
		if h%4 == 0 {
			lines = 1 << 20
		}
		p.Records = append(p.Records, model.Record{Kind: model.Reuse, Timing: model.Timing{Time: lines},
			Cluster: model.Cluster{Hold: uint64(h + 1)}, Weight: model.Weight{Observations: 1, Accesses: 1}})
	}
	got := placedCosts(p)
	if far := (got[2].Waits - 50) / 200; far < 0.2 || far > 0.3 {
		t.Errorf("of the last cache's data %.2f cost as much as memory, want a quarter: %+v", far, got[2])
	}
	p.Costs[2].Within = 0
	if got := placedCosts(p); got[2].Waits != 50 {
		t.Errorf("all of it near: %+v", got[2])
	}
}
