package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
)

// A process with a name of control characters and quotes, 1.5 MB of environment with what
// counts at its end, and a file that was replaced while it runs, is looked at like any other.
func TestHostileProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "evil\n\x1b[31m'\" (x) S 1 ")
	b, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(path, b, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "__busy")
	for i := range 15 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("LARGE%d=%s", i, strings.Repeat("x", 100_000)))
	}
	cmd.Env = append(cmd.Env, "OTEL_SERVICE_NAME=\x1b]0;owned\x07\n"+strings.Repeat("s", 1000), "OTEL_RESOURCE_ATTRIBUTES==,=,service.version=%zz%00,,,service.namespace", "RDX_PROFILE=off")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	// Go's Start returns when the program has been executed.
	if err := os.WriteFile(path+".new", []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	c := Defaults()
	r := Proc{"/proc"}
	p, err := r.Process(cmd.Process.Pid)
	if err != nil || p.PID != cmd.Process.Pid || p.Parent != os.Getpid() || p.Kernel {
		t.Errorf("%+v: %v", p, err)
	}
	start := time.Now()
	d, err := r.Details(cmd.Process.Pid, c.OptOut, serviceVariable, resourceVariable)
	if err != nil {
		t.Fatal(err)
	}
	if elapsed := time.Since(start); elapsed > 2*time.Second {
		t.Errorf("it took %v", elapsed)
	}
	if d.Exe != path || d.Self || d.EnvUnread != nil || d.Env[c.OptOut] != "off" {
		t.Errorf("exe %q, self %v, environment %v, %q", d.Exe, d.Self, d.EnvUnread, d.Env[c.OptOut])
	}
	labels := namer(c).Labels(d)
	for name, v := range labels {
		if strings.ContainsFunc(v, unicode.IsControl) || len(v) > 4*longestLabelValue {
			t.Errorf("%s: %q", name, v)
		}
	}
	if why := c.refuses(d, labels); why != whyAsked {
		t.Errorf("refused as %q", why)
	}
}
