package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/trace"
)

// rdxErr runs the command line and returns what it prints.
func rdxErr(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := newRootCmd()
	var out, errs bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	err = cmd.Execute()
	return out.String(), errs.String(), err
}

func mustRdx(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, errs, err := rdxErr(t, stdin, args...)
	if err != nil {
		t.Fatalf("rdx %q: %v\n%s", args, err, errs)
	}
	return out
}

func exactJSON(t *testing.T, stdin string, args ...string) report.Exact {
	t.Helper()
	var r report.Exact
	if err := json.Unmarshal([]byte(mustRdx(t, stdin, append([]string{"exact", "-", "--format", "json"}, args...)...)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// a b b c a, the example of the terms.
const abbca = "0x0 R 8\n0x40 R 8\n0x40 W 8\n0x80 R 8\n0x0 R 8\n"

func TestExactCommand(t *testing.T) {
	r := exactJSON(t, abbca)
	if r.Accesses != 5 || r.Loads != 4 || r.Stores != 1 || r.Touches != 5 || r.Blocks != 3 || r.Block != 64 {
		t.Errorf("%+v", r)
	}
	if r.Times.Cold != 3 || len(r.Times.Bins) != 2 || r.Times.Bins[0] != (report.ExactBin{From: 1, To: 2, Touches: 1}) || r.Times.Bins[1] != (report.ExactBin{From: 4, To: 5, Touches: 1}) {
		t.Errorf("reuse times %+v", r.Times)
	}
	if r.Distances.Cold != 3 || len(r.Distances.Bins) != 2 || r.Distances.Bins[0] != (report.ExactBin{From: 0, To: 1, Touches: 1}) || r.Distances.Bins[1] != (report.ExactBin{From: 2, To: 3, Touches: 1}) {
		t.Errorf("distances %+v", r.Distances)
	}
	want := []report.ExactMiss{{Bytes: 64, Ratio: 0.8}, {Bytes: 128, Ratio: 0.8}, {Bytes: 256, Ratio: 0.6}}
	for i, m := range r.Misses {
		if m.Bytes != want[i].Bytes || math.Abs(m.Ratio-want[i].Ratio) > 1e-12 {
			t.Errorf("miss ratios %+v, want %+v", r.Misses, want)
		}
	}
	if last := r.Footprint[len(r.Footprint)-1]; last != (report.ExactFootprint{Window: 5, Blocks: 3}) {
		t.Errorf("footprint %+v", r.Footprint)
	}
	// Of the reuse windows, b and abbc, each touches what all windows of its
	// length do; in a c a b b the window a c does not.
	if r.WindowError == nil || *r.WindowError != 0 {
		t.Errorf("reuse-window gap %v, want 0", r.WindowError)
	}
	if r := exactJSON(t, "0 R 8\n128 R 8\n0 R 8\n64 R 8\n64 R 8\n"); math.Abs(*r.WindowError-(2/1.75-1)/2) > 1e-12 {
		t.Errorf("reuse-window gap %v, want %v", *r.WindowError, (2/1.75-1)/2)
	}
	if r := exactJSON(t, abbca, "--sizes", "192,1m"); len(r.Misses) != 2 || r.Misses[0] != (report.ExactMiss{Bytes: 192, Ratio: 0.6}) || r.Misses[1].Ratio != 0.6 {
		t.Errorf("--sizes: %+v", r.Misses)
	}
	if r := exactJSON(t, abbca, "--block", "page"); r.Blocks != 1 || r.Distances.Cold != 1 {
		t.Errorf("pages: %+v", r)
	}
	if r := exactJSON(t, "0 R 16\n", "--block", "word"); r.Accesses != 1 || r.Touches != 2 {
		t.Errorf("an access to two words: %+v", r)
	}
	csv := mustRdx(t, abbca, "exact", "-", "--format", "csv")
	for _, row := range []string{"quantity,from,to,value\n", "\nreuse_time,4,5,1\n", "\nstack_distance,cold,,3\n", "\nfootprint,5,,3\n", "\nmiss_ratio,256,,0.6\n"} {
		if !strings.Contains(csv, row) {
			t.Errorf("csv has no %q:\n%s", row, csv)
		}
	}
	// Thread 2 writes what thread 1 has used: its next use is no first one.
	shared := "0 R 8 1\n64 R 8 1\n0 W 8 2\n0 R 8 1\n64 R 8 1\n"
	csv = mustRdx(t, shared, "exact", "-", "--stack", "private", "--format", "csv")
	for _, row := range []string{"\nstack_distance,cold,,3\n", "\nstack_distance,invalidated,,1\n", "\nreuse_time,invalidated,,1\n"} {
		if !strings.Contains(csv, row) {
			t.Errorf("csv of private stacks has no %q:\n%s", row, csv)
		}
	}
	if path := filepath.Join(t.TempDir(), "h.csv"); os.WriteFile(path, []byte(csv), 0o644) != nil {
		t.Fatal("write", path)
	} else if out := mustRdx(t, "", "gen", "--hist", path, "-t", "100"); strings.Count(out, "\n") != 100 {
		t.Errorf("gen of it: %q", out)
	}
	text := mustRdx(t, abbca, "exact", "-")
	for _, part := range []string{"5 accesses (4 loads, 1 stores)", "3 distinct (192B)", "first access", "5      192B", "differ from these by 0.0%", "60.0%"} {
		if !strings.Contains(text, part) {
			t.Errorf("text has no %q:\n%s", part, text)
		}
	}
}

// A miss ratio is exact at any size, not only at the edges of usual bins.
func TestExactSizes(t *testing.T) {
	var loop strings.Builder
	for i := range 3000 {
		fmt.Fprintln(&loop, i%1000*64)
	}
	for blocks, want := range map[int]float64{998: 1, 999: 1, 1000: 1.0 / 3, 1001: 1.0 / 3} {
		r := exactJSON(t, loop.String(), "--sizes", fmt.Sprint(blocks*64))
		if got := r.Misses[0].Ratio; math.Abs(got-want) > 1e-12 {
			t.Errorf("%d blocks: miss ratio %v, want %v", blocks, got, want)
		}
	}
}

// The ways to analyse agree where they should.
func TestExactModes(t *testing.T) {
	var b strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&b, "%d R 8 %d\n", i*i%919*40, i%3)
	}
	in := b.String()
	one := exactJSON(t, in, "--jobs", "1", "--bins", "1")
	if one.Method != "exact" {
		t.Errorf("method %q", one.Method)
	}
	two := exactJSON(t, in, "--jobs", "3", "--piece", "1000", "--bins", "1")
	two.Trace = one.Trace
	if !reflect.DeepEqual(one, two) {
		t.Errorf("3 jobs differ from one: %+v, want %+v", two, one)
	}
	l := exactJSON(t, in, "--log2")
	if l.Times != nil || !reflect.DeepEqual(l.Distances, one.Distances) || l.Blocks != one.Blocks || l.Accesses != one.Accesses || l.Touches != one.Touches {
		t.Errorf("--log2: %+v, want %+v", l, one)
	}
	s := exactJSON(t, in, "--shards", "size=1000000", "--bins", "1")
	if !reflect.DeepEqual(s.Distances, one.Distances) || s.Misses[2].PlusMinus == nil || s.Misses[2].Ratio != one.Misses[2].Ratio {
		t.Errorf("--shards of all blocks: %+v", s)
	}
	if s := exactJSON(t, in, "--shards", "rate=0.5"); !strings.HasPrefix(s.Method, "SHARDS") || s.Footprint != nil {
		t.Errorf("--shards: %+v", s)
	}
	in = strings.Join(strings.SplitAfter(in, "\n")[:1500], "") // every open sample sees every access
	for _, stack := range []string{"shared", "private"} {
		for _, late := range []string{"--late=false", "--late"} {
			all := exactJSON(t, in, "--stack", stack, "--bins", "1")
			every := exactJSON(t, in, "--stack", stack, "--bins", "1", "--sampled", "1", "--prune-after", "0", late)
			// The stream only reads: what is not reused is open at the end.
			if !reflect.DeepEqual(all.Distances.Bins, every.Distances.Bins) || every.Distances.Censored != all.Distances.Cold {
				t.Errorf("--stack %s %s: every access sampled: %+v, want %+v", stack, late, every.Distances, all.Distances)
			}
		}
	}
	if text := mustRdx(t, in, "exact", "-", "--sampled", "0.01"); !strings.Contains(text, "sampled: ") || strings.Contains(text, "distinct") {
		t.Error(text)
	}
	a := exactJSON(t, in, "--approximate", "factor", "--piece", "500")
	if !strings.Contains(a.Method, "effective factor") || a.Times != nil || a.Distances.Cold != one.Distances.Cold {
		t.Errorf("--approximate: %+v", a)
	}
	for _, args := range [][]string{
		{"--jobs", "0"}, {"--piece", "-1"}, {"--shards", "rate=2"}, {"--shards", "size=x"}, {"--shards", "all"}, {"--sampled", "2"}, {"--sampled", "NaN"},
		{"--late"}, {"--log2", "--shards", "rate=0.1"}, {"--log2", "--stack", "private"}, {"--log2", "--sizes", "192"}, {"--approximate", "x"}, {"--sampled", "0.1", "--prune-after", "-1"},
	} {
		if _, _, err := rdxErr(t, in, append([]string{"exact", "-"}, args...)...); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
	if _, _, err := rdxErr(t, "1\n2\n", "exact", "-", "--sampled", "1e-9"); err == nil || !strings.Contains(err.Error(), "no sample") {
		t.Errorf("no sample: %v", err)
	}
}

func TestExactPrivateCommand(t *testing.T) {
	// Thread 2 writes what thread 1 then reads again.
	const trace = "0 R 8 1\n64 R 8 1\n0 W 8 2\n0 R 8 1\n64 R 8 1\n"
	r := exactJSON(t, trace, "--stack", "private")
	if r.Distances.Invalidated != 1 || r.Distances.Cold != 3 || len(r.Distances.Bins) != 1 || r.Distances.Bins[0] != (report.ExactBin{From: 1, To: 2, Touches: 1}) {
		t.Errorf("%+v", r.Distances)
	}
	if r.Blocks != 2 || r.Loads != 4 || r.Footprint != nil {
		t.Errorf("%+v", r)
	}
	if r := exactJSON(t, trace); r.Distances.Invalidated != 0 || r.Distances.Cold != 2 {
		t.Errorf("shared: %+v", r.Distances)
	}
}

func TestExactBadTraces(t *testing.T) {
	dir := t.TempDir()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for i := range 10000 {
		z.Write([]byte(strings.Repeat("9", i%15) + "\n"))
	}
	z.Close()
	cut := filepath.Join(dir, "cut.gz")
	if err := os.WriteFile(cut, packed.Bytes()[:packed.Len()/2], 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stdin string
		args  []string
		want  string
		usage bool
	}{
		{"", []string{"exact", "-"}, "no accesses", false},
		{"1\nx\n", []string{"exact", "-"}, "-:2: address is not", false},
		{"x\n", []string{"exact", "-", "--partial"}, "no accesses", false},
		{"", []string{"exact", cut}, "truncated", false},
		{"", []string{"exact", filepath.Join(dir, "none")}, "no such file", false},
		{"", []string{"exact"}, "name one trace", true},
		{"", []string{"exact", "-", "--block", "7"}, "--block", true},
		{"", []string{"exact", "-", "--stack", "x"}, "--stack", true},
		{"", []string{"exact", "-", "--format", "x"}, "--format", true},
		{"", []string{"exact", "-", "--bins", "0"}, "--bins", true},
		{"", []string{"exact", "-", "--sizes", "x"}, "--sizes", true},
	} {
		out, _, err := rdxErr(t, c.stdin, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || out != "" {
			t.Errorf("rdx %q: error %v, output %q; want %q", c.args, err, out, c.want)
			continue
		}
		var usage report.UsageError
		if errors.As(err, &usage) != c.usage {
			t.Errorf("rdx %q: %v: usage error is %v, want %v", c.args, err, !c.usage, c.usage)
		}
	}
	// Partial results when asked for, and marked.
	out, errs, err := rdxErr(t, "1\nx\n2\n", "exact", "-", "--partial", "--format", "json")
	if err != nil || !strings.Contains(out, `"bad_lines": 1`) || !strings.Contains(errs, "1 lines could not be read") {
		t.Errorf("%s%s%v", out, errs, err)
	}
	out, errs, err = rdxErr(t, "", "exact", cut, "--partial")
	if err != nil || out == "" || !strings.Contains(errs, "ends early") || !strings.Contains(errs, "truncated") {
		t.Errorf("%s%s%v", out, errs, err)
	}
}

func TestGenCommand(t *testing.T) {
	trace := mustRdx(t, "", "gen", "--normal", "250,20", "-n", "500", "-t", "20000", "--seed", "3")
	if strings.Count(trace, "\n") != 20000 || !strings.HasPrefix(trace, "0x0\n0x40\n0x80\n") {
		t.Fatalf("%.100s", trace)
	}
	if trace != mustRdx(t, "", "gen", "--normal", "250,20", "-n", "500", "-t", "20000", "--seed", "3") {
		t.Error("the same seed gives another trace")
	}
	r := exactJSON(t, trace)
	if r.Blocks != 500 || r.Distances.Cold != 500 {
		t.Errorf("%d blocks, %v cold", r.Blocks, r.Distances.Cold)
	}
	var near float64
	for _, b := range r.Distances.Bins {
		if b.From >= 150 && b.To <= 350 {
			near += b.Touches
		}
	}
	if near < 0.99*19500 {
		t.Errorf("%v of 19500 distances are within 5 deviations of the mean", near)
	}
	// A trace made from a trace's histogram has that histogram.
	dir := t.TempDir()
	hist := filepath.Join(dir, "h.csv")
	if err := os.WriteFile(hist, []byte(mustRdx(t, trace, "exact", "-", "--format", "csv")), 0o644); err != nil {
		t.Fatal(err)
	}
	trace, errs, err := rdxErr(t, "", "gen", "--hist", hist, "-t", "20000")
	if err != nil {
		t.Fatal(err)
	}
	var short int
	if _, err := fmt.Sscanf(errs, "rdx: note: %d accesses asked", &short); err != nil {
		t.Fatalf("%q: %v", errs, err)
	}
	again := exactJSON(t, trace)
	if d := math.Abs(again.Distances.Cold - 500 - float64(short)); d > 5*math.Sqrt(500) {
		t.Errorf("%v first accesses, want about 500 and %d", again.Distances.Cold, short)
	}
	out := filepath.Join(dir, "t.txt")
	_, errs, err = rdxErr(t, "", "gen", "--hist", hist, "-n", "600", "-t", "1000", "-o", out)
	if err != nil || !strings.Contains(errs, "left out") {
		t.Errorf("%s%v", errs, err)
	}
	if data, err := os.ReadFile(out); err != nil || strings.Count(string(data), "\n") != 1000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	_, _, err = rdxErr(t, "", "gen", "--hist", hist, "-n", "200", "-t", "1000")
	if err == nil || !strings.Contains(err.Error(), "200 blocks or more") {
		t.Errorf("too few blocks: %v", err)
	}
}

func TestGenUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-t", "5"}, {"--zipf", "1", "-n", "5"}, {"--zipf", "1", "-t", "5"}, {"--zipf", "1", "--exp", "1", "-n", "5", "-t", "5"},
		{"--normal", "1", "-n", "5", "-t", "5"}, {"--normal", "1,x", "-n", "5", "-t", "5"}, {"--zipf", "NaN", "-n", "5", "-t", "5"},
		{"--zipf", "1", "-n", "5", "-t", "-5"}, {"--zipf", "1", "-n", "5", "-t", "5", "x"}, {"--block", "3", "--zipf", "1", "-n", "5", "-t", "5"},
	} {
		_, _, err := rdxErr(t, "", append([]string{"gen"}, args...)...)
		var usage report.UsageError
		if !errors.As(err, &usage) {
			t.Errorf("rdx gen %q: %v, want a usage error", args, err)
		}
	}
}

func TestExactRecording(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.rdt")
	write := func(s trace.Summary) {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w, err := trace.NewWriter(f, trace.Header{Engine: "test"})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []uint64{0, 1, 1, 2, 0} {
			if err := w.Write([]model.Access{{Addr: 0x1000 + b*64, Size: 8, Op: model.Load, Thread: 1, PC: 7}}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Close(s); err != nil {
			t.Fatal(err)
		}
	}
	write(trace.Summary{Accesses: 5})
	out, errs, err := rdxErr(t, "", "exact", path, "--format", "csv")
	if want := mustRdx(t, abbca, "exact", "-", "--format", "csv"); err != nil || out != want || errs != "" {
		t.Errorf("%v %s\n%s\nwant\n%s", err, errs, out, want)
	}
	write(trace.Summary{Accesses: 8, Partial: []string{"disk full"}})
	if _, errs, err = rdxErr(t, "", "exact", path); err != nil || !strings.Contains(errs, "disk full") {
		t.Errorf("%q, %v", errs, err)
	}
	write(trace.Summary{Accesses: 5, ExitCode: -1, Signal: int(syscall.SIGSEGV)})
	if _, errs, err = rdxErr(t, "", "exact", path); err != nil || !strings.Contains(errs, "the program recorded: segmentation fault") {
		t.Errorf("of a program that crashed: %q, %v", errs, err)
	}
	if out := mustRdx(t, "", "trace", "info", path); !strings.Contains(out, "ended     segmentation fault") {
		t.Errorf("trace info of a program that crashed:\n%s", out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data[:len(data)-20], 0o644); err != nil {
		t.Fatal(err)
	}
	if out, _, err = rdxErr(t, "", "exact", path); err == nil || out != "" {
		t.Errorf("a cut recording: %s%v", out, err)
	}
	if out, errs, err = rdxErr(t, "", "exact", path, "--partial"); err != nil || !strings.Contains(errs, "could not be read") {
		t.Errorf("a cut recording, --partial: %s%s%v", out, errs, err)
	}
}

// The report goes where it is asked to, apart from what a program prints; a file is there whole or not at all.
func TestExactReportFile(t *testing.T) {
	dir := t.TempDir()
	want := mustRdx(t, abbca, "exact", "-", "--format", "json")
	path := filepath.Join(dir, "r.json")
	out, errs, err := rdxErr(t, abbca, "exact", "-", "--format", "json", "--report", path)
	got, rerr := os.ReadFile(path)
	if err != nil || rerr != nil || out != "" || errs != "" || string(got) != want {
		t.Errorf("%v, %v: printed %q, %q, in the file %q, want %q", err, rerr, out, errs, got, want)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	mustRdx(t, abbca, "exact", "-", "--format", "csv", "--report", link)
	if fi, err := os.Lstat(link); err != nil || fi.Mode()&os.ModeSymlink == 0 {
		t.Errorf("a link became a file: %v, %v", fi, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(w.Fd())) // rdx closes it
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	mustRdx(t, abbca, "exact", "-", "--format", "json", "--report", fmt.Sprintf("/dev/fd/%d", fd))
	if got, err := io.ReadAll(r); err != nil || string(got) != want {
		t.Errorf("by a descriptor: %q, %v", got, err)
	}
	if _, _, err := rdxErr(t, "nonsense", "exact", "-", "--report", filepath.Join(dir, "none")); err == nil {
		t.Error("nonsense is a trace")
	}
	for _, bad := range []string{dir, filepath.Join(dir, "no", "where"), "/dev/fd/900", "/dev/fd/x"} {
		if out, _, err := rdxErr(t, abbca, "exact", "-", "--report", bad); err == nil || !strings.Contains(err.Error(), "write report") || out != "" {
			t.Errorf("--report %s: %v %s", bad, err, out)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 2 {
		t.Errorf("files: %v, %v", left, err)
	}
	var usage report.UsageError
	if _, _, err := rdxErr(t, abbca, "exact", "-", "-o", filepath.Join(dir, "p"), "--report", path); !errors.As(err, &usage) {
		t.Errorf("-o and --report: %v", err)
	}
	if _, errs, err := rdxErr(t, abbca, "exact", "-", "-q", "-o", filepath.Join(dir, "p")); err != nil || errs != "" {
		t.Errorf("-q: %q, %v", errs, err)
	}
}
