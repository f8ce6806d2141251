package why

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// at is a stack in a function.
func at(function string, line int) []*model.Location {
	return []*model.Location{{Address: uint64(line), Lines: []model.Line{{Function: function, File: function + ".c", Line: line}}}}
}

// program has so many samples of CPU time in a loop, of which a share waits for data, in a manner; as many of its instructions as
// chance says have a fetch right behind them. Its fetches are as many as the share lets expect, times factor.
func program(rng *rand.Rand, samples int, share, chance, factor float64, manner model.Manner, step int64) *model.Profile {
	table := &model.Data{Name: "table"}
	p := &model.Profile{Block: 64, BinsPerOctave: 16, Caches: []model.Cache{{Level: "L1d", Size: 32 << 10}, {Level: "L2", Size: 1 << 20}},
		Costs:   []model.Cost{{Waits: 2.2, Streams: 0.6, Apart: 1.5}, {Waits: 5, Streams: 1, Apart: 1.6}, {Waits: 90, Streams: 6, Apart: 9}},
		Records: []model.Record{{Kind: model.Censored, Use: at("loop", 5), Weight: model.Weight{Observations: 5, Accesses: 100}, Derived: model.Derived{Misses: []float64{100, 100}}, Timing: model.Timing{Time: 9}}},
		Touches: []model.Touch{{Use: at("loop", 5), Op: model.Load, Data: table, Manner: manner, Stride: step, Windows: int64(samples), Accesses: 1000, Fetches: 900, Used: 900 * 8}}}
	c := costsOf(p)
	rates := model.MomentRates{}
	if share > 0 {
		waits := share / (1 - share) * c.cycle / 1.6 * factor * 1e4 // in ten thousand instructions
		if manner == model.MannerChase {
			rates.Chases = int(math.Round(waits / c.chased[2]))
		} else {
			rates.Apart = int(math.Round(waits / c.apart[2]))
		}
	}
	for range samples {
		m := model.Moment{Stack: at("loop", 9), Wait: model.WaitNo, MomentRates: rates, Samples: 1, Nanoseconds: 1e6}
		if rng.Float64() < share || rng.Float64() < chance {
			m.Wait, m.Data, m.Manner, m.Stride = model.WaitMemory, table, manner, step
			m.Near = int(math.Round(100 / chance))
		} else {
			m.Stack = at("loop", 10)
		}
		p.Moments = append(p.Moments, m)
	}
	return p
}

// TestVerdictOfKnownShares: within 15 points, with what the windows let expect right, and off by three in both directions.
func TestVerdictOfKnownShares(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, chance := range []float64{.05, .3} {
		for _, share := range []float64{0, .2, .5, .9} {
			for _, factor := range []float64{1. / 3, 1, 3} {
				mean, held := 0.0, 0
				const times = 30
				for range times {
					v := verdict(program(rng, 60, share, chance, factor, model.MannerRandom, 0))
					if !v.Known {
						t.Fatalf("not known: %s", v.Why)
					}
					mean += v.Memory.Value / times
					if v.Memory.Low <= share && share <= v.Memory.High {
						held++
					}
				}
				if math.Abs(mean-share) > .15 || factor == 1 && held < times*8/10 {
					t.Errorf("share %v, chance %v, factor %.2f: %.3f on average, band holds it %d of %d times", share, chance, factor, mean, held, times)
				}
			}
		}
	}
}

// TestVerdictOfList: in a loop of four instructions all are right behind the fetch, and where samples fall tells nothing.
func TestVerdictOfList(t *testing.T) {
	p := program(rand.New(rand.NewPCG(1, 4)), 12, .99, 1, 1, model.MannerChase, 0)
	for i := range p.Moments {
		p.Moments[i].Chases, p.Moments[i].Near = 2500, 100
	}
	if m := verdict(p).Memory; m.Value < .9 || m.Low < .8 {
		t.Errorf("%+v, want more than 0.9: 90 ns for each four instructions", m)
	}
	p.Records[0].Misses = []float64{0, 0}
	if m := verdict(p).Memory; m.Value > .5 {
		t.Errorf("%+v with data in the first cache", m)
	}
}

// TestNothingStandsOut: six programs that do not wait.
func TestNothingStandsOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for i, p := range []*model.Profile{
		program(rng, 100, 0, .01, 1, model.MannerStride, 8), program(rng, 100, 0, .02, 1, model.MannerRandom, 0), program(rng, 40, .01, .01, 1, model.MannerChase, 0),
		program(rng, 300, .03, .1, 1, model.MannerGather, 0), program(rng, 9, 0, .01, 1, model.MannerStride, 4096), program(rng, 500, .05, .05, 1, model.MannerRandom, 0),
	} {
		a := Analyze(p)
		if !a.Checked || len(a.Findings) > 0 || !strings.Contains(a.Text(), "Nothing stands out") {
			t.Errorf("program %d: %+v\n%s", i, a.Findings, a.Text())
		}
	}
}

func TestUnknownIsSaid(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	few := program(rng, leastSamples-1, .9, .1, 1, model.MannerChase, 0)
	none := program(rng, 0, .9, .1, 1, model.MannerChase, 0)
	for i, p := range []*model.Profile{few, none, {}} {
		a := Analyze(p)
		if a.Verdict.Known || a.Checked || len(a.Findings) > 0 || !strings.Contains(a.Says, "not known") || strings.Contains(a.Text(), "Nothing stands out") {
			t.Errorf("profile %d: %s", i, a.Text())
		}
	}
}

func TestFindingOfEachManner(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, c := range []struct {
		manner model.Manner
		step   int64
		rule   string
	}{{model.MannerStride, 8192, "stride"}, {model.MannerChase, 0, "chase"}, {model.MannerGather, 0, "gather"}, {model.MannerRandom, 0, "random"}} {
		a := Analyze(program(rng, 80, .8, .1, 1, c.manner, c.step))
		if len(a.Findings) != 1 || a.Findings[0].Rule != c.rule || a.Findings[0].Data != "table" || a.Findings[0].Line != 5 || a.Findings[0].Cost.Value < .6 {
			t.Errorf("%s: %+v", c.rule, a.Findings)
		}
		if text := a.Text(); !strings.Contains(text, "Bound by memory") || !strings.Contains(text, fmt.Sprintf("1. %s", strings.ToUpper(a.Findings[0].Title[:1]))) {
			t.Error(text)
		}
	}
}

// TestSplit: a loop through structures that streams.
func TestSplit(t *testing.T) {
	p := program(rand.New(rand.NewPCG(1, 1)), 40, 0, .3, 1, model.MannerStride, 128)
	for i := range p.Moments {
		p.Moments[i].Streams, p.Moments[i].Near = 2500, 300
	}
	a := Analyze(p)
	if len(a.Findings) != 1 || a.Findings[0].Rule != "split" || a.Verdict.Streams.Value < .5 {
		t.Errorf("%+v\n%s", a.Verdict, a.Text())
	}
}

func TestAnnotate(t *testing.T) {
	p := program(rand.New(rand.NewPCG(3, 1)), 40, .98, .1, 1, model.MannerStride, 8192)
	s, err := Annotate(p, "src/loop.c", strings.Repeat("x\n", 12))
	if err != nil {
		t.Fatal(err)
	}
	if l := s.Lines[4]; l.Waits < .9 || l.Stride != model.StrideLarger.String() || l.Step != 8192 || l.Used == nil || *l.Used != 8 {
		t.Errorf("line 5: %+v", l)
	}
	if text := s.Text(); !strings.Contains(text, "  8/64 8192") {
		t.Error(text)
	}
	if _, err := Annotate(p, "other.c", "x"); err == nil || !strings.Contains(err.Error(), "loop.c") {
		t.Errorf("another file: %v", err)
	}
	if s, err = Annotate(p, "loop.c", "one line"); err != nil || len(s.Lines) != 1 {
		t.Errorf("a file cut short: %v", err)
	}
}

// TestVerdictInFirstCache: fetches that are all read ahead to come from the first cache are not waited for, wherever samples fall.
func TestVerdictInFirstCache(t *testing.T) {
	p := program(rand.New(rand.NewPCG(1, 6)), 98, .9, .3, 1, model.MannerGather, 0)
	for i := range p.Moments {
		p.Moments[i].Apart, p.Moments[i].Near, p.Moments[i].Runs = 450, 215, 250
	}
	p.Records = []model.Record{{Kind: model.Reuse, Use: at("loop", 5), Ending: model.Ending{Reuse: at("loop", 5)}, Weight: model.Weight{Observations: 200, Accesses: 1e6},
		Derived: model.Derived{Misses: []float64{0, 0}, Reuses: 1e6}, Timing: model.Timing{Time: 1000, Exact: true}}}
	if a := Analyze(p); a.Verdict.Memory.High > .2 || len(a.Findings) > 0 {
		t.Errorf("%+v\n%s", a.Verdict, a.Text())
	}
}

// TestVerdictWhereAllIsNear: random look-ups in a table of the first cache fetch a line now and then, and all instructions are near one.
// That all samples fall there tells nothing, however unlike the windows are.
func TestVerdictWhereAllIsNear(t *testing.T) {
	p := program(rand.New(rand.NewPCG(1, 7)), 118, 0, 1, 1, model.MannerRandom, 0)
	nears := []int{100, 100, 100, 195, 175, 155, 115}
	for i := range p.Moments {
		m := &p.Moments[i]
		m.Apart, m.Chases, m.Near, m.Runs = 0, 0, nears[i%len(nears)], 155
	}
	p.Records = []model.Record{{Kind: model.Reuse, Use: at("loop", 5), Ending: model.Ending{Reuse: at("loop", 5)}, Weight: model.Weight{Observations: 75, Accesses: 1e6},
		Derived: model.Derived{Misses: []float64{0, 0}, Reuses: 1e6}, Timing: model.Timing{Time: 1000, Exact: true}}}
	if a := Analyze(p); a.Verdict.Memory.High > .1 || len(a.Findings) > 0 {
		t.Errorf("%+v\n%s", a.Verdict, a.Text())
	}
}

// TestVerdictWhereFetchesAreRare: a loop fetches a line in a thousand instructions. In most windows none is seen at the instruction that
// samples fall on, in some a few are: that is chance.
func TestVerdictWhereFetchesAreRare(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	p := program(rng, 154, 0, 1, 1, model.MannerStride, 8)
	for i := range p.Moments {
		m := &p.Moments[i]
		m.Apart, m.Chases, m.Streams, m.Near, m.Runs = 0, 0, 10, 0, 60
		if rng.IntN(100) < 58 {
			m.Near = 30 + rng.IntN(300)
		}
	}
	p.Records = []model.Record{{Kind: model.Reuse, Use: at("loop", 5), Ending: model.Ending{Reuse: at("loop", 5)}, Weight: model.Weight{Observations: 250, Accesses: 1e6},
		Derived: model.Derived{Misses: []float64{8e4, 1e3}, Reuses: 1e6}, Timing: model.Timing{Time: 1000, Exact: true}}}
	if a := Analyze(p); a.Verdict.Memory.Low > .02 || a.Verdict.Memory.High < .02 || a.Verdict.Memory.High > .2 {
		t.Errorf("%+v\n%s", a.Verdict, a.Text())
	}
}

// TestVerdictOfBlockedMultiply: its blocks fit the first cache, by a model that is fully associative. That 5 % of its time is
// waiting all the same, the band holds, and it is no wide one.
func TestVerdictOfBlockedMultiply(t *testing.T) {
	p := program(rand.New(rand.NewPCG(2, 6)), 98, .05, .3, 1, model.MannerStride, 8)
	for i := range p.Moments {
		p.Moments[i].Apart = 500
	}
	p.Records = []model.Record{{Kind: model.Reuse, Use: at("loop", 5), Ending: model.Ending{Reuse: at("loop", 5)}, Weight: model.Weight{Observations: 400, Accesses: 1e6},
		Derived: model.Derived{Misses: []float64{2000, 500}, Reuses: 1e6}, Timing: model.Timing{Time: 1000, Exact: true}}}
	if m := verdict(p).Memory; m.Low > .05 || m.High < .05 || m.High > .3 {
		t.Errorf("%+v, want a band with 0.05, up to 0.3 at most", m)
	}
}

// TestVerdictUnwatched: where nobody watched, data may come from anywhere. The band has what each place would make of it, however
// many holds say the same, and no level is named.
func TestVerdictUnwatched(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for _, share := range []float64{.1, .5, .9} {
		p := program(rng, 20, share, .3, 1, model.MannerChase, 0)
		p.Comments = append(p.Comments, model.NothingWatched+", because: it was asked for")
		p.Records[0].Observations = 1000
		v := verdict(p)
		t.Logf("%v: %+v", share, v.Memory)
		if v.Memory.Low > share || v.Memory.High < share {
			t.Errorf("%+v, want a band with %v", v.Memory, share)
		}
		if l := level(p, nil); l != "" {
			t.Errorf("from %s", l)
		}
	}
}

// TestWaitingIsTheVerdicts: the records have what the verdict says, function by function: by their misses; where none is seen to
// miss, by what came back late; and what a function without any record waits is nobody's.
func TestWaitingIsTheVerdicts(t *testing.T) {
	p := program(rand.New(rand.NewPCG(4, 4)), 60, .6, .3, 1, model.MannerChase, 0)
	for i := range p.Moments {
		name := []string{"loop", "late", "unseen"}[i%3]
		p.Moments[i].Stack = at(name, 9)
	}
	hit := model.Record{Kind: model.Reuse, Use: at("loop", 5), Ending: model.Ending{Reuse: at("late", 7)}, Weight: model.Weight{Observations: 9, Accesses: 500},
		Derived: model.Derived{Misses: []float64{0, 0}, Reuses: 500}, Timing: model.Timing{Time: leastFar, Exact: true}}
	soon := hit
	soon.Time = 3
	p.Records = append(p.Records, hit, soon)
	v, w := verdict(p), Waiting(p)
	if w.Value != v.Memory.Value || w.Low != v.Memory.Low || w.High != v.Memory.High {
		t.Errorf("%+v, the verdict %+v", w, v.Memory)
	}
	for i, name := range []string{"loop", "late", ""} {
		want := 0.0
		if name != "" {
			want = v.functions[name] / 3
		}
		if got := w.Of(&p.Records[i]); math.Abs(got-want) > 1e-9 || name != "" && !(want > 0) {
			t.Errorf("record %d: %v, want %v", i, got, want)
		}
	}
}

// TestVerdictOfSmallLoop: where nothing but the look-up takes time, all samples fall behind it whether it waits or not. That
// says nothing, and what the windows let expect is believed: more samples don't pull it down.
func TestVerdictOfSmallLoop(t *testing.T) {
	for _, samples := range []int{20, 400} {
		p := program(rand.New(rand.NewPCG(5, 5)), samples, .99, .36, 1, model.MannerRandom, 0)
		for i := range p.Moments {
			m := &p.Moments[i]
			m.Wait, m.Near, m.Apart, m.Runs = model.WaitMemory, 280, 1100, 170
		}
		waits := .11 * costsOf(p).apart[2]
		want := waits / (waits + .17)
		if m := verdict(p).Memory; math.Abs(m.Value-want) > .15 || m.Low > want || m.High < want {
			t.Errorf("%d samples: %+v, want %.2f", samples, m, want)
		}
	}
}

// TestVerdictAtRoughRate: where the access rate is known within a factor of two, and with it whether data are in the second cache,
// the band has both, and no level is named.
func TestVerdictAtRoughRate(t *testing.T) {
	p := program(rand.New(rand.NewPCG(5, 7)), 100, .5, .3, 1, model.MannerRandom, 0)
	p.Clock = model.Clock{Unit: "nanoseconds", Rate: .1, RateLow: .05, RateHigh: .2}
	// As many accesses ago as the second cache has lines, each to another one.
	p.Records = nil
	for range 20 {
		p.Records = append(p.Records, model.Record{Kind: model.Reuse, Use: at("loop", 5), Ending: model.Ending{Reuse: at("loop", 5)},
			Weight: model.Weight{Observations: 5, Accesses: 1e5}, Timing: model.Timing{Time: 14000, Native: 140000}})
	}
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	rough := verdict(p).Memory
	named := level(p, nil)
	p.Clock.RateLow, p.Clock.RateHigh = .1, .1
	if sharp := verdict(p).Memory; rough.High-rough.Low <= sharp.High-sharp.Low || named != "" {
		t.Errorf("roughly %+v, from %q; well known %+v", rough, named, sharp)
	}
}

// TestVerdictByDistance: in a cache so large that its far end costs five times what its near end does, it matters how much data
// are used in between.
func TestVerdictByDistance(t *testing.T) {
	var got []float64
	for _, lines := range []uint64{8000, 400_000} {
		p := program(rand.New(rand.NewPCG(5, 8)), 60, .5, .3, 1, model.MannerRandom, 0)
		p.Caches[1].Size = 64 << 20
		p.CostsOn = []model.Cost{{Bytes: 16 << 10, Waits: 2, Streams: .5, Apart: .7}, {Bytes: 128 << 10, Waits: 10, Streams: .6, Apart: 2}, {Bytes: 512 << 10, Waits: 10, Streams: .6, Apart: 2},
			{Bytes: 32 << 20, Waits: 50, Streams: 2, Apart: 10}, {Bytes: 128 << 20, Waits: 90, Streams: 6, Apart: 15}}
		p.Costs = model.CostsByLevel(p.CostsOn, p.Caches)
		for i := range p.Moments {
			p.Moments[i].Wait, p.Moments[i].Near, p.Moments[i].Apart, p.Moments[i].Runs = model.WaitUnknown, 100, 1000, 300
		}
		p.Records = []model.Record{{Kind: model.Reuse, Use: at("loop", 5), Ending: model.Ending{Reuse: at("loop", 5)}, Weight: model.Weight{Observations: 200, Accesses: 1e6},
			Timing: model.Timing{Time: lines, Exact: true}}}
		if err := p.Derive(); err != nil {
			t.Fatal(err)
		}
		got = append(got, verdict(p).Memory.Value)
		if l := level(p, nil); l != "" && l != "L2" {
			t.Errorf("from %q", l)
		}
	}
	if got[0] > .6 || got[1] < .7 {
		t.Errorf("waits %.2f, want less where the data are near", got)
	}
}

// TestVerdictOfNextToNothing: what is as rare as a rounding error in the records is no cause for a verdict that is no number.
func TestVerdictOfNextToNothing(t *testing.T) {
	p := program(rand.New(rand.NewPCG(5, 9)), 60, .01, .3, 1, model.MannerRandom, 0)
	p.Records = []model.Record{{Kind: model.Reuse, Use: at("loop", 5), Ending: model.Ending{Reuse: at("loop", 5)}, Weight: model.Weight{Observations: 200, Accesses: 1e6},
		Derived: model.Derived{Misses: []float64{1e-9, 1e-10}, Reuses: 1e6}, Timing: model.Timing{Time: 1000, Exact: true}}}
	if m := verdict(p).Memory; !(m.Value >= 0 && m.Low == 0 && m.High < .3) {
		t.Errorf("%+v", m)
	}
}

// TestVerdictOfCrowdedCode: code that does not wait, and whose samples fall behind fetches a little more often than chance says, is
// not said to wait because there are thousands of them.
func TestVerdictOfCrowdedCode(t *testing.T) {
	for _, times := range []float64{1.15, 1.5} {
		p := program(rand.New(rand.NewPCG(6, 1)), 3000, 0, .3*times, 1, model.MannerGather, 0)
		for i := range p.Moments {
			if m := &p.Moments[i]; m.Near > 0 {
				m.Near = 333
			}
			p.Moments[i].Apart, p.Moments[i].Runs = 450, 250
		}
		p.Records = []model.Record{{Kind: model.Reuse, Use: at("loop", 5), Ending: model.Ending{Reuse: at("loop", 5)}, Weight: model.Weight{Observations: 200, Accesses: 1e6},
			Derived: model.Derived{Misses: []float64{0, 0}, Reuses: 1e6}, Timing: model.Timing{Time: 1000, Exact: true}}}
		if m := verdict(p).Memory; m.Value > .06 || m.Low > 0 || m.High > .3 {
			t.Errorf("%v times as often: %+v", times, m)
		}
	}
}

// TestVerdictOfCompetingLines: a column of a table whose rows are a power of two apart has few sets of the first two caches to
// lie in, and is not in them, though they are large enough. With rows a line longer it is.
func TestVerdictOfCompetingLines(t *testing.T) {
	waits := map[int64]float64{}
	for _, step := range []int64{8192, -8192, 8192 + 64} {
		p := program(rand.New(rand.NewPCG(6, 2)), 60, .5, .3, 1, model.MannerStride, step)
		p.Caches = []model.Cache{{Level: "L1d", Size: 48 << 10}, {Level: "L2", Size: 2 << 20}, {Level: "L3", Size: 64 << 20}}
		p.CostsOn = []model.Cost{{Bytes: 16 << 10, Waits: 2, Streams: .5, Apart: .7}, {Bytes: 64 << 10, Waits: 5, Streams: .5, Apart: .8}, {Bytes: 512 << 10, Waits: 5, Streams: .5, Apart: .8},
			{Bytes: 4 << 20, Waits: 30, Streams: 2, Apart: 7}, {Bytes: 128 << 20, Waits: 100, Streams: 5, Apart: 20}}
		p.Costs = model.CostsByLevel(p.CostsOn, p.Caches)
		for i := range p.Moments {
			p.Moments[i].Wait, p.Moments[i].Near, p.Moments[i].Apart, p.Moments[i].Runs = model.WaitUnknown, 100, 1500, 100
		}
		p.Records = []model.Record{{Kind: model.Reuse, Use: at("loop", 5), Ending: model.Ending{Reuse: at("loop", 5)}, Weight: model.Weight{Observations: 200, Accesses: 1e6},
			Timing: model.Timing{Time: 3000, Exact: true}}}
		if err := p.Derive(); err != nil {
			t.Fatal(err)
		}
		a := Analyze(p)
		waits[step] = a.Verdict.Memory.Value
		if want := map[bool]string{true: "L2", false: "L3"}[step == 8256]; a.Verdict.Level != want {
			t.Errorf("steps of %d: from %q, want %s", step, a.Verdict.Level, want)
		}
	}
	if waits[8192] < .8 || waits[-8192] < .8 || waits[8256] > .6 {
		t.Errorf("waits %v, want over 0.8 and below 0.6", waits)
	}
}

// TestVerdictBySlowdown: where samples fall may say little of how much is waited for. A program that makes a quarter of the accesses that its
// code makes with all lines near waits three quarters of its time; one that makes as many does not.
func TestVerdictBySlowdown(t *testing.T) {
	for _, c := range []struct {
		share, low, high, most float64
	}{{.75, .55, .87, .5}, {0, 0, .3, .4}} {
		p := program(rand.New(rand.NewPCG(1, 11)), 30, c.share, .7, 1, model.MannerRandom, 0)
		before := verdict(p).Memory
		p.Clock.WaitsLow, p.Clock.WaitsHigh, p.Clock.WaitsError = c.low, c.high, .27
		m := verdict(p).Memory
		t.Logf("%v: %+v, without %+v", c.share, m, before)
		if m.Low > c.share || m.High < c.share || m.High-m.Low > c.most || m.High-m.Low > before.High-before.Low+.01 {
			t.Errorf("%+v, without %+v, want %v", m, before, c.share)
		}
		// Many functions share what is known of all.
		for i := range p.Moments {
			p.Moments[i].Stack = at([]string{"one", "two", "three", "four"}[i%4], 9)
		}
		for range 2 {
			p.Moments = append(p.Moments, p.Moments...)
		}
		if m := verdict(p).Memory; m.Low > c.share+.01 || m.High < c.share {
			t.Errorf("of four functions: %+v, want %v", m, c.share)
		}
	}
}
