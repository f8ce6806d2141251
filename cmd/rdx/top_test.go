package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
	"github.com/rdx-profiler/rdx/report"
)

// demoProfile is a program whose column walk reuses at 1e6 accesses and whose
// inner sum reuses at once; a tenth is cut off.
func demoProfile(t *testing.T) *model.Profile {
	t.Helper()
	exe := &model.Mapping{Start: 0x400000, Limit: 0x500000, File: "/usr/bin/matmul", BuildID: "c0ffee"}
	at := func(addr uint64, function string, line int) *model.Location {
		return &model.Location{Address: addr, Mapping: exe, Lines: []model.Line{{Function: function, SystemName: function, File: "/src/matmul.c", Line: line}}}
	}
	root := at(0x400900, "main", 90)
	column, row, sum := at(0x400100, "multiply", 23), at(0x400110, "multiply", 22), at(0x400120, "accumulate", 30)
	bare := &model.Location{Address: 0x400800, Mapping: exe}
	p := &model.Profile{
		Start: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Duration: 10 * time.Second, Command: "matmul -n 1000", Source: "cpu-clock", Period: 1e6,
		Clock: model.Clock{Name: "cpu-time", Unit: "nanoseconds", Rate: 2, RateSource: "default", Resolution: 500},
		Block: 64, BinsPerOctave: 16,
		Caches: []model.Cache{{Level: "L1d", Size: 32 << 10, Ways: 8, Line: 64}, {Level: "L2", Size: 1 << 20, Ways: 16, Line: 64}},
		Counts: []model.Count{{Name: model.LostBecause.Of(model.NoRegister), N: 200}, {Name: model.Samples, N: 5000}},
	}
	add := func(n int, kind model.Kind, use, reuse *model.Location, ns uint64, below bool) {
		r := model.Record{Kind: kind, Use: []*model.Location{use, root}, Op: model.Load, TID: 7, Timing: model.Timing{Native: ns, Time: 2 * ns, BelowResolution: below},
			Weight: model.Weight{Observations: int64(n), Accesses: 1e6 * float64(n)}}
		if reuse != nil {
			r.Reuse = []*model.Location{reuse, root}
		}
		p.Records = append(p.Records, r)
	}
	add(400, model.Reuse, column, column, 500000, false)
	add(100, model.Reuse, row, column, 40000, false)
	add(500, model.Reuse, sum, sum, 500, true)
	add(150, model.Censored, column, nil, 100000, false)
	add(10, model.Cold, bare, nil, 0, false)
	add(5, model.Lost, bare, nil, 0, false)
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	return p
}

func demoFile(t *testing.T, p *model.Profile) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rdx.pb.gz")
	if err := pprofout.WriteFile(path, p); err != nil {
		t.Fatal(err)
	}
	return path
}

func rdx(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newRootCmd()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.Execute()
	return out.String(), err
}

func ok(t *testing.T, args ...string) string {
	t.Helper()
	out, err := rdx(t, args...)
	if err != nil {
		t.Fatalf("rdx %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func TestTop(t *testing.T) {
	brief := ok(t, "top", demoFile(t, demoProfile(t)))
	if lines := strings.Split(brief, "\n"); !strings.HasPrefix(lines[0], "matmul -n 1000 for 10.0s: 1160 observations of 1.16G accesses, 205 lost") ||
		!strings.HasPrefix(lines[1], "predicted to miss L1d ") || !strings.HasPrefix(lines[2], "! ") {
		t.Errorf("not two lines and the first warnings:\n%s", brief)
	}
	out := ok(t, "top", "-v", demoFile(t, demoProfile(t)))
	for _, want := range []string{
		"command      matmul -n 1000\n",
		"duration     10.0s from",
		"2 accesses per nanosecond (default)",
		"1160 of 1.16G accesses: 1000 reuse, 10 cold, 150 censored; lost 205",
		"! the access rate, 2 per nanosecond, is a default guess",
		"43.1% of the observations were reused sooner than the clock can tell, 500ns or",
		"were lost: no free debug register (200), end not known",
		"predicted L2 misses: ",
		"multiply  matmul.c:23",
		"-> multiply  matmul.c:23",
		"-> [cold]",
		"matmul+0x800", // no symbol: file and offset
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	first := out[strings.Index(out, "-> reuse\n")+len("-> reuse\n"):]
	if fields := strings.Fields(first); fields[0] == "0.0%" || !strings.Contains(first[:200], "multiply  matmul.c:23") {
		t.Errorf("the column walk does not lead:\n%s", first)
	}
	if screen := strings.Count(out[:strings.Index(out, "predicted L2 misses: ")], "\n"); screen > 24 {
		t.Errorf("the header has %d lines, more than a screen", screen)
	}
}

// The command must say what the library's own sums say.
func TestTopSums(t *testing.T) {
	p := demoProfile(t)
	path := demoFile(t, p)
	for by, value := range map[string]func(r *model.Record) float64{
		"misses":       func(r *model.Record) float64 { return r.Misses[1] },
		"l1d":          func(r *model.Record) float64 { return r.Misses[0] },
		"reuses":       func(r *model.Record) float64 { return r.Reuses },
		"accesses":     func(r *model.Record) float64 { return r.Accesses },
		"observations": func(r *model.Record) float64 { return float64(r.Observations) },
		"distance":     func(r *model.Record) float64 { return r.Distance },
	} {
		var got report.Top
		if err := json.Unmarshal([]byte(ok(t, "top", "--by", by, "-n", "100", "--format", "json", path)), &got); err != nil {
			t.Fatal(err)
		}
		want, share := 0.0, 0.0
		for i := range p.Records {
			if p.Records[i].Kind != model.Lost {
				want += value(&p.Records[i])
			}
		}
		for i, q := range got.Pairs {
			share += q.Share
			if math.Abs(q.Cumulative-share) > 1e-9 || i > 0 && q.Value > got.Pairs[i-1].Value {
				t.Errorf("--by %s: pair %d: cumulative %g, want %g; values in order?", by, i, q.Cumulative, share)
			}
		}
		if math.Abs(got.Total-want) > 1 || math.Abs(share-1) > 1e-9 || got.All != len(got.Pairs) {
			t.Errorf("--by %s: total %g, want %g; shares add up to %g", by, got.Total, want, share)
		}
	}
}

func TestTopMedians(t *testing.T) {
	p := demoProfile(t)
	var got report.Top
	if err := json.Unmarshal([]byte(ok(t, "top", "--by", "accesses", "--format", "json", demoFile(t, p))), &got); err != nil {
		t.Fatal(err)
	}
	b := model.LogBins(p.BinsPerOctave)
	mid := func(v uint64) uint64 { return b.Mid(b.Index(v)) }
	byUse := map[string]*report.Pair{}
	for _, q := range got.Pairs {
		byUse[q.Use.Function+q.Reuse.Function] = q
	}
	if q := byUse["accumulateaccumulate"]; q == nil || !q.BelowResolution || q.Time != mid(1000) || *q.Nanoseconds != mid(500) {
		t.Errorf("sum: %+v", q)
	}
	if q := byUse["multiply[censored]"]; q == nil || q.Time != mid(200000) || q.Distance != nil {
		t.Errorf("censored: %+v", q)
	}
	if q := byUse["matmul+0x800[cold]"]; q == nil || q.Nanoseconds != nil {
		t.Errorf("cold: %+v", q)
	}
}

func TestMedianRecord(t *testing.T) {
	rs := []*model.Record{{Timing: model.Timing{Time: 9}, Weight: model.Weight{Accesses: 1}}, {Timing: model.Timing{Time: 1}, Weight: model.Weight{Accesses: 1}}, {Timing: model.Timing{Time: 5}, Weight: model.Weight{Accesses: 1}}, {Timing: model.Timing{Time: 100}, Weight: model.Weight{Accesses: 4}}}
	weight := func(r *model.Record) float64 { return r.Accesses }
	value := func(r *model.Record) float64 { return float64(r.Time) }
	if m := report.MedianRecord(rs, weight, value); m.Time != 100 {
		t.Errorf("weighted median %d, want 100", m.Time)
	}
	if m := report.MedianRecord(rs[:3], weight, value); m.Time != 5 {
		t.Errorf("median %d, want 5", m.Time)
	}
}

func TestTopCSV(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(ok(t, "top", "--format", "csv", "-n", "2", demoFile(t, demoProfile(t))))).ReadAll()
	if err != nil || len(rows) != 3 || rows[0][7] != "l2" || rows[1][1] != "multiply" || rows[1][2] != "/src/matmul.c" {
		t.Errorf("%v, %q", err, rows)
	}
}

// Where nothing misses, the list says what to ask for instead.
func TestTopNothing(t *testing.T) {
	p := demoProfile(t)
	p.Records = p.Records[2:3]
	p.Counts = nil
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	path := demoFile(t, p)
	if out := ok(t, "top", path); !strings.Contains(out, "nothing to list; try --by reuses") {
		t.Errorf("\n%s", out)
	}
	// One observation is no basis for shares.
	p = demoProfile(t)
	p.Records[0].Observations, p.Records[1].Observations, p.Records[3].Observations, p.Records[4].Observations = 1, 2, 2, 1
	if out := ok(t, "top", "--by", "l2", demoFile(t, p)); !strings.Contains(out, "this list rests on only 6 observations") {
		t.Errorf("\n%s", out)
	}
	p.Records = nil
	if out := ok(t, "top", demoFile(t, p)); !strings.Contains(out, "! nothing was observed") || !strings.Contains(out, "--slots 3") {
		t.Errorf("\n%s", out)
	}
	// A process that ended before it was attached to has lost no sample.
	p.Counts = []model.Count{{Name: model.LostBecause.Of(model.NotAttached), N: 3}}
	p.Comments = append(p.Comments, model.NoSample+"it waits")
	if out := ok(t, "top", demoFile(t, p)); !strings.Contains(out, "! nothing was observed: it waits") {
		t.Errorf("\n%s", out)
	}
}

func TestProfileErrors(t *testing.T) {
	dir := t.TempDir()
	good := demoFile(t, demoProfile(t))
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if _, err := rdx(t, "report", "-o", filepath.Join(dir, "none", "x.html"), good); err == nil || !strings.Contains(err.Error(), "x.html: no such file") {
		t.Errorf("a report in no folder: %v", err)
	}
	for _, command := range []string{"top", "hist"} {
		for path, want := range map[string]string{
			filepath.Join(dir, "missing"):   "no such file",
			dir:                             "is a directory",
			file("empty", nil):              "not an rdx profile: the file is empty",
			file("text", []byte("a\nb\n")):  "not an rdx profile",
			file("cut", data[:len(data)/2]): "not an rdx profile: gzip is cut off",
		} {
			out, err := rdx(t, command, path)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") || out != "" {
				t.Errorf("%s %s: error %v, output %q; want one line with %q", command, path, err, out, want)
			}
			if code := exitCode(err); code != 1 {
				t.Errorf("%s %s: exit code %d, want 1", command, path, code)
			}
		}
		for _, args := range [][]string{{}, {good, good}, {"--format", "xml", good}} {
			if _, err := rdx(t, append([]string{command}, args...)...); exitCode(err) != exitUsage || err == nil {
				t.Errorf("%s %q: error %v, exit code %d, want %d", command, args, err, exitCode(err), exitUsage)
			}
		}
	}
	for _, args := range [][]string{{"top", "--by", "l9", good}, {"top", "-n", "0", good}, {"hist", "--bins", "0", good}, {"hist", "--kind", "x", good}} {
		if _, err := rdx(t, args...); err == nil || exitCode(err) != exitUsage {
			t.Errorf("%q: error %v", args, err)
		}
	}
}

// A name from the target must not play tricks on the terminal.
func TestControlCharacters(t *testing.T) {
	p := demoProfile(t)
	p.Command = "\x1b]0;owned\x07 a\nb"
	p.Records[0].Use[0].Lines[0].Function = "f\x1b[2J\ng"
	p.Records[0].Use[0].Lines[0].File = "/x/\x1b[31m.c"
	p.Counts[0].Name = model.LostBecause.Of("\x1b[2J")
	p.Clock.Name = "clock\x1b"
	p.Comments = []string{"session ended early: \x1b[2J"}
	path := demoFile(t, p)
	for _, command := range []string{"top", "hist"} {
		if out := ok(t, command, path); strings.ContainsAny(out, "\x1b\x07") || strings.Contains(out, "\ng") {
			t.Errorf("%s: %q", command, out)
		}
	}
}

// Nor on the columns.
func TestTopLongNames(t *testing.T) {
	p := demoProfile(t)
	p.Records[0].Use[0].Lines[0].Function = strings.Repeat("template<", 100)
	out := ok(t, "top", demoFile(t, p))
	for _, l := range strings.Split(out, "\n") {
		if utf8.RuneCountInString(l) > 160 {
			t.Errorf("line of %d letters: %s", len(l), l)
		}
	}
}

// Where one level's misses lead, that another level's come from elsewhere is said.
func TestTopHidden(t *testing.T) {
	var trace strings.Builder
	walk := func(base, lines, laps int, pc string) {
		for range laps {
			for i := range lines {
				fmt.Fprintf(&trace, "%d R 8 1 %s\n", base+64*i, pc)
			}
		}
	}
	walk(1<<30, 1<<16, 2, "0x2000") // 4 MiB: misses both
	walk(1<<20, 1<<10, 200, "0x1000")
	dir := t.TempDir()
	in, out := filepath.Join(dir, "t.txt"), filepath.Join(dir, "t.pb.gz")
	if err := os.WriteFile(in, []byte(trace.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	ok(t, "exact", "-o", out, "--caches", "32k,1m", in)
	if text := ok(t, "top", "-n", "1", out); !strings.Contains(text, "C1 misses come from elsewhere: --by c1\n") {
		t.Errorf("no hint at the first level:\n%s", text)
	}
	if text := ok(t, "top", "--by", "c1", out); strings.Contains(text, "elsewhere") {
		t.Errorf("a hint at what is shown:\n%s", text)
	}
}

// Members of data are objects of their own; those that sharing tells of are not taken for them.
func TestTopDataMembers(t *testing.T) {
	p := demoProfile(t)
	d := &model.Data{Name: "st"}
	for i := range p.Records {
		p.Records[i].Data = d
	}
	p.Records[0].SetWords(model.Words{Member: "node.next, offset 8 of 48"})
	p.Records[1].SetWords(model.Words{Member: "node.value, offset 16 of 48"})
	out := ok(t, "top", "--by", "data", "--format", "csv", demoFile(t, p))
	for _, want := range []string{"\nst,", "\n\"st: node.next, offset 8 of 48\",", "\n\"st: node.value, offset 16 of 48\","} {
		if strings.Count(out, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, out)
		}
	}
}

// Of source that was changed after the profile was made it is said that lines may be others; of older source it is not.
func TestAnnotateChangedSource(t *testing.T) {
	p := demoProfile(t)
	file := demoFile(t, p)
	source := filepath.Join(t.TempDir(), "matmul.c")
	if err := os.WriteFile(source, []byte(strings.Repeat("x\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]bool{-time.Hour: false, time.Hour: true} {
		at := p.Start.Add(after)
		if err := os.Chtimes(source, at, at); err != nil {
			t.Fatal(err)
		}
		if out := ok(t, "annotate", file, source); strings.Contains(out, "changed after the profile") != want {
			t.Errorf("%v after: %s", after, out)
		}
	}
}

// Source is found where the program was built; where it is not, it is said what to name.
func TestAnnotateFindsSource(t *testing.T) {
	p := demoProfile(t)
	source := filepath.Join(t.TempDir(), "matmul.c")
	if err := os.WriteFile(source, []byte(strings.Repeat("x\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Records {
		for _, l := range slices.Concat(r.Use, r.Reuse) {
			for i := range l.Lines {
				l.Lines[i].File = source
			}
		}
	}
	t.Chdir(t.TempDir())
	if out := ok(t, "annotate", demoFile(t, p), "matmul.c"); !strings.Contains(out, source+"\n") {
		t.Error(out)
	}
	if err := os.Remove(source); err != nil {
		t.Fatal(err)
	}
	if _, err := rdx(t, "annotate", demoFile(t, p), "matmul.c"); err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), "name the source by its path") {
		t.Errorf("without source: %v", err)
	}
}
