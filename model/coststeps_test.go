package model

import (
	"math"
	"testing"
)

const mib = 1 << 20

var stepped = []Cache{{Level: "L1d", Size: 48 << 10}, {Level: "L2", Size: 2 * mib}, {Level: "L3", Size: 512 * mib}}

// A level costs the geometric mean of what was measured there; steps lie half way, by factors, between what was measured in one
// cache; what nothing was measured on costs what the nearest below it does.
func TestCostSteps(t *testing.T) {
	p := &Profile{Caches: stepped, CostsOn: []Cost{
		{Bytes: 16 << 10, Waits: 2, Streams: 1, Apart: 1}, {Bytes: 64 << 10, Waits: 4, Streams: 1, Apart: 1}, {Bytes: 1 << 20, Waits: 9, Streams: 1, Apart: 1},
		{Bytes: 16 << 20, Waits: 50, Streams: 3, Apart: 7}}}
	levels := CostsByLevel(p.CostsOn, p.Caches)
	for i, want := range []float64{2, 6, 50, 50} {
		if math.Abs(levels[i].Waits-want) > 1e-9 || levels[i].Bytes != 0 || levels[i].Within != 0 {
			t.Errorf("level %d: %+v, want %v", i, levels[i], want)
		}
	}
	steps, costs := p.CostSteps()
	want := []int64{48 << 10, 256 << 10, 2 << 20, 512 << 20}
	if len(steps) != len(want) || len(costs) != len(want)+1 {
		t.Fatalf("%+v, %+v", steps, costs)
	}
	for i, s := range steps {
		if s.Size != want[i] {
			t.Errorf("step %d ends at %d, want %d", i, s.Size, want[i])
		}
	}
	if costs[2].Waits != 9 || costs[4].Waits != 50 {
		t.Errorf("%+v", costs)
	}
	p.CostsOn, p.Costs = nil, levels
	if steps, costs := p.CostSteps(); len(steps) != 3 || len(costs) != 4 {
		t.Errorf("without sizes %d steps and %d costs", len(steps), len(costs))
	}
}

// Of a cache of which other machines take most, data are in it as far as they are found soon.
func TestCostWithin(t *testing.T) {
	for name, c := range map[string]struct {
		took   func(span int64) float64
		waits  float64
		within int64
	}{
		"a part of it":   {func(s int64) float64 { return map[bool]float64{true: 40, false: 180}[s <= 16*mib] }, 40, 32 * mib},
		"all of it":      {func(s int64) float64 { return map[bool]float64{true: 40, false: 200}[s < 512*mib] }, 40, 0},
		"none of it":     {func(int64) float64 { return 180 }, 180, 0},
		"the first part": {func(s int64) float64 { return map[bool]float64{true: 40, false: 180}[s <= 4*mib] }, 40, 8 * mib},
	} {
		on := []Cost{{Bytes: 16 << 10, Waits: 2, Streams: 1, Apart: 1}, {Bytes: mib, Waits: 5, Streams: 1, Apart: 1}}
		for s := int64(4 * mib); s <= 1024*mib; s *= 4 {
			on = append(on, Cost{Bytes: s, Waits: c.took(s), Streams: 1, Apart: 1})
		}
		if got := CostsByLevel(on, stepped)[2]; math.Abs(got.Waits-c.waits) > 1e-9 || got.Within != c.within {
			t.Errorf("%s: %+v, want %v within %d MiB", name, got, c.waits, c.within/mib)
		}
	}
}
