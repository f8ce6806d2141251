package main

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// blocked is the demo program after its column walk was blocked: that reuse
// now comes soon.
func blocked(t *testing.T) *model.Profile {
	p := demoProfile(t)
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind == model.Reuse && r.Native == 500000 {
			r.Native, r.Time = 3000, 6000
		}
	}
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDiffText(t *testing.T) {
	a, b := demoFile(t, demoProfile(t)), demoFile(t, blocked(t))
	out := ok(t, "diff", a, b)
	t.Log("\n" + out)
	for _, want := range []string{"before       matmul -n 1000: 1160 observations", "L2      1.00MiB", "multiply\n", "-> multiply"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestDiffFinds(t *testing.T) {
	a, b := demoFile(t, demoProfile(t)), demoFile(t, blocked(t))
	var r report.DiffReport
	if err := json.Unmarshal([]byte(ok(t, "diff", "--by", "l2", "--format", "json", a, b)), &r); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Caches {
		if c.Level == "L2" && (!c.Significant || c.Change.Value > -0.3 || c.Change.High > -0.2) {
			t.Errorf("L2: %+v", c)
		}
	}
	if p := r.Pairs[0]; p.Use != "multiply" || p.Reuse != "multiply" || !p.Significant || p.Change.High > 0 {
		t.Errorf("first pair %+v", p)
	}
	for _, p := range r.Pairs[1:] {
		if p.Use == "accumulate" && p.Significant {
			t.Errorf("unchanged pair %+v", p)
		}
	}
}

// A profile compared with itself has no change, and nothing is significant.
func TestDiffSame(t *testing.T) {
	path := demoFile(t, demoProfile(t))
	var r report.DiffReport
	if err := json.Unmarshal([]byte(ok(t, "diff", "--format", "json", "--sizes", "64k,4m", path, path)), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Caches) != 2 || len(r.Pairs) == 0 {
		t.Fatalf("%d sizes, %d pairs", len(r.Caches), len(r.Pairs))
	}
	for _, c := range r.Caches {
		if c.Change.Value != 0 || c.Significant {
			t.Errorf("%+v", c)
		}
	}
	for _, p := range r.Pairs {
		if p.Change.Value != 0 || p.Significant {
			t.Errorf("%+v", p)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(ok(t, "diff", "--format", "csv", path, path))).ReadAll()
	if err != nil || len(rows) < 4 {
		t.Errorf("csv: %v, %v", rows, err)
	}
}

func TestDiffRefuses(t *testing.T) {
	p := demoProfile(t)
	path := demoFile(t, p)
	for _, args := range [][]string{
		{"diff", path}, {"diff", "--by", "nonsense", path, path}, {"diff", "--by", "distance", path, path}, {"diff", "-n", "0", path, path},
		{"diff", "--format", "svg", path, path}, {"diff", "--sizes", "1", path, path},
	} {
		if _, err := rdx(t, args...); err == nil || exitCode(err) != exitUsage {
			t.Errorf("rdx %s: %v", strings.Join(args, " "), err)
		}
	}
	words := demoProfile(t)
	words.Block = 8
	if _, err := rdx(t, "diff", path, demoFile(t, words)); err == nil || !strings.Contains(err.Error(), "blocks of 64 and 8 bytes") {
		t.Errorf("other blocks: %v", err)
	}
	rate := demoProfile(t)
	rate.Clock.Rate = 3
	if out := ok(t, "diff", path, demoFile(t, rate)); !strings.Contains(out, "the clocks differ") {
		t.Errorf("other clock rates are not mentioned:\n%s", out)
	}
}
