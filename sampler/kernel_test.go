// Needs: root, bpf, watchpoint.
package sampler

import (
	"testing"

	"github.com/rdx-profiler/rdx/internal/needs"
)

func TestCalibrate(t *testing.T) {
	needs.Watchpoints(t)
	k, err := Load(4, Needs{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	c, err := k.Calibrate(200)
	if err != nil {
		t.Fatal(err)
	}
	s, err := k.Stats()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v stats %+v", c, s)
}
