// Needs: root, bpf, watchpoint.
package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// A session takes no more memory than docs/reference/limits.md says, also the first one on a machine, which measures what accesses
// cost there, and one of a program with much debug information.
func TestOwnMemory(t *testing.T) {
	needRoot(t)
	const most = 100 // MiB
	dir := t.TempDir()
	for _, argv := range [][]string{{"bash", "-c", "while :; do :; done"}, {"python3", "-c", "while True: sorted(range(100000))"}} {
		needTool(t, argv[0])
		p := start(t, argv...)
		defer p.cmd.Process.Kill()
		session := exec.Command(rdxPath(t), "attach", "-q", "-d", "3s", "--hold-cost", "100us", "-o", filepath.Join(dir, "p.pb.gz"), strconv.Itoa(p.pid))
		session.Env = append(os.Environ(), "RDX_CACHE="+filepath.Join(dir, "cache"))
		own := startCmd(t, session)
		had := 0 // MiB
		within(t, time.Minute, "the end of the session", func() bool {
			var kib int
			if _, err := fmt.Sscan(procField(own.pid, "VmHWM"), &kib); err == nil {
				had = max(had, kib>>10)
			}
			select {
			case <-own.exited:
				return true
			default:
				return false
			}
		})
		said := strings.Join(readProfile(t, filepath.Join(dir, "p.pb.gz")).Comments, "\n")
		if had > most || had == 0 || !strings.Contains(said, "the profiler's own memory: ") {
			t.Errorf("%s: %d MiB, want at most %d: %s", argv[0], had, most, said)
		}
		t.Logf("%s: %d MiB", argv[0], had)
		p.cmd.Process.Kill()
	}
	if _, err := os.Stat(filepath.Join(dir, "cache", "access-costs.json")); err != nil {
		t.Error(err)
	}
}
