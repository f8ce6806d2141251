//go:build linux && amd64

// Needs: root, bpf, watchpoint, gcc, make and the package valgrind (its headers too).
package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// What a live session takes for an access is what the exact engine does, of read-modify-writes
// with lock and without, calls, accesses that straddle words and lines, and string instructions: each
// pair that it finds, and its time, is one of those that there are in a turn of the loop.
func TestLiveAccessModel(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	needRoot(t)
	needTool(t, "gcc", "make", "valgrind")
	if _, err := os.Stat("/usr/include/valgrind/pub_tool_basics.h"); err != nil {
		t.Skipf("needs valgrind's headers: %v", err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("make", "-s", "-C", "../../trace/valgrind", "OUT="+dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	source, err := os.ReadFile("../../trace/testdata/known.S")
	if err != nil {
		t.Fatal(err)
	}
	build := func(name, turns string) string {
		path := filepath.Join(dir, name)
		c := exec.Command("gcc", "-nostdlib", "-static", "-no-pie", "-x", "assembler-with-cpp", "-o", path, "-")
		c.Stdin = strings.NewReader(strings.Replace(string(source), "mov $1000, %r12", "mov $"+turns+", %r12", 1))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return path
	}
	// The instructions' numbers are as long in both.
	short, long := build("short", "20000"), build("long", "60000000")
	type pair struct {
		use, reuse uint64
		time       uint64 // words touched, in bins of 16 an octave
	}
	pairs := func(p *model.Profile) map[pair]float64 { // those that were counted
		found := map[pair]float64{}
		for i := range p.Records {
			if r := &p.Records[i]; r.Kind == model.Reuse && r.Exact && len(r.Use) > 0 && len(r.Reuse) > 0 {
				found[pair{r.Use[0].Address, r.Reuse[0].Address, r.Time}] += float64(r.Observations)
			}
		}
		return found
	}
	output := filepath.Join(dir, "exact.pb.gz")
	if out, err := exec.Command(rdxPath(t), "exact", "--engine", dir, "--block", "word", "--bins", "16", "-o", output, "--", short).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	exact := pairs(readProfile(t, output))
	seen, wrong, n := map[pair]bool{}, map[pair]float64{}, 0.0
	bySessions(t, "most of the pairs", func() bool {
		for p, of := range pairs(rdx(t, "run", "-q", "--granularity", "word", "--overhead", "30", "--", long).profile()) {
			n += of
			if exact[p] < 10_000 { // those of the first turn and the last apart
				wrong[p] += of
			}
			seen[p] = true
		}
		return len(seen) >= 20 && n >= 500
	})
	t.Logf("%.0f observations of %d pairs, %d in the exact profile", n, len(seen), len(exact))
	for p, of := range wrong {
		t.Errorf("%.0f observations of %#x -> %#x after %d: %g in the exact profile", of, p.use, p.reuse, p.time, exact[p])
	}
}
