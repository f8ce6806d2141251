package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
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
		// Either ratio is known within a quarter, as holds come by time.
		if c.Level == "L2" && (!c.Significant || c.Change.Value > -0.3 || c.Change.High > -0.15) {
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
	if out := ok(t, "diff", path, demoFile(t, rate)); !strings.Contains(out, "! the access rates differ, ") || !strings.Contains(out, "--access-rate") {
		t.Errorf("other clock rates are not mentioned:\n%s", out)
	}
	rate.Clock.Rate = 1.02 * demoProfile(t).Clock.Rate // as of any two sessions
	if out := ok(t, "diff", path, demoFile(t, rate)); strings.Contains(out, "rates differ") {
		t.Errorf("two per cent are mentioned:\n%s", out)
	}
	clock := demoProfile(t)
	clock.Clock.Name, clock.Clock.Unit = "pmu", "accesses"
	if out := ok(t, "diff", path, demoFile(t, clock)); !strings.Contains(out, "! the clocks differ, ") || !strings.Contains(out, "--clock") {
		t.Errorf("another clock is not mentioned:\n%s", out)
	}
	clock.ExactDistances = true
	if out := ok(t, "diff", path, demoFile(t, clock)); strings.Contains(out, "clocks differ") || !strings.Contains(out, "rdx compare") {
		t.Errorf("that one is exact is not mentioned:\n%s", out)
	}
}

// Caches of the same sizes are the same caches, whatever they are called; without one in common it is said what to do.
func TestDiffOtherCaches(t *testing.T) {
	p := demoProfile(t)
	path := demoFile(t, p)
	named := demoProfile(t)
	for i := range named.Caches {
		named.Caches[i].Level = fmt.Sprintf("C%d", i+1)
	}
	for _, args := range [][]string{{path, demoFile(t, named)}, {demoFile(t, named), path}, {"--by", "l2", path, demoFile(t, named)}, {"--by", "l2", demoFile(t, named), path}} {
		if out := ok(t, append([]string{"diff"}, args...)...); !strings.Contains(out, "use -> reuse pairs of functions") || strings.Contains(out, "different caches") {
			t.Errorf("rdx diff %s:\n%s", strings.Join(args, " "), out)
		}
	}
	for i := range named.Caches {
		named.Caches[i].Size *= 3
	}
	if _, err := rdx(t, "diff", path, demoFile(t, named)); err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--caches") {
		t.Errorf("no cache in common: %v", err)
	}
	if out := ok(t, "diff", "--by", "reuses", path, demoFile(t, named)); !strings.Contains(out, "different caches") {
		t.Errorf("other caches are not mentioned:\n%s", out)
	}
}

// No change of a share goes beyond what a share can be, however few observations it rests on.
func TestDiffBandsArePossible(t *testing.T) {
	few := func(p *model.Profile) string {
		for i := range p.Records {
			p.Records[i].Observations = 2
		}
		return demoFile(t, p)
	}
	var d report.DiffReport
	if err := json.Unmarshal([]byte(ok(t, "diff", "--format", "json", few(demoProfile(t)), few(blocked(t)))), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Pairs) == 0 || d.Total.Before.High < 1 {
		t.Fatalf("no wide band in %+v", d)
	}
	for _, p := range d.Pairs {
		if c := p.Change; c.Low < -1 || c.High > 1 || p.Before.High > 1 || p.After.High > 1 {
			t.Errorf("%s -> %s: %+v", p.Use, p.Reuse, p)
		}
	}
}
