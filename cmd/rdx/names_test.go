// Needs: root, bpf, watchpoint, gcc; readelf. What code is called in a live profile, whatever
// becomes of the files that say so.
package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

func buildIDOf(t *testing.T, file string) string {
	t.Helper()
	needTool(t, "readelf")
	out, err := exec.Command("readelf", "-n", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`Build ID: ([0-9a-f]+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("no build ID in %s:\n%s", file, out)
	}
	return string(m[1])
}

// A live profile has the build IDs of what was mapped: also when the file has been replaced by another
// since, as by an upgrade.
func TestBuildIDs(t *testing.T) {
	needRoot(t)
	built := compile(t, "sum", "-Wl,--build-id")
	bin := filepath.Join(t.TempDir(), "sum")
	if out, err := exec.Command("cp", built, bin).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := buildIDOf(t, bin)
	p := target(t, bin, "1")
	other := compile(t, "sum", "-Wl,--build-id=0xfeedbeef")
	if err := os.Remove(bin); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", other, bin).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	profile := attach(t, p.pid, "-d", "1s").profile()
	p.end()
	n, _, named := seen(profile, "work")
	if n == 0 || named < .9 {
		t.Errorf("%d observations, %.0f %% of them in work", n, 100*named)
	}
	for i := range profile.Records {
		for _, l := range profile.Records[i].Use {
			m := l.Mapping
			if m == nil || m.File == "" || m.File[0] != '/' {
				continue
			}
			if m.BuildID == "" || filepath.Base(m.File) == "sum (deleted)" && m.BuildID != want {
				t.Fatalf("mapping %+v, want build ID %s", m, want)
			}
		}
	}
}
