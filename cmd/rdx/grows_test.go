// Needs: root, bpf, watchpoint, gcc. What a hundred times as much of a target costs rdx is some hundred times as
// much at most: threads, children, mappings and libraries. Symbols, perf maps and what is decompressed: pprofout's tests.
package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func TestGrows(t *testing.T) {
	needRoot(t)
	grow := compile(t, "grow")
	dir := t.TempDir()
	lib := filepath.Join(dir, "lib.so")
	if err := os.WriteFile(filepath.Join(dir, "lib.c"), []byte("int f(int a) { return a + 1; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", lib, filepath.Join(dir, "lib.c")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// cost is the CPU time that rdx took, the program being there or not yet.
	cost := func(kind string, n int, flags ...string) time.Duration {
		args := append([]string{"run", "-q", "-d", "20s", "-o", filepath.Join(dir, "p.pb.gz")}, flags...)
		s := start(t, append(append([]string{rdxPath(t)}, args...), "--", grow, kind, strconv.Itoa(n), lib)...)
		if code := s.wait(); code != 0 {
			t.Fatalf("%s %d: exit code %d: %s", kind, n, code, s.stderr.String())
		}
		readProfile(t, filepath.Join(dir, "p.pb.gz"))
		return s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()
	}
	for _, c := range []struct {
		kind  string
		few   int
		flags []string
	}{
		{"threads at once", 8, nil},
		{"threads one after the other", 20, nil},
		{"children", 20, []string{"--follow"}},
		{"mappings", 300, nil},
		{"libraries", 4, nil},
	} {
		t.Run(c.kind, func(t *testing.T) {
			// The least of two: other work of the machine only adds to it.
			least := func(n int) time.Duration {
				d := cost(c.kind, n, c.flags...)
				for range 1 {
					d = min(d, cost(c.kind, n, c.flags...))
				}
				return d
			}
			base := least(0)
			many := cost(c.kind, 100*c.few, c.flags...) - base
			t.Logf("%d: %v; without any %v", 100*c.few, many, base)
			// Ten times as many: where it were quadratic, a hundred times as much. What some cost may be lost in the base, which
			// differs by a twentieth from run to run.
			floor := max(30*time.Millisecond, base/20)
			if many <= 35*floor {
				return // whatever some cost
			}
			some, many := least(10*c.few)-base, min(many, least(100*c.few)-base)
			t.Logf("%d: %v; %d: %v", 10*c.few, some, 100*c.few, many)
			if many > 35*max(some, floor) {
				t.Errorf("%s cost %v, ten times as many %v", fmt.Sprint(10*c.few, " ", c.kind), some, many)
			}
		})
	}
}
