// Needs: root, bpf.
package sampler

import "testing"

func TestTickCost(t *testing.T) {
	k, err := Load(1, Needs{})
	if err != nil {
		t.Skip("needs root and bpf:", err)
	}
	defer k.Close()
	cost, err := k.TickCost()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a tick costs %.1f µs", cost/1000)
	if cost < leastTick || cost > mostTick {
		t.Errorf("a tick costs %.0f ns", cost)
	}
	// The ticks are not a session's.
	if s, err := k.Stats(); err != nil || s.Ticks != 0 || s.Holds != 0 {
		t.Errorf("%d ticks and %d holds are left: %v", s.Ticks, s.Holds, err)
	}
}
