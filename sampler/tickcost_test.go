// Needs: root, bpf.
package sampler

import "testing"

// What interrupts cost is found, and they are no session's.
func TestTickCost(t *testing.T) {
	k, err := Load(1, Needs{Stamps: true})
	if err != nil {
		t.Skip("needs root and bpf:", err)
	}
	defer k.Close()
	for _, c := range []struct {
		of      string
		measure func() (float64, error)
		most    float64
	}{{"tick", k.TickCost, mostTick}, {"stamp", k.StampCost, mostStamp}} {
		cost, err := c.measure()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("a %s costs %.1f µs", c.of, cost/1000)
		if cost < leastTick || cost > c.most {
			t.Errorf("a %s costs %.0f ns", c.of, cost)
		}
	}
	if s, err := k.Stats(); err != nil || s.Ticks != 0 || s.Holds != 0 {
		t.Errorf("%d ticks and %d holds are left: %v", s.Ticks, s.Holds, err)
	}
}
