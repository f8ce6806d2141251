package why

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// A sample behind an access of any step is one sample, however many steps the place makes.
func TestBehindIsCountedOnce(t *testing.T) {
	p := program(rand.New(rand.NewPCG(1, 2)), 80, .9, .1, 1, model.MannerStride, 8192)
	p.Touches[0].Use = at("loop", 9)
	for _, step := range []int64{-8192, 12288, 20480} {
		more := p.Touches[0]
		more.Stride = step
		p.Touches = append(p.Touches, more)
	}
	a := Analyze(p)
	if len(a.Findings) != 1 || a.Findings[0].Rule != "stride" {
		t.Fatalf("%+v", a.Findings)
	}
	want := int64(0)
	for _, m := range p.Moments {
		if m.Wait == model.WaitMemory {
			want += m.Samples
		}
	}
	if got := behind(a.Spots); got != want || len(a.Spots) != 4 {
		t.Errorf("%d of %d spots, want %d", got, len(a.Spots), want)
	}
	if got := a.Findings[0].Title; !strings.Contains(got, "in large steps, most often of 8.00KiB:") {
		t.Error(got)
	}
}

// What is fetched elsewhere in the function is no member of a finding's data.
func TestMembersAreOfTheData(t *testing.T) {
	p := program(rand.New(rand.NewPCG(3, 4)), 80, .8, .1, 1, model.MannerRandom, 0)
	p.Touches[0].Member = "key of struct slot"
	other := p.Touches[0]
	other.Use, other.Data, other.Member = at("loop", 6), &model.Data{Name: "list"}, "next of struct node"
	other.Fetches /= 100
	p.Touches = append(p.Touches, other)
	a := Analyze(p)
	if len(a.Findings) == 0 {
		t.Fatal("no finding")
	}
	if said := strings.Join(a.Findings[0].Evidence, "\n"); !strings.Contains(said, "fetched there: key of struct slot") || strings.Contains(said, "next") {
		t.Error(said)
	}
}

// The verdict says that it is without what threads take from each other.
func TestVerdictBesidesSharing(t *testing.T) {
	p := program(rand.New(rand.NewPCG(5, 6)), 80, 0, .1, 1, model.MannerRandom, 0)
	if a := Analyze(p); strings.Contains(a.Says, "take from each other") {
		t.Error(a.Says)
	}
	whole := *p
	whole.Records = append([]model.Record{{Kind: model.Reuse, Stack: model.StackPrivate, Use: at("count", 5), Ending: model.Ending{Reuse: at("count", 5)},
		Weight: model.Weight{Observations: 90, Accesses: 900}, Timing: model.Timing{Time: 4, Exact: true}}}, model.Record{Kind: model.FalseSharing, Stack: model.StackPrivate, Use: at("count", 5), TID: 1,
		Ending: model.Ending{Reuse: at("other", 7), Rare: &model.Words{EndTID: 2, Address: 64, Written: 72}}, Weight: model.Weight{Observations: 40, Accesses: 50}})
	whole.AddCount(model.JoinedHolds, 90)
	if a := AnalyzeWith(p, &whole); !strings.HasSuffix(a.Says, "; on top of it comes what threads take from each other, at count count.c:5") {
		t.Error(a.Says)
	}
}

// Where nothing is known of time, the reason is the profile's own, and what is too little known says what would tell.
func TestWhyNothingIsFound(t *testing.T) {
	exact := &model.Profile{Block: 64, ExactDistances: true, Records: []model.Record{{Kind: model.Reuse, Use: at("loop", 5)}}}
	if got := Analyze(exact).Says; !strings.Contains(got, "counts accesses, not time: rdx run") {
		t.Error(got)
	}
	if got := Analyze(&model.Profile{}).Says; !strings.Contains(got, "nothing was observed: no sample came; profile longer") {
		t.Error(got)
	}
	stopped := &model.Profile{Comments: []string{model.NoSample + "process 7 is stopped"}}
	if got := Analyze(stopped).Says; !strings.Contains(got, "nothing was observed: process 7 is stopped") || strings.Contains(got, "longer") {
		t.Error(got)
	}
	sampled := &model.Profile{Block: 64, Records: exact.Records}
	if got := Analyze(sampled).Says; !strings.Contains(got, "--source clock has them") {
		t.Error(got)
	}
	wide := &Answer{Says: "perhaps", Verdict: Verdict{Known: true, Memory: Share{.41, 0, .77}}}
	if got := strings.Join(strings.Fields(wide.Text()), " "); !strings.Contains(got, "No findings: that it waits for 0% to 77% of its time is too wide a band for any; profile longer, or with more --overhead.") {
		t.Error(got)
	}
}

// What would be gained is told of a miss ratio that is known, and not where it is a bound or a guess.
func TestGivesIsOfKnownRatios(t *testing.T) {
	for n, want := range map[int]bool{2000: true, 2: false} {
		p := &model.Profile{Block: 64, BinsPerOctave: 16, Caches: []model.Cache{{Level: "L1d", Size: 32 << 10, Line: 64}}, Clock: model.Clock{Unit: "accesses", Rate: 1}}
		for range n {
			p.Records = append(p.Records, model.Record{Kind: model.Reuse, TID: 1, Use: at("loop", 5), Ending: model.Ending{Reuse: at("loop", 5)},
				Weight: model.Weight{Observations: 1, Accesses: 1e6}, Timing: model.Timing{Native: 1 << 20, Time: 1 << 20}})
		}
		if err := p.Derive(); err != nil {
			t.Fatal(err)
		}
		if got := gives(p, report.Pairs(p, farMisses(p))[0]); (got != "") != want {
			t.Errorf("%d observations: %q", n, got)
		}
	}
}

// What the verdict says goes with all of its band.
func TestVerdictSays(t *testing.T) {
	for _, c := range []struct {
		value, low, high float64
		says             string
	}{
		{.15, 0, .49, "perhaps bound by memory, 6 samples can't tell"},
		{.05, .01, .45, "perhaps bound by memory, 6 samples can't tell"},
		{.5, .15, .8, "perhaps bound by memory, 6 samples can't tell"},
		{.26, .13, .49, "in part bound by memory"},
		{.3, .05, .38, "in part bound by memory"},
		{.6, .35, .8, "bound by memory"},
		{.1, 0, .2, "not bound by memory"},
		{.08, .02, .3, "hardly bound by memory"},
	} {
		var a Answer
		a.Verdict.Known, a.Verdict.Samples = true, 6
		a.Verdict.Memory.Value, a.Verdict.Memory.Low, a.Verdict.Memory.High = c.value, c.low, c.high
		if got := a.says(); !strings.HasPrefix(got, c.says+":") {
			t.Errorf("%v [%v, %v]: %s", c.value, c.low, c.high, got)
		}
	}
}
