package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/commands.md anew")

// The reference is the help that there is.
func TestCommandReference(t *testing.T) {
	t.Setenv("RDX_FLEET_SERVER", "") // a default
	const path = "../../docs/reference/commands.md"
	got, err := commandReference(newRootCmd())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s is not what the commands say (%v): go test ./cmd/rdx -run TestCommandReference -update", path, err)
	}
}

// Packages get a page and completions of every command, the same bytes each time.
func TestDocs(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	var all [2]map[string]string
	for i := range all {
		dir := t.TempDir()
		ok(t, "docs", dir)
		all[i] = map[string]string{}
		for _, pattern := range []string{"man/*", "completion/*"} {
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				all[i][filepath.Base(f)] = string(text)
			}
		}
	}
	for _, name := range []string{"rdx.1", "rdx-attach.1", "rdx-trace-record.1", "rdx.bash", "_rdx", "rdx.fish"} {
		if all[0][name] == "" {
			t.Errorf("no %s", name)
		}
	}
	for name, text := range all[0] {
		if all[1][name] != text {
			t.Errorf("%s is not the same the second time", name)
		}
	}
}
