// Needs: root, bpf, gcc, setpriv. An agent samples a process that is made to do harm, and keeps its secrets.
package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"google.golang.org/protobuf/encoding/protowire"
)

// takesPushes is a server that takes everything, and what it was given.
type takesPushes struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]byte
}

func newTakesPushes(t *testing.T) *takesPushes {
	s := &takesPushes{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.bodies = append(s.bodies, b)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/proto")
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *takesPushes) first() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bodies) == 0 {
		return nil
	}
	return s.bodies[0]
}

// fields are a message's of that number.
func fields(t *testing.T, b []byte, number protowire.Number) (out [][]byte) {
	t.Helper()
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 || kind != protowire.BytesType {
			t.Fatalf("no message: %v", protowire.ParseError(size))
		}
		v, more := protowire.ConsumeBytes(b[size:])
		if more < 0 {
			t.Fatalf("no message: %v", protowire.ParseError(more))
		}
		if n == number {
			out = append(out, v)
		}
		b = b[size+more:]
	}
	return out
}

// labelsOf are those of the first series of a push.
func labelsOf(t *testing.T, push []byte) map[string]string {
	t.Helper()
	labels := map[string]string{}
	for _, l := range fields(t, fields(t, push, 1)[0], 1) {
		labels[string(fields(t, l, 1)[0])] = string(fields(t, l, 2)[0])
	}
	return labels
}

// sessionsOf are an agent's children.
func sessionsOf(pid int) (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range tasks {
		b, _ := os.ReadFile(f)
		for _, n := range strings.Fields(string(b)) {
			child, _ := strconv.Atoi(n)
			pids = append(pids, child)
		}
	}
	return pids
}

// A process with names of control characters and quotes, in a control group of blanks and quotes, with 100,000 mappings and 2 MB of
// environment, whose file is replaced while it runs, is sampled like any other; neither it nor the agent takes harm. The
// agent's token is nowhere but in its file.
func TestAgentHostile(t *testing.T) {
	needRoot(t)
	needTool(t, "gcc", "setpriv", "sh")
	const limitFile, mappings = "/proc/sys/vm/max_map_count", 100_000
	was, err := os.ReadFile(limitFile)
	if err == nil {
		if n, _ := strconv.Atoi(strings.TrimSpace(string(was))); n < mappings+1000 {
			if err = os.WriteFile(limitFile, []byte(strconv.Itoa(mappings+20_000)), 0); err == nil {
				t.Cleanup(func() { _ = os.WriteFile(limitFile, was, 0) })
			}
		}
	}
	if err != nil {
		t.Skipf("needs a limit of %d mappings: %v", mappings, err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "evil \x1b[31m'\"\n)")
	data, err := os.ReadFile(compile(t, "mappings"))
	if err == nil {
		err = os.WriteFile(program, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	// An environment may have a quarter of the stack's limit.
	cmd := exec.Command("sh", "-c", `ulimit -s 65536 && exec "$0" "$1"`, program, strconv.Itoa(mappings))
	for i := range 20 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("LARGE%d=%s", i, strings.Repeat("x", 104_000)))
	}
	cmd.Env = append(cmd.Env, "OTEL_SERVICE_NAME=evil \x1b]0;owned\x07\n\"'", "OTEL_RESOURCE_ATTRIBUTES=service.version=%1b%00\"1")
	p := startCmd(t, cmd)
	if line := p.line(); line != "ready" {
		t.Fatalf("the target says %q", line)
	}
	if maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.pid)); err != nil || strings.Count(string(maps), "\n") < mappings {
		t.Fatalf("%d mappings: %v", strings.Count(string(maps), "\n"), err)
	}
	if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid)); err != nil || len(env) < 2_000_000 {
		t.Fatalf("%d bytes of environment: %v", len(env), err)
	}
	group := groupOf(t, p.pid, "evil 'x\" \x1b[31m.service")
	if err := os.WriteFile(program+".new", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(program+".new", program); err != nil {
		t.Fatal(err)
	}

	s := newTakesPushes(t)
	const secret = "t0ken-that-nobody-may-see"
	token, config := filepath.Join(dir, "token"), filepath.Join(dir, "agent.yaml")
	text := fmt.Sprintf("server: {url: '%s', token_file: '%s'}\nperiod: 10s\ndiscover: 1s\noverhead: 10\ntarget_overhead: 5\nspool: {dir: '%s/spool'}\nlisten: 'unix:%s/sock'\nonly: [{exe: '/evil '}]\nlog_level: debug\n",
		s.URL, token, dir, dir)
	for name, text := range map[string]string{token: secret, config: text} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	agent := startCmd(t, exec.Command(rdxPath(t), "agent", "--config", config))
	looked := map[int]bool{}
	within(t, 3*time.Minute, "a window arrives", func() bool {
		for _, pid := range append(sessionsOf(agent.pid), agent.pid) {
			for _, file := range []string{"cmdline", "environ"} {
				if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file)); err == nil && len(b) > 0 {
					looked[pid] = true
					if strings.Contains(string(b), secret) {
						t.Fatalf("the token is in %s of process %d", file, pid)
					}
				}
			}
		}
		time.Sleep(10 * time.Millisecond)
		return s.first() != nil
	})
	if len(looked) < 2 {
		t.Errorf("%d processes looked at, want the agent and a session", len(looked))
	}
	labels := labelsOf(t, s.first())
	for name, v := range labels {
		if strings.ContainsFunc(v, unicode.IsControl) || strings.Contains(v, secret) {
			t.Errorf("label %s: %q", name, v)
		}
	}
	if labels["service_name"] != "evil _]0;owned__\"'" || labels["version"] != "__\"1" {
		t.Errorf("labels %q (control group %q)", labels, group)
	}
	if err := agent.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-agent.exited:
	case <-time.After(20 * time.Second):
		t.Fatal("the agent does not end")
	}
	if !agent.cmd.ProcessState.Success() || strings.Contains(agent.stderr.String(), secret) {
		t.Errorf("agent: %v, %s", agent.cmd.ProcessState, agent.stderr.String())
	}
	for line := range strings.Lines(agent.stderr.String()) {
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl) {
			t.Errorf("control characters in the log: %q", line)
		}
	}
	assertFree(t, p.pid)
	p.end()
}

// groupOf puts a process into a control group of that name, where that can be done here.
func groupOf(t *testing.T, pid int, name string) string {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
			continue
		}
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			continue
		}
		return dir
	}
	t.Log("no control group could be made: its name is not tested here")
	return ""
}
