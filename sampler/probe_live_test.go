// Needs: root, bpf, watchpoint.
package sampler

import "testing"

func TestProbeWatchpoints(t *testing.T) {
	k, err := Load(NumSlots, Needs{})
	if err != nil {
		t.Skip("needs root and bpf:", err)
	}
	defer k.Close()
	w, err := k.ProbeWatchpoints()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", w)
	if w.Free < 1 || w.Free > probeFree {
		t.Errorf("%d watchpoints free", w.Free)
	}
	if err := w.Usable(); err != nil {
		t.Error(err)
	}
	// Nothing is left behind: a second look finds the same.
	again, err := k.ProbeWatchpoints()
	if err != nil || again.Free != w.Free {
		t.Errorf("second probe: %d free, want %d: %v", again.Free, w.Free, err)
	}
}
