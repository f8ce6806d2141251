package fleet

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/fleet/backend"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

func packs(t *testing.T, weight float64, windows ...backend.Made) [][]byte {
	t.Helper()
	var out [][]byte
	for i, m := range windows {
		b, err := Window{Profile: m.Profile(), Weight: weight, Time: time.Unix(1.8e9+60*int64(i), 0)}.Pack()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

var someWindows = []backend.Made{
	{Name: "checkout", Share: .2, Lines: 1 << 12, Seed: 1, N: 600}, {Name: "checkout", Share: .2, Lines: 1 << 12, Seed: 2, N: 600}, {Name: "checkout", Share: .2, Lines: 1 << 12, Seed: 3, N: 400},
}

func curve(t *testing.T, p *model.Profile) *model.Curve {
	t.Helper()
	c, err := p.MissRatios([]uint64{64, 512, 1 << 11, 1 << 14, 1 << 19}, model.CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What comes out of packs is what the profiles themselves say, merged by pprof.
func TestUnpackIsTheMerge(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	got, err := Unpack(packs(t, 1, someWindows...), false)
	if err != nil {
		t.Fatal(err)
	}
	var files []*profile.Profile
	for _, m := range someWindows {
		var b bytes.Buffer
		if err := pprofout.Write(&b, m.Profile()); err != nil {
			t.Fatal(err)
		}
		p, err := profile.Parse(&b)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, p)
	}
	merged, err := profile.Merge(files)
	if err != nil {
		t.Fatal(err)
	}
	want, err := pprofout.Decode(merged)
	if err == nil {
		err = want.Derive()
	}
	if err != nil {
		t.Fatal(err)
	}
	a, b := curve(t, want), curve(t, got)
	for i := range a.Points {
		if d := math.Abs(a.Points[i].MissRatio - b.Points[i].MissRatio); d > .003 {
			t.Errorf("%d blocks: %v, from the profiles themselves %v", a.Points[i].Blocks, b.Points[i].MissRatio, a.Points[i].MissRatio)
		}
		if wa, wb := a.Points[i].High-a.Points[i].Low, b.Points[i].High-b.Points[i].Low; math.Abs(wa-wb) > .25*wa+.002 {
			t.Errorf("%d blocks: a band of %v, from the profiles themselves %v", a.Points[i].Blocks, wb, wa)
		}
	}
	if math.Abs(float64(a.Holds)/float64(b.Holds)-1) > .05 {
		t.Errorf("worth %v holds, from the profiles themselves %v", b.Holds, a.Holds)
	}
	for _, name := range []model.CountName{model.LostBecause.Of(model.SignalsBlocked), model.CPUSampled} {
		if g, w := got.CountOf(name), want.CountOf(name); g != w {
			t.Errorf("%s: %d, want %d", name, g, w)
		}
	}
	if got.Duration != 3*time.Minute || math.Abs(got.Clock.Rate-1) > 1e-6 || math.Abs(got.Clock.Touches-1.1) > 1e-6 || math.Abs(got.Clock.Resolution-500) > 1e-6 {
		t.Errorf("duration %v, clock %+v", got.Duration, got.Clock)
	}
	sum := func(p *model.Profile) (accesses float64, observations int64) {
		for i := range p.Records {
			accesses += p.Records[i].Accesses
			observations += p.Records[i].Observations
		}
		return
	}
	ga, gn := sum(got)
	wa, wn := sum(want)
	if gn != wn || math.Abs(ga-wa) > 3 {
		t.Errorf("%v accesses of %d observations, want %v of %d", ga, gn, wa, wn)
	}
}

// A profile of a merge can be written and read again, bands and all.
func TestUnpackedFile(t *testing.T) {
	p, err := Unpack(packs(t, 40, someWindows...), false)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := pprofout.Write(&b, p); err != nil {
		t.Fatal(err)
	}
	q, err := pprofout.Read(&b)
	if err == nil {
		err = q.Derive()
	}
	if err != nil {
		t.Fatal(err)
	}
	x, y := curve(t, p), curve(t, q)
	for i := range x.Points {
		if math.Abs(x.Points[i].MissRatio-y.Points[i].MissRatio) > 1e-4 || math.Abs(x.Points[i].High-y.Points[i].High) > .002 {
			t.Errorf("%+v, read again %+v", x.Points[i], y.Points[i])
		}
	}
}

// Windows that weigh differently are worth fewer observations than there are.
func TestSquaresOfWeights(t *testing.T) {
	all := append(packs(t, 1, someWindows[0]), packs(t, 100, someWindows[1])...)
	p, err := Unpack(all, false)
	if err != nil {
		t.Fatal(err)
	}
	one, err := Unpack(all[1:], false)
	if err != nil {
		t.Fatal(err)
	}
	a, b := curve(t, p), curve(t, one)
	for i := range a.Points {
		if wa, wb := a.Points[i].High-a.Points[i].Low, b.Points[i].High-b.Points[i].Low; math.Abs(wa-wb) > .25*wb+.002 {
			t.Errorf("%d blocks: a band of %v, of the heavy window alone %v", a.Points[i].Blocks, wa, wb)
		}
	}
}

func TestBandsHoldTheTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	outside := 0
	const rounds = 40
	for seed := range uint64(rounds) {
		m := backend.Made{Name: "cart", Share: .1, Lines: 1 << 14, Seed: 100 + seed, N: 800}
		p, err := Unpack(packs(t, 7, m), false)
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.MissRatios([]uint64{1 << 12}, model.CurveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// Of so few, by so much more weighed: what a sample of 800 can say.
		if q := c.Points[0]; q.Low > .1 || q.High < .1 {
			outside++
		}
	}
	if outside > 6 { // of 95 % bands 2 in 40; more than 6 in one of 300 runs
		t.Errorf("%d of %d bands do not hold the truth", outside, rounds)
	}
}

// Where processes differ and were drawn by lot, the bands hold the mean of all of them: what is
// independent is the window. As long as holds are taken for it, they don't.
func TestBandsOfDrawnWindows(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	r := rand.New(rand.NewPCG(7, 8))
	outside := [2]int{}
	const rounds, windows, truth = 30, 20, .15
	for round := range uint64(rounds) {
		var sets [2][][]byte
		for i := range uint64(windows) {
			share := []float64{.05, .25}[r.IntN(2)] // of machines there are two kinds, in equal numbers
			made := backend.Made{Name: "cart", Share: share, Lines: 1 << 14, Seed: 1000*round + i, N: 120}.Profile()
			for k, drawn := range []bool{true, false} {
				b, err := Window{Profile: made, Weight: 30, Drawn: drawn, Time: time.Unix(1.8e9+int64(i)*60, int64(round)), Name: "x"}.Pack()
				if err != nil {
					t.Fatal(err)
				}
				sets[k] = append(sets[k], b)
			}
		}
		for k, set := range sets {
			p, err := Unpack(set, false)
			if err != nil {
				t.Fatal(err)
			}
			c, err := p.MissRatios([]uint64{1 << 12}, model.CurveOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if q := c.Points[0]; q.Low > truth || q.High < truth {
				outside[k]++
			}
		}
	}
	t.Logf("of %d bands do not hold the truth: windows %d, holds %d", rounds, outside[0], outside[1])
	if outside[0] > 5 { // of 95 % bands 1.5 in 30; more than 5 in one of 150 runs
		t.Errorf("%d of %d bands do not hold the truth", outside[0], rounds)
	}
	if outside[1] <= outside[0] {
		t.Errorf("holds are as good as windows, %d and %d outside: the test tells nothing", outside[1], outside[0])
	}
}

func TestMixIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	other := backend.Made{Name: "checkout", Share: .2, Lines: 1 << 12, Seed: 4, N: 100, Caches: []model.Cache{{Level: "L1d", Size: 48 << 10, Ways: 12, Line: 64}}}
	all := append(packs(t, 1, someWindows...), packs(t, 1, other)...)
	if _, err := Unpack(all, false); err == nil || !strings.Contains(err.Error(), "--mix") || !strings.Contains(err.Error(), "48 KiB") {
		t.Errorf("two kinds of machines: %v", err)
	}
	p, err := Unpack(all, true)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(p.Comments, "\n"), "2 kinds") {
		t.Errorf("mixed without a word: %q", p.Comments)
	}
	if Config(someWindows[0].Profile()) == Config(other.Profile()) {
		t.Error("caches that differ have the same label")
	}
}

// Whatever a process calls itself, a pack is good for a server and for a terminal.
func TestPackOfHostileNames(t *testing.T) {
	p := someWindows[0].Profile()
	for i, name := range []string{"\x1b[31mred\x07", "\xff\xfe", strings.Repeat("x", 1<<20), "", "rdx/1?kind=reuse&time=5", "[reuse of]", "a\x00b"} {
		p.Records[i].Use = []*model.Location{{Address: 1, Mapping: &model.Mapping{File: name, BuildID: name}, Lines: []model.Line{{Function: name, File: name}}}}
	}
	p.Counts = append(p.Counts, model.Count{Name: model.LostBecause.Of("\x1b[31m&count=x"), N: 5})
	b, err := Window{Profile: p, Weight: 1, Time: time.Unix(1.8e9, 0)}.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 100_000 {
		t.Errorf("%d bytes", len(b))
	}
	q, err := Unpack([][]byte{b}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range q.Records {
		for _, l := range append(r.Use, r.Reuse...) {
			for _, ln := range l.Lines {
				if strings.ContainsAny(ln.Function+ln.File, "\x1b\x07\x00") {
					t.Errorf("control characters in %q", ln.Function)
				}
			}
		}
	}
	if _, err := (Window{Profile: p, Weight: 0, Time: time.Now()}).Pack(); err == nil {
		t.Error("a weight of 0 is packed")
	}
}

// A window with more samples than a server takes is packed with shorter stacks, and says so.
func TestPackOfManyStacks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	p := someWindows[0].Profile()
	base := p.Records[len(p.Records)-1]
	main := base.Use[len(base.Use)-1]
	for i := range mostSamples + 100 {
		r := base
		r.Use = []*model.Location{base.Use[0], main, {Address: uint64(i), Lines: []model.Line{{Function: "deep", Line: i}}}}
		p.Records = append(p.Records, r)
	}
	for len(p.Records[0].Use) < 70 {
		p.Records[0].Use = append(p.Records[0].Use, main)
	}
	b, err := Window{Profile: p, Weight: 1, Time: time.Unix(1.8e9, 0)}.Pack()
	if err != nil {
		t.Fatal(err)
	}
	q, err := Unpack([][]byte{b}, false)
	if err != nil {
		t.Fatal(err)
	}
	if q.CountOf(model.StacksShortened) == 0 {
		t.Error("stacks are cut without a word")
	}
	if len(q.Records) > mostSamples {
		t.Errorf("%d records", len(q.Records))
	}
}

func TestLaterFormats(t *testing.T) {
	if _, err := parseTag("rdx/2?kind=reuse"); err == nil || !strings.Contains(err.Error(), "later") {
		t.Errorf("format 2: %v", err)
	}
	v, err := parseTag(tagPrefix + "kind=reuse&time=5&flavour=new")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := record(v); err != nil || r.Time != 5 {
		t.Errorf("an unknown key: %+v, %v", r, err)
	}
}

// A tag says of a use how large the hot set is that it is in.
func TestTagHot(t *testing.T) {
	in := model.Record{Kind: model.Censored, Timing: model.Timing{Time: 5000, Exact: true}, Lookahead: model.Lookahead{Distinct: 100, After: 4999, Hot: 11585}}
	v, err := parseTag(tagOf(&in, 3).String())
	if err != nil {
		t.Fatal(err)
	}
	if r, err := record(v); err != nil || r.Hot != in.Hot || r.After != in.After || r.Group != 3 {
		t.Errorf("%+v, %v", r, err)
	}
}

func FuzzTag(f *testing.F) {
	f.Add(tagPrefix + "kind=reuse&time=5")
	f.Add(tagPrefix + "head=1&block=64&bins=4&cache=L1d+32768+8+64")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := parseTag(s)
		if err != nil {
			return
		}
		_, _ = record(v)
		_, _ = parseHead(v)
	})
}

func TestPeopleColumns(t *testing.T) {
	b, err := Window{Profile: someWindows[0].Profile(), Weight: 3, Time: time.Unix(1.8e9, 0)}.People()
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	want, sum := 0.0, int64(0)
	for _, r := range someWindows[0].Profile().Records {
		want += 3 * r.Misses[0]
	}
	column := -1
	for i, c := range p.SampleType {
		if c.Type == "l1d_misses" {
			column = i
		}
	}
	for _, s := range p.Sample {
		sum += s.Value[column]
		if len(s.Label)+len(s.NumLabel) > 0 {
			t.Fatal("labels on samples become series")
		}
	}
	if math.Abs(float64(sum)-want) > 1 {
		t.Errorf("%d misses, want %v", sum, want)
	}
}
