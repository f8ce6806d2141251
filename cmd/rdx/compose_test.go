package main

import (
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
	"github.com/rdx-profiler/rdx/report"
)

// loopProfile writes the profile of a loop over so many lines, which makes
// rate accesses per second.
func loopProfile(t *testing.T, lines uint64, rate float64, block int) string {
	t.Helper()
	exe := &model.Mapping{Start: 0x400000, Limit: 0x500000, File: "/usr/bin/loop"}
	at := []*model.Location{{Address: 0x400100, Mapping: exe, Lines: []model.Line{{Function: "loop", SystemName: "loop"}}}}
	p := &model.Profile{
		Start: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Duration: 10 * time.Second, Command: "loop", Source: "ibs", Period: 1e6,
		Clock: model.Clock{Name: "accesses", Unit: "accesses", Rate: 1, RateSource: "measured"}, Block: block, BinsPerOctave: 64,
		Records: []model.Record{{Kind: model.Reuse, Use: at, Ending: model.Ending{Reuse: at}, Op: model.Load, TID: 1, Timing: model.Timing{Time: lines, Native: lines}, Weight: model.Weight{Observations: 1000, Accesses: 10 * rate}}},
	}
	path := filepath.Join(t.TempDir(), "loop.pb.gz")
	if err := pprofout.WriteFile(path, p); err != nil {
		t.Fatal(err)
	}
	return path
}

func fromJSON[T any](t *testing.T, args ...string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(mustRdx(t, "", append(args, "--format", "json")...)), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestComposeCommand(t *testing.T) {
	// Loops of 640 KiB and 320 KiB: each fits in 1 MiB, both together do in
	// 1 MiB but not in 768 KiB.
	big, small := loopProfile(t, 10240, 1e6, 64), loopProfile(t, 5120, 1e6, 64)
	r := fromJSON[report.ComposeReport](t, "compose", big, small, "--cache", "1m,768k")
	if len(r.Rows) != 4 || r.Rates != "from the profiles" {
		t.Fatalf("%+v", r)
	}
	for i, x := range r.Rows {
		want := 0.0
		// With equal rates the small loop fills its part first, then the big
		// one goes on alone and runs out of cache; the small one is safe if
		// its round is over before the cache is full.
		if i == 2 {
			want = 1
		}
		if math.Abs(x.Shared-want) > 0.02 || x.Alone > 0.02 || math.Abs(x.Rate-1e6) > 1 {
			t.Errorf("%+v, want a shared miss ratio of %v", x, want)
		}
	}
	// If the small loop is much slower, it goes too.
	r = fromJSON[report.ComposeReport](t, "compose", big, small, "--cache", "768k", "--rates", "10,1")
	if r.Rows[1].Shared < 0.98 || r.Rates != "given" {
		t.Errorf("%+v", r)
	}
	text := mustRdx(t, "", "compose", big, small, "--cache", "1m")
	if !strings.Contains(text, "    <1.0%     <1.0%") { // 1000 observations
		t.Errorf("a miss ratio is quoted that 1000 observations cannot tell:\n%s", text)
	}
	if !strings.Contains(text, "cache of 1.00MiB") || strings.Count(text, "\n") != 4 {
		t.Errorf("%s", text)
	}
	csv := mustRdx(t, "", "compose", big, "--cache", "1m", "--format", "csv")
	if strings.Count(csv, "\n") != 2 || !strings.HasPrefix(csv, "cache_bytes,program,") {
		t.Errorf("%s", csv)
	}
}

// Files of one name are told apart by their folders.
func TestShortNames(t *testing.T) {
	itself := func(s *string) string { return *s }
	for _, c := range []struct{ paths, want []string }{
		{[]string{"a/x", "b/y", "a/x"}, []string{"x", "y", "x"}},
		{[]string{"a/x", "b/y", "b/x"}, []string{"a/x", "b/y", "b/x"}},
	} {
		names := report.ShortNames(c.paths, itself)
		for i, p := range c.paths {
			if names[p] != c.want[i] {
				t.Errorf("%q: %q, want %q", p, names[p], c.want[i])
			}
		}
	}
}

// A profile of rdx exact has the duration of the instrumented run, which says
// nothing of the program's rate; one whose accesses are a guess says so.
func TestCorunRates(t *testing.T) {
	exact, guess := changedProfile(t, func(p *model.Profile) { p.ExactDistances = true }), changedProfile(t, func(p *model.Profile) { p.Clock.RateSource = "default" })
	timed := loopProfile(t, 100, 5e6, 64)
	for _, c := range []struct{ other, want string }{{exact, "taken as equal, as " + filepath.Base(exact)}, {guess, "1 of them is a guess"}} {
		r := fromJSON[report.ComposeReport](t, "compose", timed, c.other, "--cache", "1m")
		if !strings.Contains(r.Rates, c.want) || c.other == exact && r.Rows[0].Rate != r.Rows[1].Rate {
			t.Errorf("%+v, want %q", r, c.want)
		}
		if r = fromJSON[report.ComposeReport](t, "compose", timed, c.other, "--cache", "1m", "--rates", "2,1"); r.Rates != "given" {
			t.Errorf("%+v", r)
		}
	}
}

// changedProfile is a loop's profile, changed.
func changedProfile(t *testing.T, change func(p *model.Profile)) string {
	t.Helper()
	p, err := readProfile(loopProfile(t, 200, 1e6, 64))
	if err != nil {
		t.Fatal(err)
	}
	change(p)
	path := filepath.Join(t.TempDir(), "changed.pb.gz")
	if err := pprofout.WriteFile(path, p); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPartitionCommand(t *testing.T) {
	// 10 of 16 ways are just enough for the first, 5 for the second; the third
	// fits nowhere.
	a, b, c := loopProfile(t, 10000, 1e6, 64), loopProfile(t, 5000, 1e6, 64), loopProfile(t, 1e6, 1e6, 64)
	r := fromJSON[report.PartitionReport](t, "partition", a, b, c, "--cache", "1m", "--ways", "16")
	if r.Rows[0].Ways != 10 || r.Rows[1].Ways != 5 || r.Rows[2].Ways != 1 {
		t.Errorf("%+v", r.Rows)
	}
	for _, x := range []struct {
		what      string
		got, want float64
	}{{"best", r.Best, 1.0 / 3}, {"equal", r.Equal, 2.0 / 3}, {"shared", r.Free, 2.0 / 3}} {
		if math.Abs(x.got-x.want) > 0.02 {
			t.Errorf("%s: %v misses per access, want %v", x.what, x.got, x.want)
		}
	}
	if text := mustRdx(t, "", "partition", a, b, c, "--cache", "1m"); strings.Count(text, "\n") != 7 || !strings.Contains(text, "the best division misses 33 % of the accesses less than") {
		t.Errorf("%s", text)
	}
	if csv := mustRdx(t, "", "partition", a, b, c, "--cache", "1m", "--format", "csv"); strings.Count(csv, "\n") != 5 {
		t.Errorf("%s", csv)
	}
	if text := mustRdx(t, "", "partition", a, b, "--cache", "1m"); !strings.Contains(text, "   16    <1.0%") || !strings.Contains(text, "no division is worth it") {
		t.Errorf("misses of all accesses that 1000 observations of each cannot tell:\n%s", text)
	}
}

func TestGroupCommand(t *testing.T) {
	// Two caches of 1 MiB: the two that fit together belong together, for the
	// fast streams would push either of them out.
	a, b := loopProfile(t, 8000, 1e6, 64), loopProfile(t, 8000, 1e6, 64)
	stream, stream2 := loopProfile(t, 1e6, 2e6, 64), loopProfile(t, 1e6, 2e6, 64)
	r := fromJSON[report.GroupReport](t, "group", a, stream, b, stream2, "--cache", "1m", "--caches", "2")
	of := map[string]int{}
	for _, x := range r.Rows {
		of[x.Program] = x.Group
	}
	if of[a] != of[b] || of[stream] != of[stream2] || of[a] == of[stream] || math.Abs(r.Misses-2.0/3) > 0.02 {
		t.Errorf("%+v", r)
	}
	if text := mustRdx(t, "", "group", a, b, stream, "--cache", "1m"); strings.Count(text, "\n") != 6 {
		t.Errorf("%s", text)
	}
	if csv := mustRdx(t, "", "group", a, b, "--cache", "1m", "--format", "csv"); strings.Count(csv, "\n") != 3 {
		t.Errorf("%s", csv)
	}
	if text := mustRdx(t, "", "group", a, b, "--cache", "1m"); !strings.Contains(text, "   <1.0%  all accesses") {
		t.Errorf("misses of all accesses that 1000 observations of each cannot tell:\n%s", text)
	}
}

func TestCorunErrors(t *testing.T) {
	line, word := loopProfile(t, 100, 1e6, 64), loopProfile(t, 100, 1e6, 8)
	none := demoProfile(t)
	none.Records = nil
	empty := demoFile(t, none)
	for _, c := range []struct {
		args  []string
		want  string
		usage bool
	}{
		{[]string{"compose"}, "name 1 or more", true},
		{[]string{"compose", line}, "--cache", true},
		{[]string{"compose", line, "--cache", "x"}, "--cache", true},
		{[]string{"compose", line, "--cache", "1m", "--rates", "1,2"}, "--rates", true},
		{[]string{"compose", line, "--cache", "1m", "--rates", "0"}, "--rates", true},
		{[]string{"compose", line, "--cache", "1m", "--rates", "NaN"}, "--rates", true},
		{[]string{"compose", line, word, "--cache", "1m"}, "block size", false},
		{[]string{"compose", line, empty, "--cache", "1m"}, "no observations", false},
		{[]string{"hist", "--kind", "footprint", empty}, "no observations", false},
		{[]string{"diff", empty, empty}, "no observations", false},
		{[]string{"compose", line, "/none", "--cache", "1m"}, "/none", false},
		{[]string{"partition", line, "--cache", "1m"}, "name 2 or more", true},
		{[]string{"partition", line, line, "--cache", "1m,2m"}, "one size", true},
		{[]string{"partition", line, line, "--cache", "1m", "--ways", "1"}, "do not fit", true},
		{[]string{"partition", line, line, "--cache", "1m", "--ways", "0"}, "--ways", true},
		{[]string{"group", line, line, "--cache", "1m", "--caches", "0"}, "--caches", true},
		{[]string{"group", line, line, "--cache", "1m", "--caches", "1", "--per", "1"}, "do not fit", true},
	} {
		_, _, err := rdxErr(t, "", c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("rdx %q: %v, want %q", c.args, err, c.want)
			continue
		}
		var usage report.UsageError
		if errors.As(err, &usage) != c.usage {
			t.Errorf("rdx %q: %v: usage error is %v, want %v", c.args, err, !c.usage, c.usage)
		}
	}
}
