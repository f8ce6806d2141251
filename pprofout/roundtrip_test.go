package pprofout

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sampleProfile has a record of every kind and everything else that a file
// can carry. Times are middles of bins, so that reading gives them back.
func sampleProfile() *model.Profile {
	exe := &model.Mapping{Start: 0x400000, Limit: 0x480000, Offset: 0x1000, File: "/usr/bin/matmul", BuildID: "c0ffee"}
	libc := &model.Mapping{Start: 0x7f0000000000, Limit: 0x7f0000100000, Offset: 0x26000, File: "/usr/lib/libc.so.6", BuildID: "beef"}
	anon := &model.Mapping{Start: 0x10000, Limit: 0x20000}
	at := func(m *model.Mapping, addr uint64, lines ...model.Line) *model.Location {
		return &model.Location{Address: addr, Mapping: m, Lines: lines}
	}
	line := func(f string, n int) model.Line {
		return model.Line{Function: f, SystemName: "_Z" + f, File: "matmul.c", Line: n, StartLine: 1}
	}
	mainF := at(exe, 0x401500, line("main", 70))
	inner := at(exe, 0x401100, line("load", 10), line("multiply", 22))
	store := at(exe, 0x401180, line("multiply", 23))
	memcpy := at(libc, 0x7f0000000100)
	jit := at(anon, 0x10010)
	b := model.LogBins(8)
	mid := func(v uint64) uint64 { return b.Mid(b.Index(v)) }
	clock := model.Clock{Name: "cpu-time", Unit: "nanoseconds", Rate: 1.5, RateSource: "default", RateLow: 0.5, RateHigh: 8, Touches: 1.25, PlainNS: 0.5, WaitNS: 12, Misplaced: 1.75, Resolution: 500}
	timed := func(r model.Record, ns uint64) model.Record {
		r.Native, r.Time = mid(ns), mid(uint64(1.5*float64(ns)))
		return r
	}
	return &model.Profile{
		Writer: "v0.1.0 (commit 0123456789ab, go1.26.0, linux/amd64, BPF 0123456789ab)",
		Start:  time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC), Duration: 10*time.Second + 5, Command: "matmul -n 1000",
		Source: "cpu-clock", Period: 1e6, Clock: clock, Block: 64, BinsPerOctave: 8,
		Resident: 5 << 20, Touched: 9 << 20, Caches: []model.Cache{{Level: "L1d", Size: 32 << 10, Ways: 8, Line: 64}, {Level: "L2", Size: 1 << 20, Ways: 16, Line: 64, Assumed: true}},
		Costs: []model.Cost{{Waits: 2, Streams: 1, Apart: 1}, {Waits: 50, Streams: 2, Apart: 4, Within: 16 << 20}, {Waits: 250, Streams: 6, Apart: 20}},
		Records: []model.Record{
			timed(model.Record{Kind: model.Reuse, Use: []*model.Location{inner, mainF}, Ending: model.Ending{Reuse: []*model.Location{store, mainF}}, Op: model.Load, TID: 71, Epoch: 3, Cluster: model.Cluster{Hold: 1<<62 + 7, Open: 0.125}, Timing: model.Timing{Exact: true}, Lookahead: model.Lookahead{Distinct: 3, Hot: 11585},
				Weight: model.Weight{Observations: 3, Accesses: 4.5e6}, Derived: model.Derived{Reuses: 5e6, Misses: []float64{2e6, 1e6}, Distance: 3e5}}, 100000),
			timed(model.Record{Kind: model.Reuse, Use: []*model.Location{inner, mainF}, Ending: model.Ending{Reuse: []*model.Location{inner, mainF}}, Op: model.Store, TID: 72, Timing: model.Timing{BelowResolution: true},
				Lookahead: model.Lookahead{After: 254, Distinct: 1 + mid(40)}, Weight: model.Weight{Observations: 7, Accesses: 1.05e7}, Derived: model.Derived{Reuses: 1.05e7, Misses: []float64{0, 0}, Distance: 70}}, 500),
			timed(model.Record{Kind: model.Censored, Use: []*model.Location{memcpy, mainF}, Op: model.Load, TID: 71, Weight: model.Weight{Observations: 2, Accesses: 3e6}, Derived: model.Derived{Misses: []float64{3e6, 3e6}},
				HalfLine: model.HalfLine{Half: true, Pair: model.Censored, PairTime: mid(1.35e9)}, Lookahead: model.Lookahead{After: 255}}, 9e8),
			timed(model.Record{Kind: model.Pruned, Use: []*model.Location{jit}, TID: 71, Weight: model.Weight{Observations: 1, Accesses: 1.5e6}, Derived: model.Derived{Misses: []float64{0, 0}}}, 7e6),
			timed(model.Record{Kind: model.Invalidated, Use: []*model.Location{store, mainF}, Ending: model.Ending{Reuse: []*model.Location{memcpy, mainF}}, Op: model.Store, TID: 72,
				Weight: model.Weight{Observations: 1, Accesses: 1.5e6}, Derived: model.Derived{Misses: []float64{1.5e6, 1.5e6}}}, 7e6),
			{Kind: model.Cold, Use: []*model.Location{inner}, Op: model.Load, TID: 71, Weight: model.Weight{Observations: 1, Accesses: 1.5e6}, Derived: model.Derived{Misses: []float64{1.5e6, 1.5e6}}},
			{Kind: model.Lost, Use: []*model.Location{inner}, Op: model.Load, TID: 71, Weight: model.Weight{Observations: 1, Accesses: 1.5e6}, Derived: model.Derived{Misses: []float64{0, 0}}},
		},
		Counts:   []model.Count{{Name: model.LostBecause.Of(model.NoRegister), N: 5}, {Name: "truncated stacks", N: 17}},
		Comments: []string{"a remark", "rdx[00] block=8", "two\nlines"},
	}
}

// Latencies are a column only where there are some, and records that differ in
// nothing but where their data came from stay apart.
func TestLatency(t *testing.T) {
	p := sampleProfile()
	_, plain := write(t, p)
	for _, st := range plain.SampleType {
		if st.Type == latency {
			t.Error("a column of latencies without any")
		}
	}
	p = latencyProfile()
	b, out := write(t, p)
	column := slices.IndexFunc(out.SampleType, func(st *profile.ValueType) bool { return st.Type == "latency" && st.Unit == "cycles" })
	if column < 0 {
		t.Fatalf("no column latency/cycles in %v", out.SampleType)
	}
	bySource := make(map[string]int64)
	for _, s := range out.Sample {
		if s.Value[column] > 0 {
			bySource[s.Label["data_source"][0]] += s.Value[column]
		}
	}
	if len(bySource) != 2 || bySource["memory, TLB miss"] != 9e7 || bySource["L2"] != 4e6 {
		t.Errorf("latencies by data source %v", bySource)
	}
	diff(t, read(t, b), p)
	// Merging adds them up.
	twice, err := profile.Merge([]*profile.Profile{out, out})
	if err != nil {
		t.Fatal(err)
	}
	merged, err := Decode(twice)
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, l := range merged.Latencies {
		sum += l.Cycles
	}
	if sum != 2*9.4e7 {
		t.Errorf("merged latencies %g, want %g", sum, 2*9.4e7)
	}
}

// latencyProfile is sampleProfile with a use that took its data from two places.
func latencyProfile() *model.Profile {
	p := sampleProfile()
	p.Records[0].DataSource = "memory, TLB miss"
	other := p.Records[0]
	other.DataSource = "L2"
	p.Records = append(p.Records, other)
	p.Latencies = []model.Latency{
		{Use: other.Use, Op: other.Op, TID: other.TID, DataSource: other.DataSource, Cycles: 4e6},
		{Use: other.Use, Op: other.Op, TID: other.TID, DataSource: p.Records[0].DataSource, Cycles: 9e7},
	}
	return p
}

// write encodes, checks and returns the bytes and what pprof reads from them.
func write(t testing.TB, p *model.Profile, opts ...Option) ([]byte, *profile.Profile) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p, opts...); err != nil {
		t.Fatal(err)
	}
	out, err := profile.ParseData(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := out.CheckValid(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), out
}

func read(t testing.TB, b []byte) *model.Profile {
	t.Helper()
	p, err := Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// canon puts records into an order and makes them comparable by value.
func canon(p *model.Profile) []string {
	var out []string
	for _, r := range p.Records {
		s := fmt.Sprintf("%s %s tid=%d epoch=%d time=%d native=%d below=%t exact=%t distinct=%d hot=%d half=%t/%d/%s/%d n=%d acc=%g reuses=%g misses=%g dist=%g from=%q", r.Kind, r.Op, r.TID, r.Epoch, r.Time, r.Native,
			r.BelowResolution, r.Exact, r.Distinct, r.Hot, r.Half, r.After, r.Pair, r.PairTime, r.Observations, r.Accesses, r.Reuses, r.Misses, r.Distance, r.DataSource)
		for _, st := range [][]*model.Location{r.Reuse, r.Use} {
			s += " |"
			for _, l := range st {
				s += fmt.Sprintf(" %x %+v", l.Address, l.Lines)
				if l.Mapping != nil {
					s += fmt.Sprintf(" %+v", *l.Mapping)
				}
			}
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

func diff(t *testing.T, got, want *model.Profile) {
	t.Helper()
	g, w := canon(got), canon(want)
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Errorf("record %d\n got %v\nwant %v", i, at(g, i), at(w, i))
		}
	}
	gh, wh := *got, *want
	wh.SetDesignEffect() // it follows from the records
	gh.Records, wh.Records = nil, nil
	if !reflect.DeepEqual(gh, wh) {
		t.Errorf("head\n got %+v\nwant %+v", gh, wh)
	}
}

func at(s []string, i int) string {
	if i < len(s) {
		return s[i]
	}
	return "nothing"
}

func TestRoundTrip(t *testing.T) {
	p := sampleProfile()
	b, _ := write(t, p)
	got := read(t, b)
	diff(t, got, p)
	again, _ := write(t, got)
	if !bytes.Equal(b, again) {
		t.Error("writing what was read changes it")
	}
}

func TestRoundTripAccessClock(t *testing.T) {
	p := sampleProfile()
	p.Clock = model.Clock{Name: "mem-loads+mem-stores", Unit: "accesses", Rate: 1, RateSource: "counter"}
	for i := range p.Records {
		p.Records[i].Native = p.Records[i].Time
	}
	b, out := write(t, p)
	diff(t, read(t, b), p)
	for _, s := range out.Sample {
		if s.NumLabel[cpuTime] != nil {
			t.Error("an access counter's times are labelled in nanoseconds")
		}
	}
}

// Of a file's bins none lies across the edge of an octave, and so no distance
// that was counted gets into another one.
func TestCountedDistancesKeepTheirOctave(t *testing.T) {
	p := sampleProfile()
	r := p.Records[0]
	p.Records = nil
	for distance := range uint64(3000) {
		r.Distinct, r.Time = distance+1, 2*distance+1
		p.Records = append(p.Records, r)
	}
	b, _ := write(t, p)
	octaves := func(p *model.Profile) *model.Hist {
		h, err := p.Stacks(model.LogBins(1))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if want, got := octaves(p), octaves(read(t, b)); !reflect.DeepEqual(got.W, want.W) {
		t.Fatalf("octaves of stack distances:\n%v\nwritten and read; want\n%v", got.W, want.W)
	}
}

func TestRoundTripEmpty(t *testing.T) {
	p := &model.Profile{BinsPerOctave: 10}
	b, out := write(t, p)
	diff(t, read(t, b), p)
	if out.DefaultSampleType != "reuses" {
		t.Errorf("default sample type %q without caches", out.DefaultSampleType)
	}
}

// Random profiles: binning is all that reading may change, and is idempotent.
func TestRoundTripRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		p := sampleProfile()
		base := p.Records
		p.BinsPerOctave = 1 + rng.IntN(40)
		b := model.LogBins(p.BinsPerOctave)
		p.Records = nil
		type total struct {
			n      int64
			weight [3]float64
		}
		want := map[string]total{}
		for range rng.IntN(200) {
			r := base[rng.IntN(len(base))]
			if r.Kind.Parts().Timed {
				r.Time = uint64(math.Exp(rng.Float64() * 40))
				r.Native = uint64(math.Exp(rng.Float64() * 40))
			}
			r.Observations = 1 + rng.Int64N(3)
			r.Accesses = rng.ExpFloat64() * 1000
			r.Reuses = r.Accesses * rng.Float64()
			r.Misses = []float64{r.Reuses, r.Reuses / 2}
			p.Records = append(p.Records, r)
			if !r.Kind.Parts().Timed {
				r.Time, r.Native = 0, 0
			}
			k := fmt.Sprint(r.Kind, r.Op, r.TID, r.Epoch, b.Index(r.Time), b.Index(r.Native), r.BelowResolution, r.Exact)
			w := want[k]
			w.n += r.Observations
			w.weight[0] += r.Accesses
			w.weight[1] += r.Reuses
			w.weight[2] += r.Misses[1]
			want[k] = w
		}
		data, _ := write(t, p)
		got := read(t, data)
		var err [3]float64
		seen := map[string]total{}
		for _, r := range got.Records {
			k := fmt.Sprint(r.Kind, r.Op, r.TID, r.Epoch, b.Index(r.Time), b.Index(r.Native), r.BelowResolution, r.Exact)
			w := seen[k]
			w.n += r.Observations
			for i, v := range [3]float64{r.Accesses, r.Reuses, r.Misses[1]} {
				w.weight[i] += v
			}
			seen[k] = w
		}
		if len(seen) != len(want) {
			t.Fatalf("%d distinct samples, want %d", len(seen), len(want))
		}
		for k, w := range want {
			if seen[k].n != w.n {
				t.Errorf("%s: %d observations, want %d", k, seen[k].n, w.n)
			}
			for i := range err {
				err[i] += seen[k].weight[i] - w.weight[i]
			}
		}
		for i, e := range err {
			if math.Abs(e) > 0.5+1e-6 {
				t.Errorf("total of weight %d is off by %g, want at most 0.5", i, e)
			}
		}
		again, _ := write(t, got)
		back := read(t, again)
		diff(t, back, got)
	}
}

func TestGolden(t *testing.T) {
	for path, p := range map[string]*model.Profile{"testdata/sample.golden": sampleProfile(), "testdata/latency.golden": latencyProfile()} {
		testGolden(t, path, p)
	}
}

func testGolden(t *testing.T, path string, p *model.Profile) {
	for i := range p.Records {
		if err := p.Records[i].Check(); err != nil {
			t.Error(err)
		}
	}
	_, out := write(t, p)
	got := out.String()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("text differs from %s (go test -update rewrites it):\n%s", path, got)
	}
}

func TestHeader(t *testing.T) {
	p := sampleProfile()
	_, out := write(t, p)
	var types []string
	for _, s := range out.SampleType {
		types = append(types, s.Type+"/"+s.Unit)
	}
	if got := strings.Join(types, " "); got != "observations/count accesses/count reuses/count l1d_misses/count l2_misses/count stack_distance/bytes" {
		t.Errorf("sample types %s", got)
	}
	// Of 16 observations no miss ratio is worth a look; of 1600 the last
	// level's is, unless nothing misses there.
	many := sampleProfile()
	for i := range many.Records {
		many.Records[i].Observations *= 100
	}
	_, all := write(t, many)
	for i := range many.Records {
		many.Records[i].Misses[1] = 0
	}
	_, first := write(t, many)
	if got := [3]string{out.DefaultSampleType, all.DefaultSampleType, first.DefaultSampleType}; got != [3]string{"reuses", "l2_misses", "l1d_misses"} {
		t.Errorf("default sample types %q", got)
	}
	if out.PeriodType.Unit != "nanoseconds" || out.Period != 1e6 || out.TimeNanos != p.Start.UnixNano() || out.DurationNanos != int64(p.Duration) {
		t.Errorf("period %v %d, time %d, duration %d", out.PeriodType, out.Period, out.TimeNanos, out.DurationNanos)
	}
	for _, m := range out.Mapping {
		// matmul is symbolized everywhere, the others nowhere.
		want := strings.Contains(m.File, "matmul")
		if m.HasFunctions != want || m.HasFilenames != want || m.HasLineNumbers != want {
			t.Errorf("%s: claims functions %t, files %t, lines %t", m.File, m.HasFunctions, m.HasFilenames, m.HasLineNumbers)
		}
	}
}

// Callers are written inside their call instruction, leaves as they are, also
// where one address is both.
func TestReturnAddresses(t *testing.T) {
	both := &model.Location{Address: 0x1234, Mapping: &model.Mapping{Start: 0x1000, Limit: 0x2000, File: "x"}}
	p := &model.Profile{BinsPerOctave: 8, Records: []model.Record{
		{Kind: model.Reuse, Use: []*model.Location{both, both}, Ending: model.Ending{Reuse: []*model.Location{both, both}}, Weight: model.Weight{Observations: 1, Accesses: 1}}}}
	b, out := write(t, p)
	var got []uint64
	for _, l := range out.Sample[0].Location {
		got = append(got, l.Address)
	}
	if want := []uint64{0x1234, 0x1233, 0, 0x1234, 0x1233}; !slices.Equal(got, want) {
		t.Errorf("addresses %x, want %x", got, want)
	}
	diff(t, read(t, b), p)
}

func TestWithoutUse(t *testing.T) {
	p := sampleProfile()
	b, _ := write(t, p, WithoutUse())
	got := read(t, b)
	for i := range p.Records {
		if p.Records[i].Kind.Parts().Ended {
			p.Records[i].Use = nil
		}
	}
	diff(t, got, p)
}

// What cannot be told apart by name or build ID must not be merged into one.
func TestAnonymousMappings(t *testing.T) {
	a := &model.Location{Address: 0x1010, Mapping: &model.Mapping{Start: 0x1000, Limit: 0x2000}}
	c := &model.Location{Address: 0x5010, Mapping: &model.Mapping{Start: 0x5000, Limit: 0x6000}}
	p := &model.Profile{BinsPerOctave: 8, Records: []model.Record{{Kind: model.Cold, Use: []*model.Location{a, c}, Weight: model.Weight{Observations: 1}}}}
	_, out := write(t, p)
	got, err := Decode(out.Compact())
	if err != nil {
		t.Fatal(err)
	}
	diff(t, got, p)
}

func TestSums(t *testing.T) {
	p := sampleProfile()
	p.Records = append(p.Records, p.Records...)
	b, _ := write(t, p)
	want := sampleProfile()
	for i := range want.Records {
		r := &want.Records[i]
		r.Observations *= 2
		r.Accesses *= 2
		r.Reuses *= 2
		r.Distance *= 2
		for j := range r.Misses {
			r.Misses[j] *= 2
		}
	}
	diff(t, read(t, b), want)
}

func TestWriteErrors(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(p *model.Profile)
	}{
		{"accesses: values add up to more than 9223372036854775807", func(p *model.Profile) { p.Records[0].Accesses, p.Records[1].Accesses = 5e18, 5e18 }},
		{"stack_distance: values add up", func(p *model.Profile) { p.Records[0].Distance = 1e19 }},
		{"observations: values add up", func(p *model.Profile) { p.Records[0].Observations = math.MaxInt64 }},
		{"observations add up", func(p *model.Profile) {
			p.Records[0].Observations = math.MaxInt64
			p.Records = append(p.Records, p.Records[0])
		}},
		{"record 1: weight NaN", func(p *model.Profile) { p.Records[1].Reuses = math.NaN() }},
		{"record 2: weight +Inf", func(p *model.Profile) { p.Records[2].Misses[1] = math.Inf(1) }},
		{"record 0: weight -1", func(p *model.Profile) { p.Records[0].Accesses = -1; p.Records = p.Records[:1] }},
		{"record 0: -1 observations", func(p *model.Profile) { p.Records[0].Observations = -1 }},
		{"record 0: misses of 1 cache levels, the profile has 2", func(p *model.Profile) { p.Records[0].Misses = []float64{1} }},
		{"record 0: time", func(p *model.Profile) { p.Records[0].Time = math.MaxUint64 }},
		{"unknown kind", func(p *model.Profile) { p.Records[0].Kind = 99 }},
		{"0 bins per octave", func(p *model.Profile) { p.BinsPerOctave = 0 }},
		{"clock rate is NaN", func(p *model.Profile) { p.Clock.Rate = math.NaN() }},
		{`cache level "l1D"`, func(p *model.Profile) { p.Caches[1].Level = "l1D" }},
		{`cache level "L 1"`, func(p *model.Profile) { p.Caches[1].Level = "L 1" }},
		{`count "truncated stacks" is -1`, func(p *model.Profile) { p.Counts[1].N = -1 }},
		{"period is 1e+30", func(p *model.Profile) { p.Period = 1e30 }},
	} {
		p := sampleProfile()
		c.change(p)
		var b bytes.Buffer
		err := Write(&b, p)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one line with %q", err, c.want)
		}
		if b.Len() != 0 {
			t.Errorf("%q: %d bytes written with the error", c.want, b.Len())
		}
	}
}

// Names are whatever bytes the target has; a protobuf string is UTF-8.
func TestForeignBytes(t *testing.T) {
	p := sampleProfile()
	p.Command = "prog \xff\x00 \"x\"\n"
	p.Counts = []model.Count{{Name: model.LostBecause.Of("\xff"), N: 1}}
	p.Records[0].Use[0].Lines[0].Function = "f\xff"
	b, out := write(t, p)
	for _, f := range out.Function {
		if strings.ToValidUTF8(f.Name, "") != f.Name {
			t.Errorf("function %q is not UTF-8", f.Name)
		}
	}
	got := read(t, b)
	if got.Command != p.Command {
		t.Errorf("command %q, want %q", got.Command, p.Command)
	}
	if len(got.Counts) != 1 || got.Counts[0].N != 1 {
		t.Errorf("counts %v, want one", got.Counts)
	}
}

func BenchmarkWrite(b *testing.B) {
	p := sampleProfile()
	exe := p.Records[0].Use[1].Mapping
	rng := rand.New(rand.NewPCG(1, 1))
	var locs []*model.Location
	for i := range 5000 {
		locs = append(locs, &model.Location{Address: exe.Start + uint64(i)*16, Mapping: exe, Lines: []model.Line{{Function: fmt.Sprint("f", i), File: "x.c", Line: i + 1}}})
	}
	for range 100000 {
		r := p.Records[0]
		r.Use, r.Reuse = nil, nil
		for range 20 {
			r.Use, r.Reuse = append(r.Use, locs[rng.IntN(len(locs))]), append(r.Reuse, locs[rng.IntN(len(locs))])
		}
		r.Time = rng.Uint64N(1 << 40)
		p.Records = append(p.Records, r)
	}
	for b.Loop() {
		var out bytes.Buffer
		if err := Write(&out, p); err != nil {
			b.Fatal(err)
		}
		if _, err := Read(&out); err != nil {
			b.Fatal(err)
		}
	}
}

// TestMissesShared: samples that follow each other have the same misses in the same memory, and others have their own.
func TestMissesShared(t *testing.T) {
	d := &decoder{p: &model.Profile{Caches: make([]model.Cache, 2)}, column: []int{0, 0, 0, 0, 1}}
	var got [][]float64
	for i := range int64(missesAtOnce) { // more than are taken together
		got = append(got, d.missesOf(&sample{values: []int64{i / 3, 7}}))
	}
	apart := 0
	for i, v := range got {
		if v[0] != float64(i/3) || v[1] != 7 || len(v) != 2 || cap(v) != 2 {
			t.Fatalf("sample %d has %v", i, v)
		}
		if i > 0 && &v[0] != &got[i-1][0] {
			apart++
		}
	}
	if want := len(got) / 3; apart < want || apart > want+1 { // one more where new memory begins
		t.Errorf("%d are apart, want %d", apart, want)
	}
}
