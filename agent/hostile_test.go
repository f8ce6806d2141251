package agent

import (
	"errors"
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
	// Go's Start returns when the program is being executed.
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
	var d *Details
	eventually(t, "it has been executed", func() bool {
		start = time.Now()
		d, err = r.Details(cmd.Process.Pid, c.OptOut, serviceVariable, resourceVariable)
		return err != nil || !errors.Is(d.EnvUnread, errExecuted)
	})
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

// A program that is just being executed has no environment yet: it is not taken for one that does not ask to be let be. There one
// is that really has none.
func TestJustExecuted(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "77")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(own, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/bin/true", filepath.Join(own, "exe")); err != nil {
		t.Fatal(err)
	}
	write("status", "Name:\ttrue\nTracerPid:\t0\n")
	write("cgroup", "0::/\n")
	write("environ", "")
	for end, want := range map[string]error{"0": errExecuted, "4000": nil} {
		// end_code is the 27th, and an environment that ends where it begins the last but one.
		write("stat", "77 (a) b) R"+strings.Repeat(" 1", 23)+" "+end+strings.Repeat(" 1", 22)+" 3000 3000 0\n")
		if d, err := (Proc{dir}).Details(77, "RDX_PROFILE"); err != nil || !errors.Is(d.EnvUnread, want) {
			t.Errorf("code that ends at %s: %v, %v; want %v", end, d.EnvUnread, err, want)
		}
	}
	// Live, where a processor that is busy with other work shows it one time in twenty.
	early := 0
	for range 1000 {
		cmd := exec.Command(os.Args[0], "__busy")
		cmd.Env = []string{"RDX_PROFILE=off"}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		d, err := Proc{"/proc"}.Details(cmd.Process.Pid, "RDX_PROFILE")
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err != nil || d.EnvUnread == nil && d.Env["RDX_PROFILE"] != "off" {
			t.Fatalf("its wish is not seen: %+v, %v", d, err)
		}
		if errors.Is(d.EnvUnread, errExecuted) {
			early++
		}
	}
	t.Logf("%d of 1000 were just being executed", early)
}
