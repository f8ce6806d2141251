// Needs: root, bpf, watchpoint.
package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/collector"
)

// What a hold costs is measured once, before the first session, and kept; how far it is off depends on what else runs.
func TestHoldCostIsKept(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	t.Setenv("RDX_CACHE", dir)
	session := func() (said string) {
		cmd := exec.Command(rdxPath(t), "run", "-d", "1s", "-o", filepath.Join(dir, "p.pb.gz"), "--", "sleep", "0.1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	const measures = "what a hold costs on this machine is measured"
	first := session()
	if !strings.Contains(first, measures) {
		t.Skip("a counter is the source here")
	}
	kept, err := os.ReadFile(filepath.Join(dir, "hold-cost.json"))
	if err != nil {
		t.Fatalf("%v, after: %s", err, first)
	}
	var f struct{ Value collector.HoldCost }
	if err := json.Unmarshal(kept, &f); err != nil {
		t.Fatalf("%v, %s", err, kept)
	}
	t.Logf("%s", kept)
	switch failed := strings.Contains(first, collector.ErrHoldCost.Error()); {
	case failed && (!f.Value.Busy || f.Value.After != 0):
		t.Errorf("it could not be measured, and this is kept: %s", kept)
	case !failed && (f.Value.After < time.Microsecond || f.Value.After > time.Millisecond || f.Value.Holds < 10):
		t.Errorf("what is kept can't be: %s", kept)
	}
	if again := session(); strings.Contains(again, measures) {
		t.Errorf("it is measured again: %s", again)
	}
}
