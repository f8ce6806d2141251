package main

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

func TestTopCover(t *testing.T) {
	path := demoFile(t, demoProfile(t))
	type answer struct {
		Cache  int64   `json:"cache_bytes"`
		Misses float64 `json:"misses"`
		All    int     `json:"places_in_all"`
		Places []struct {
			Function         string
			Line             int
			Share            float64
			Cumulative_share float64
		}
	}
	get := func(args ...string) answer {
		var a answer
		out := ok(t, append([]string{"top", "--format", "json", path}, args...)...)
		if err := json.Unmarshal([]byte(out), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	// Reuses of the column walk, at line 23, are nearly all that a level-2
	// cache misses; those of the inner sum are never.
	a := get("--cover", "75", "--cache", "l2")
	if a.Cache != 1<<20 || len(a.Places) != 1 || a.Places[0].Function != "multiply" || a.Places[0].Line != 23 {
		t.Errorf("75 %% of l2: %+v", a)
	}
	all := get("--cover", "100", "--cache", "1048576")
	if len(all.Places) != all.All || math.Abs(all.Places[len(all.Places)-1].Cumulative_share-1) > 1e-9 || math.Abs(all.Misses/a.Misses-1) > 1e-9 {
		t.Errorf("all of 1 MB: %+v", all)
	}
	for _, p := range all.Places {
		if p.Function == "accumulate" && p.Share > 1e-6 {
			t.Errorf("the inner sum misses: %+v", p)
		}
	}
	if out := ok(t, "top", "--cover", "90", "--cache", "1m", path); !strings.Contains(out, "happen at 1 of ") || !strings.Contains(out, "matmul.c:23") {
		t.Error(out)
	}
	if last, l2 := get("--cover", "100"), get("--cover", "100", "--cache", "l2"); last.Cache != l2.Cache || last.Misses != l2.Misses {
		t.Errorf("without a cache %+v, of the last %+v", last, l2)
	}
	// Of a cache without misses there is nothing to cover: by default it is the largest one that has them.
	p := demoProfile(t)
	p.Caches = append(p.Caches, model.Cache{Level: "L3", Size: 1 << 30, Line: 64})
	p.Records = slices.DeleteFunc(p.Records, func(r model.Record) bool { return r.Kind == model.Cold })
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	if out := ok(t, "top", "--cover", "90", demoFile(t, p)); !strings.Contains(out, " misses of a 1.00MiB cache") {
		t.Error(out)
	}
	if out := ok(t, "top", "--cache", "1m", "--format", "csv", path); !strings.HasPrefix(out, "function,file,line,misses") {
		t.Error(out)
	}
	for _, args := range [][]string{
		{"--cover", "0", "--cache", "1m"}, {"--cover", "101", "--cache", "1m"}, {"--cache", "l9"}, {"--cache", "1m", "--by", "l2"}, {"--cache", "1"},
	} {
		if out, err := rdx(t, append([]string{"top", path}, args...)...); err == nil {
			t.Errorf("%q: no error: %s", args, out)
		}
	}
}
