// Needs: root, bpf, gcc, Pyroscope. The bench in short: what it does in half an hour in under two minutes.
package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/fleet/backend"
)

// Agents and sessions are killed, the server goes and misbehaves, a disk is full: nothing is harmed, nothing grows,
// nothing is left, and each window is accounted for.
func TestInShort(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, err := backend.Binary(); err != nil {
		t.Skip(err)
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: ", err)
	}
	t.Chdir("../..")
	rdx := filepath.Join(t.TempDir(), "rdx")
	if out, err := exec.Command("go", "build", "-o", rdx, "./cmd/rdx").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	o := options{rdx: rdx, length: 100 * time.Second, processes: 40, kills: 12, period: 10 * time.Second, overhead: 10, seed: uint64(time.Now().UnixNano())}
	if err := run(t.Context(), o); err != nil {
		t.Error(err)
	}
}
