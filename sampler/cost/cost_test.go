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
