// Needs: root, bpf, watchpoint, gcc, Pyroscope. An agent samples a service whose miss ratio is known.
package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/fleet/backend"
)

func TestAgentLive(t *testing.T) {
	needRoot(t)
	needTool(t, "gcc")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	servers, err := backend.Start(ctx, dir, 1, backend.Options{})
	if errors.Is(err, backend.ErrNotBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Stop(servers) })
	program := filepath.Join(dir, "service")
	if out, err := exec.Command("gcc", "-O2", "-g", "-o", program, "../../demo/service.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	service := exec.Command(program, "32768", "10") // 2 MiB
	service.Env = []string{"OTEL_SERVICE_NAME=checkout", "OTEL_RESOURCE_ATTRIBUTES=service.version=41"}
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = service.Process.Kill()
		_ = service.Wait()
	})
	config := fmt.Sprintf("server: {url: '%s'}\nperiod: 10s\ndiscover: 1s\noverhead: 10\ntarget_overhead: 5\nspool: {dir: '%s/spool'}\nlisten: 'unix:%s/sock'\nonly: [{exe: '^%s$'}]\nlog_level: debug\n",
		servers[0].URL, dir, dir, program)
	path := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	agent := exec.Command(rdxPath(t), "agent", "--config", path)
	agent.Stderr = &log
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	done := make(chan error, 1)
	go func() { done <- agent.Wait() }()
	pushed := func() bool {
		out, err := exec.Command(rdxPath(t), "fleet", "top", "--server", servers[0].URL, "--by-label", "version", "--by=l1d", "--format=json").Output()
		return err == nil && strings.Contains(string(out), `"41"`)
	}
	for end := time.Now().Add(40 * time.Second); !pushed() && time.Now().Before(end); time.Sleep(time.Second) {
	}
	t.Logf("the first window after %v", time.Since(began))
	if err := agent.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("agent: %v: %s", err, log.String())
		}
	case <-time.After(8 * time.Second):
		_ = agent.Process.Kill()
		t.Fatalf("the agent does not end: %s", log.String())
	}
	assertFree(t, service.Process.Pid)
	out, err := exec.Command(rdxPath(t), "fleet", "mrc", "--server", servers[0].URL, "--service=checkout", "--label=version=41", "--sizes=16k", "--format=json").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, out, log.String())
	}
	var r struct {
		Curves []struct {
			Points []struct{ Low, High float64 }
		}
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if q := r.Curves[0].Points[0]; q.Low > .1 || q.High < .1 {
		t.Errorf("at 16 KiB %+v, want 0.1", q)
	}
}
