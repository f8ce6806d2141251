package cost

import "testing"

func TestMeasure(t *testing.T) {
	costs, err := Measure([]int64{32 << 10, 512 << 10, 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", costs)
	if len(costs) != 4 {
		t.Fatalf("%d costs, want 4", len(costs))
	}
	for i, c := range costs {
		if !(c.Waits > 0 && c.Waits < 5000 && c.Streams > 0 && c.Streams < c.Waits*4 && c.Apart > 0 && c.Apart < c.Waits*4) {
			t.Errorf("level %d: %+v", i, c)
		}
	}
	if costs[3].Waits < 3*costs[0].Waits {
		t.Errorf("an access to memory waits %.1f ns, to the first cache %.1f", costs[3].Waits, costs[0].Waits)
	}
}

// A cycle is that of a core of 0.8 to 6.5 GHz.
func TestCycle(t *testing.T) {
	if c := Cycle(); c < 1/6.5 || c > 1/0.8 {
		t.Errorf("a cycle of %.3f ns", c)
	}
}

// Of a cache of which other machines take most, data are in it as far as they are found soon.
func TestReach(t *testing.T) {
	const before, size, mib = 2 << 20, 480 << 20, 1 << 20
	for name, c := range map[string]struct {
		took         func(span int64) float64
		far          float64
		span, within int64
	}{
		"a part of it":   {func(s int64) float64 { return map[bool]float64{true: 40, false: 180}[s <= 16*mib] }, 200, 8 * mib, 16 * mib},
		"all of it":      {func(int64) float64 { return 40 }, 200, 128 * mib, 0},
		"none of it":     {func(int64) float64 { return 180 }, 200, 128 * mib, 0},
		"the first part": {func(s int64) float64 { return map[bool]float64{true: 40, false: 180}[s <= 4*mib] }, 200, 4 * mib, 4 * mib},
	} {
		if span, within := reach(c.took, 128*mib, before, size, c.far); span != c.span || within != c.within {
			t.Errorf("%s: measured on %d MiB, within %d, want %d, %d", name, span/mib, within/mib, c.span/mib, c.within/mib)
		}
	}
}
