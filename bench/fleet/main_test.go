// Needs: root, bpf, gcc, Pyroscope. The bench in short: what it does in half an hour in under two minutes.
package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/fleet/backend"
)

// Agents and sessions are killed, the server goes and misbehaves, a disk is full: nothing is harmed, nothing grows,
// nothing is left, and each window is accounted for.
func TestInShort(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	o := options{rdx: built(t), length: 100 * time.Second, processes: 40, kills: 12, period: 10 * time.Second, overhead: 10, seed: uint64(time.Now().UnixNano())}
	if err := run(t.Context(), o); err != nil {
		t.Error(err)
	}
}

// What measures the cost leaves nothing mounted when it is interrupted, and an agent that is ended before it has begun is not at fault.
func TestCostInterrupted(t *testing.T) {
	rdx := built(t)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- measureCost(ctx, options{rdx: rdx, period: time.Hour, overhead: 1}, 1) }()
	mounted := func() bool {
		mounts, err := os.ReadFile("/proc/self/mounts")
		return err != nil || strings.Contains(string(mounts), os.Getenv("TMPDIR"))
	}
	for !mounted() {
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	interrupt()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); mounted() || err != nil || len(left) > 0 {
		t.Errorf("mounted: %v; left: %v, %v", mounted(), left, err)
	}
}

func TestEndedEarly(t *testing.T) {
	b := &bench{options: options{rdx: built(t), period: time.Minute, overhead: 1}, dir: t.TempDir(), proxy: &proxy{url: "http://127.0.0.1:1"}}
	a, err := b.newAgent("a")
	if err != nil {
		t.Fatal(err)
	}
	b.agents = append(b.agents, a)
	defer b.stop()
	for range 5 {
		if err := a.run(); err != nil {
			t.Fatal(err)
		}
		b.stopAgent(a, unix.SIGTERM)
	}
	if b.failures > 0 {
		t.Errorf("%d of 5 are at fault", b.failures)
	}
	t.Logf("%d of 5 ended before they had begun", a.early)
}

// built is rdx, where a test of agents can run.
func built(t *testing.T) string {
	t.Helper()
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
	return rdx
}
