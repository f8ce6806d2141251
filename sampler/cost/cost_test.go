package cost

import "testing"

func TestMeasure(t *testing.T) {
	costs, err := Measure([]int64{48 << 10, 512 << 10, 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", costs)
	want := []int64{16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}
	for i, c := range costs {
		if len(costs) != len(want) || c.Bytes != want[i] {
			t.Fatalf("costs on %+v, want %v", costs, want)
		}
	}
	for i, c := range costs {
		if !(c.Waits > 0 && c.Waits < 5000 && c.Streams > 0 && c.Streams < c.Waits*4 && c.Apart > 0 && c.Apart < c.Waits*4) {
			t.Errorf("level %d: %+v", i, c)
		}
	}
	first, last := costs[0], costs[len(costs)-1]
	if last.Waits < 3*first.Waits {
		t.Errorf("an access to memory waits %.1f ns, to the first cache %.1f", last.Waits, first.Waits)
	}
	// What waits for nothing goes at the rate of the loop: no chain of its own holds it up.
	if c := Cycle(); first.Streams > 5*c || first.Apart > 8*c || first.Waits < 5*c {
		t.Errorf("in the first cache %+v, a cycle is %.3f ns", first, c)
	}
}

// A cycle is that of a core of 0.8 to 6.5 GHz.
func TestCycle(t *testing.T) {
	if c := Cycle(); c < 1/6.5 || c > 1/0.8 {
		t.Errorf("a cycle of %.3f ns", c)
	}
}

// Sizes beyond what is used of the memory: what is measured on grows all the same, and once is enough.
func TestMeasureOfLarge(t *testing.T) {
	for _, sizes := range [][]int64{{4 << 30}, {1 << 30, 2 << 30}} {
		costs, err := Measure(sizes)
		if err != nil || len(costs) != 1 || costs[0].Bytes > 1<<30 {
			t.Errorf("%d: %+v, %v", sizes, costs, err)
		}
	}
}
