// Needs gcc and make; of the valgrind tool also the package valgrind.
package trace

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// An engine is built from what rdx has in it, and found where nobody else can have put it.
func TestBuildEngine(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("engines are for x86-64")
	}
	for _, tool := range []string{"gcc", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
	t.Setenv("RDX_ENGINE", "")
	os.Unsetenv("RDX_ENGINE")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	dir, err := UserEngines()
	if err != nil {
		t.Fatal(err)
	}
	if found := QEMU.Find(); found != "" {
		t.Fatalf("found in %s before it was built", found)
	}
	for _, k := range Engines {
		if _, err := os.Stat("/usr/include/valgrind/pub_tool_basics.h"); k == Valgrind && err != nil {
			continue
		}
		var said strings.Builder
		folder, err := BuildEngine(t.Context(), k, dir, &said)
		if err != nil {
			t.Fatalf("%v\n%s", err, &said)
		}
		if found := k.Find(); found != folder {
			t.Errorf("%s: found in %q, built in %s", k, found, folder)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if found := QEMU.Find(); found != "" {
		t.Errorf("found in %s, where anyone may have put it", found)
	}
	if _, err := BuildEngine(t.Context(), QEMU, filepath.Join(t.TempDir(), "a b"), &strings.Builder{}); err == nil {
		t.Error("make was given a folder with a space")
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := BuildEngine(t.Context(), QEMU, t.TempDir(), &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "apt-get install make") {
		t.Errorf("without make: %v", err)
	}
}
