package pprofout

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
)

func merge(t *testing.T, ps ...*model.Profile) (*model.Profile, error) {
	t.Helper()
	var in []*profile.Profile
	for _, p := range ps {
		_, out := write(t, p)
		in = append(in, out)
	}
	m, err := profile.Merge(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.CheckValid(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return Read(&b)
}

func double(p *model.Profile) {
	for i := range p.Records {
		r := &p.Records[i]
		r.Observations *= 2
		r.Accesses *= 2
		r.Reuses *= 2
		r.Distance *= 2
		r.Misses = slices.Clone(r.Misses)
		for j := range r.Misses {
			r.Misses[j] *= 2
		}
	}
}

// Another run of the same program: other time, other load addresses.
func TestMergeRuns(t *testing.T) {
	a, b := sampleProfile(), sampleProfile()
	b.Start = a.Start.Add(-time.Hour)
	b.Duration = time.Second
	b.Command = "matmul -n 2000"
	b.Counts[1].N = 3
	b.Records[3].Use[0].Mapping.Start += 1 << 30 // the JIT's memory
	b.Records[3].Use[0].Mapping.Limit += 1 << 30
	b.Records[3].Use[0].Address += 1 << 30
	libc := b.Records[2].Use[0]
	libc.Mapping.Start += 1 << 20
	libc.Mapping.Limit += 1 << 20
	libc.Address += 1 << 20

	got, err := merge(t, a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := sampleProfile()
	jit := want.Records[3]
	double(want)
	want.Records[3] = jit
	want.Touched *= 2
	want.Records = append(want.Records, b.Records[3])
	want.Start = b.Start
	want.Duration = a.Duration + b.Duration
	want.Command = "matmul -n 1000 + matmul -n 2000"
	want.Counts = []model.Count{{Name: model.LostBecause.Of(model.NoRegister), N: 10}, {Name: "truncated stacks", N: 20}}
	want.Comments = append(want.Comments, "merged from 2 sessions")
	diff(t, got, want)

	// And it can be written and merged again.
	data, _ := write(t, got)
	diff(t, read(t, data), want)
}

// Equal counts of two sessions are equal comments but for the session's ID.
func TestMergeKeepsEqualCounts(t *testing.T) {
	a, b := sampleProfile(), sampleProfile()
	b.Start = b.Start.Add(time.Hour)
	got, err := merge(t, a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := []model.Count{{Name: model.LostBecause.Of(model.NoRegister), N: 10}, {Name: "truncated stacks", N: 34}}
	if !slices.Equal(got.Counts, want) {
		t.Errorf("counts %v, want %v", got.Counts, want)
	}
}

func TestMergeWithItself(t *testing.T) {
	got, err := merge(t, sampleProfile(), sampleProfile())
	if err != nil {
		t.Fatal(err)
	}
	want := sampleProfile()
	double(want)
	want.Duration *= 2
	want.Counts[0].N = 10 // the loss is a sample, the remark only a comment
	want.Comments = append(want.Comments, "changed since it was profiled: holds 42 of 21 observations")
	diff(t, got, want)
}

func TestMergeRates(t *testing.T) {
	a, b := sampleProfile(), sampleProfile()
	b.Clock.Rate, b.Clock.RateSource, b.Clock.Resolution = 3, "measured", 700
	b.Period = 4e6
	b.BinsPerOctave = 4
	got, err := merge(t, a, b)
	if err != nil {
		t.Fatal(err)
	}
	if got.Clock.Rate != 2.25 || got.Clock.RateSource != "default + measured" || got.Clock.Resolution != 700 || got.Period != 2.5e6 || got.BinsPerOctave != 4 {
		t.Errorf("clock %+v, period %g, bins %d", got.Clock, got.Period, got.BinsPerOctave)
	}
	if !strings.Contains(strings.Join(got.Comments, "\n"), "access rates of the sessions differ, 1.5 to 3") {
		t.Errorf("comments %q do not tell of the rates", got.Comments)
	}
}

func TestMergeRefused(t *testing.T) {
	for want, change := range map[string]func(p *model.Profile){
		"different clocks": func(p *model.Profile) { p.Clock.Name = "wall-time" },
		"different blocks": func(p *model.Profile) { p.Block = 8 },
		"different caches": func(p *model.Profile) { p.Caches[1].Size *= 2 },
	} {
		b := sampleProfile()
		change(b)
		_, err := merge(t, sampleProfile(), b)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one line with %q", err, want)
		}
	}
}

// Filtering drops samples, not the knowledge of what was lost.
func TestFiltered(t *testing.T) {
	_, out := write(t, sampleProfile())
	out.Sample = out.Sample[5:6]
	got, err := Decode(out.Compact())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Records) != 1 || got.Counts[0].N != 5 {
		t.Errorf("%d records, counts %v", len(got.Records), got.Counts)
	}
	if !slices.Contains(got.Comments, "changed since it was profiled: holds 3 of 21 observations") {
		t.Errorf("comments %q do not tell of the filter", got.Comments)
	}
}

// The tool itself, not only its library.
func TestPprofTool(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command to run go tool pprof with")
	}
	dir := t.TempDir()
	pprof := func(args ...string) string {
		t.Helper()
		return runPprof(t, goTool, dir, args...)
	}
	a, b, merged := filepath.Join(dir, "a.pb.gz"), filepath.Join(dir, "b.pb.gz"), filepath.Join(dir, "m.pb.gz")
	p := sampleProfile()
	if err := WriteFile(a, p); err != nil {
		t.Fatal(err)
	}
	p.Start = p.Start.Add(time.Hour)
	if err := WriteFile(b, p); err != nil {
		t.Fatal(err)
	}
	if out := pprof("-top", a); !strings.Contains(out, "Type: reuses") || !strings.Contains(out, "multiply") {
		t.Errorf("top:\n%s", out)
	}
	if out := pprof("-top", "-sample_index=observations", "-tagfocus=stack_distance=64kb:1mb", a); !strings.Contains(out, "of 21 total") || !strings.Contains(out, "3 14.29%") {
		t.Errorf("top of the sample with 90000 bytes:\n%s", out)
	}
	if out := pprof("-tags", "-sample_index=observations", a); !strings.Contains(out, "below_resolution") || !strings.Contains(out, "stack_distance") {
		t.Errorf("tags:\n%s", out)
	}
	pprof("-proto", "-output", merged, a, b)
	got, err := ReadFile(merged)
	if err != nil {
		t.Fatal(err)
	}
	want := sampleProfile()
	double(want)
	want.Duration *= 2
	want.Touched *= 2
	want.Counts = []model.Count{{Name: model.LostBecause.Of(model.NoRegister), N: 10}, {Name: "truncated stacks", N: 34}}
	want.Comments = append(want.Comments, "merged from 2 sessions")
	diff(t, got, want)
}

func runPprof(t *testing.T, goTool, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(goTool, append([]string{"tool", "pprof", "-symbolize=none"}, args...)...)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go tool pprof %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// What docs/explanation/sources.md promises of latencies, with the tool itself: where
// cycles are lost, and on data from where.
func TestPprofToolLatency(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command to run go tool pprof with")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "latency.pb.gz")
	if err := WriteFile(file, latencyProfile()); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"-top"}, []string{"Type: latency", "94000000cycles   100%   100% 94000000cycles   100%  load"}}, // at the use
		{[]string{"-top", "-tagfocus=data_source=memory.*"}, []string{"90000000cycles, 95.74% of 94000000cycles total"}},
		{[]string{"-tags"}, []string{"data_source: Total 94000000 of 94000000", "90000000 (95.74%): memory, TLB miss", "4000000 ( 4.26%): L2"}},
	} {
		out := runPprof(t, goTool, dir, append(tc.args, "-sample_index=latency", file)...)
		for _, want := range tc.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", tc.args, want, out)
			}
		}
	}
}

// A window of a session in which nothing was seen, or not all that there may be, has fewer columns: it joins the others all the
// same, in any order, and nothing is lost of these.
func TestJoinOtherColumns(t *testing.T) {
	whole := func() *model.Profile {
		p := windowProfile()
		p.Records[0].Squares = 25
		p.Latencies = []model.Latency{{Use: p.Records[0].Use, Op: model.Load, TID: 7, DataSource: "L2", Cycles: 80}}
		return p
	}
	none := func() *model.Profile {
		p := whole()
		p.Records, p.Touches, p.Moments, p.Latencies = nil, nil, nil, nil
		return p
	}
	some := func() *model.Profile {
		p := whole()
		p.Touches, p.Moments, p.Records[0].Squares = nil, nil, 0
		return p
	}
	for name, ps := range map[string][]*model.Profile{
		"none last": {whole(), none()}, "none first": {none(), whole()}, "some first": {some(), whole(), none()}, "some and none": {none(), some()},
	} {
		var in []*profile.Profile
		var wantTouches, wantMoments, observed, latencies int
		for _, p := range ps {
			_, out := write(t, p)
			in = append(in, out)
			wantTouches, wantMoments = max(wantTouches, len(p.Touches)), max(wantMoments, len(p.Moments))
			observed, latencies = observed+5*len(p.Records), latencies+80*len(p.Latencies)
		}
		if _, err := profile.Merge(in); err == nil {
			t.Errorf("%s: pprof merges them by itself", name)
		}
		joined, err := Join(in...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var b bytes.Buffer
		if err := joined.Write(&b); err != nil {
			t.Fatal(err)
		}
		q, err := Read(&b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		accesses, weight := 0.0, 0.0
		for _, r := range q.Records {
			accesses += r.Accesses
		}
		for _, l := range q.Latencies {
			weight += l.Cycles
		}
		if len(q.Touches) != wantTouches || len(q.Moments) != wantMoments || accesses != float64(observed) || weight != float64(latencies) {
			t.Errorf("%s: %d touches, %d moments, %v accesses, latencies of %v; want %d, %d, %d, %d", name,
				len(q.Touches), len(q.Moments), accesses, weight, wantTouches, wantMoments, observed, latencies)
		}
	}
}
