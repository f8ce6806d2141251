// Needs: nothing.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/report"
)

// Two instructions walk, in steps of 16 bytes that they read 4 of and in words that they write.
func TestExactPatterns(t *testing.T) {
	var b strings.Builder
	for lap := range 4 {
		for i := range 1024 {
			fmt.Fprintf(&b, "%d R 4 1 0x400\n%d W 8 %d 0x500\n", 1<<20+i*16, 1<<24+i*8, 1+lap%2)
		}
	}
	in := b.String()
	args := []string{"exact", "-", "--patterns", "--caches", "1K,1M"}
	var r report.Patterns
	if err := json.Unmarshal([]byte(mustRdx(t, in, append(args, "--format", "json")...)), &r); err != nil {
		t.Fatal(err)
	}
	if r.Accesses != 8192 || r.Lines != 1024*16/64+1024*8/64 || len(r.Instructions) != 2 || len(r.Caches) != 2 {
		t.Fatalf("%+v", r)
	}
	load, store := r.Instructions[0], r.Instructions[1]
	if load.Address != "0x400" || load.Access != "load" || load.Stride != "within_line" || load.Step != 16 || !load.Prefetched || load.Kept < 0.99 {
		t.Errorf("%+v", load)
	}
	if store.Address != "0x500" || store.Access != "store" || store.Stride != "within_line" || store.Step != 8 || store.Accesses != 4096 {
		t.Errorf("%+v", store)
	}
	if c := load.Caches[0]; c.Fills != 4*256 || c.LineUse == nil || *c.LineUse != 16 {
		t.Errorf("%+v", c)
	}
	if c := store.Caches[1]; c.Fills != 128 || c.WriteBacks != 0 || c.Traffic != 128*64 || *c.LineUse != 64 || r.Caches[1].DirtyAtEnd != 128 {
		t.Errorf("%+v, %+v", c, r.Caches[1])
	}
	if len(r.Strides) != 1 || r.Strides[0] != (report.StrideShare{Stride: "within_line", Accesses: 8192}) {
		t.Errorf("%+v", r.Strides)
	}
	if out := mustRdx(t, in, args...); !strings.Contains(out, "16.0 of 64") || !strings.Contains(out, "no values") {
		t.Errorf("text:\n%s", out)
	}
	if out := mustRdx(t, in, append(args, "--format", "csv")...); strings.Count(out, "\n") != 1+2+4 {
		t.Errorf("csv:\n%s", out)
	}
	for _, bad := range [][]string{{"--block", "word"}, {"--stack", "private"}, {"-o", "x"}, {"--log2"}, {"--sizes", "1K"}, {"--caches", "10"}, {"--shards", "size=9"}} {
		_, _, err := rdxErr(t, in, append(args, bad...)...)
		var usage report.UsageError
		if !errors.As(err, &usage) {
			t.Errorf("%q: %v, want a usage error", bad, err)
		}
	}
}

// Of profiles for different caches diff says so: the misses of pairs are not those of one cache.
func TestDiffOfOtherCaches(t *testing.T) {
	dir := t.TempDir()
	in := mustRdx(t, "", "gen", "--zipf", "1", "-n", "500", "-t", "20000")
	for name, caches := range map[string]string{"a": "1K,8K", "b": "2K,8K", "c": "1K,8K"} {
		mustRdx(t, in, "exact", "-", "-q", "-o", filepath.Join(dir, name), "--caches", caches)
	}
	const said = "for different caches, C1 1.00KiB, C2 8.00KiB and C1 2.00KiB, C2 8.00KiB"
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if out := flat(mustRdx(t, "", "diff", filepath.Join(dir, "a"), filepath.Join(dir, "b"))); !strings.Contains(out, said) {
		t.Errorf("diff of other caches:\n%s", out)
	}
	if out := flat(mustRdx(t, "", "diff", filepath.Join(dir, "a"), filepath.Join(dir, "c"))); strings.Contains(out, "different caches") {
		t.Errorf("diff of the same caches:\n%s", out)
	}
}
