package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/rdx-profiler/rdx/internal/version"
)

// rdx version and rdx --version say the same, and what is made of a trace carries it.
func TestVersion(t *testing.T) {
	line := "rdx " + version.Get().String() + "\n"
	for _, args := range [][]string{{"version"}, {"--version"}} {
		if out := ok(t, args...); out != line {
			t.Errorf("rdx %s says %q, want %q", args[0], out, line)
		}
	}
	var i version.Info
	if err := json.Unmarshal([]byte(ok(t, "version", "--json")), &i); err != nil || i != version.Get() {
		t.Errorf("--json: %v, %+v", err, i)
	}
	dir := t.TempDir()
	trace, profile := filepath.Join(dir, "t.txt"), filepath.Join(dir, "t.pb.gz")
	if err := os.WriteFile(trace, []byte("0 R\n64 R\n0 W\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ok(t, "exact", "-o", profile, trace)
	p, err := loadProfile(profile)
	if err != nil || p.Writer != version.Get().String() {
		t.Errorf("%v, a profile written by %q", err, p.Writer)
	}
}
