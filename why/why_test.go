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

// program has so many samples of CPU time in a loop, of which a share waits for data, in a manner; where it does not, as
// many instructions as chance says look as if.
func program(rng *rand.Rand, samples int, share, chance float64, manner model.Manner, step int64) *model.Profile {
	table := &model.Data{Name: "table"}
	p := &model.Profile{Block: 64, BinsPerOctave: 16, Caches: []model.Cache{{Level: "L1d", Size: 32 << 10}, {Level: "L2", Size: 1 << 20}},
		Costs:   []model.Cost{{Waits: 1.5, Streams: 0.8}, {Waits: 5, Streams: 1}, {Waits: 90, Streams: 6}},
		Touches: []model.Touch{{Use: at("loop", 5), Op: model.Load, Data: table, Manner: manner, Stride: step, Windows: int64(samples), Accesses: 1000, Fetches: 900, Used: 900 * 8}}}
	for range samples {
		m := model.Moment{Stack: at("loop", 9), Wait: model.WaitNo, Chance: int(100 * chance), Samples: 1, Nanoseconds: 1e6}
		if rng.Float64() < share || rng.Float64() < chance {
			m.Stack, m.Wait, m.Data, m.Manner, m.Stride = at("loop", 5), model.WaitMemory, table, manner, step
		}
		p.Moments = append(p.Moments, m)
	}
	return p
}

func TestVerdictOfKnownShares(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, chance := range []float64{0, .05, .3} {
		for _, share := range []float64{0, .2, .5, .9} {
			mean, held := 0.0, 0
			const times = 200
			for range times {
				v := verdict(program(rng, 60, share, chance, model.MannerChase, 0))
				if !v.Known {
					t.Fatalf("not known: %s", v.Why)
				}
				mean += v.Memory.Value / times
				if v.Memory.Low <= share && share <= v.Memory.High {
					held++
				}
			}
			if math.Abs(mean-share) > .04 || held < times*9/10 {
				t.Errorf("share %v, chance %v: %.3f on average, band holds it %d of %d times", share, chance, mean, held, times)
			}
		}
	}
}

// TestNothingStandsOut: six programs that do not wait.
func TestNothingStandsOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for i, p := range []*model.Profile{
		program(rng, 100, 0, 0, model.MannerStride, 8), program(rng, 100, 0, .02, model.MannerRandom, 0), program(rng, 40, .01, .01, model.MannerChase, 0),
		program(rng, 300, .03, .1, model.MannerGather, 0), program(rng, 9, 0, 0, model.MannerStride, 4096), program(rng, 500, .05, .05, model.MannerStride, 64),
	} {
		a := Analyze(p)
		if !a.Checked || len(a.Findings) > 0 || !strings.Contains(a.Text(), "Nothing stands out") {
			t.Errorf("program %d: %+v\n%s", i, a.Findings, a.Text())
		}
	}
}

func TestUnknownIsSaid(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	few := program(rng, leastSamples-1, 1, 0, model.MannerChase, 0)
	none := program(rng, 0, 1, 0, model.MannerChase, 0)
	lost := program(rng, 50, 1, 0, model.MannerChase, 0)
	for i := range lost.Moments {
		lost.Moments[i].Wait = model.WaitUnknown
	}
	for i, p := range []*model.Profile{few, none, lost, {}} {
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
		a := Analyze(program(rng, 80, .8, .1, c.manner, c.step))
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
	p := program(rand.New(rand.NewPCG(1, 1)), 40, 0, 0, model.MannerStride, 128)
	for i := range p.Moments {
		p.Moments[i].Streams = 250
	}
	p.Records = []model.Record{{Kind: model.Censored, Use: at("loop", 5), Weight: model.Weight{Observations: 5, Accesses: 100}, Derived: model.Derived{Misses: []float64{100, 100}}, Timing: model.Timing{Time: 9}}}
	a := Analyze(p)
	if len(a.Findings) != 1 || a.Findings[0].Rule != "split" || a.Verdict.Streams.Value < .5 {
		t.Errorf("%+v\n%s", a.Verdict, a.Text())
	}
}

func TestAnnotate(t *testing.T) {
	p := program(rand.New(rand.NewPCG(3, 1)), 40, 1, 0, model.MannerStride, 8192)
	s, err := Annotate(p, "src/loop.c", strings.Repeat("x\n", 12))
	if err != nil {
		t.Fatal(err)
	}
	if l := s.Lines[4]; l.Waits != 1 || l.Time != 1 || l.Stride != model.StrideLarger.String() || l.Step != 8192 || l.Used == nil || *l.Used != 8 {
		t.Errorf("line 5: %+v", l)
	}
	if text := s.Text(); !strings.Contains(text, "100.0% 100.0%  8/64 8192") {
		t.Error(text)
	}
	if _, err := Annotate(p, "other.c", "x"); err == nil || !strings.Contains(err.Error(), "loop.c") {
		t.Errorf("another file: %v", err)
	}
	if s, err = Annotate(p, "loop.c", "one line"); err != nil || len(s.Lines) != 1 {
		t.Errorf("a file cut short: %v", err)
	}
}
