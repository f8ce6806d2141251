package main

import (
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// Of nothing no miss ratio is claimed; the reader is told why there is nothing, and what
// to do.
func TestOverviewOfNothing(t *testing.T) {
	for want, c := range map[string][]model.Count{
		"ran for only 4ms of the time, it waits":            {{Name: model.CPUTarget, N: 4e6}},
		"--follow profiles them, too":                       {{Name: model.CPUTarget, N: 4e6}, {Name: model.CPUChildren, N: 4e9}},
		"all 3 samples were lost, most to \"use not seen\"": {{Name: model.CPUTarget, N: 4e6}, {Name: model.LostBecause.Of(model.UseNotSeen), N: 3}},
		"a larger --overhead":                               {{Name: model.CPUTarget, N: 4e9}},
	} {
		p := &model.Profile{Block: 8, Caches: []model.Cache{{Level: "L2", Size: 1 << 20}}, Counts: c}
		var b strings.Builder
		if err := report.WriteOverview(&b, report.Survey(p)); err != nil {
			t.Fatal(err)
		}
		out := strings.Join(strings.Fields(b.String()), " ")
		if !strings.Contains(out, want) || strings.Contains(out, "predicted to miss") || !strings.Contains(out, "nothing observed") {
			t.Errorf("want %q in:\n%s", want, b.String())
		}
	}
}

// Why code has no name, and what to do about that, comes before what is said of figures; only where no reason is known is it
// the usual one.
func TestOverviewOfUnnamedCode(t *testing.T) {
	use := []*model.Location{{Address: 1}}
	p := &model.Profile{Block: 8, BinsPerOctave: 16, Records: []model.Record{{Kind: model.Reuse, Use: use, Ending: model.Ending{Reuse: use}, Timing: model.Timing{Time: 1, Native: 1}, Weight: model.Weight{Observations: 1, Accesses: 10}}}}
	for comment, want := range map[string]string{
		"": "! 100.0% of the uses have no function name: install debug packages, or build with -g ! only 1 observation",
		"symbols: symbolize generated code of process 7: 2 addresses without a name: there is no perf map": "! 100.0% of the uses have no function name: generated code of process 7: 2 addresses without a name: there is no perf map ! only 1 observation",
	} {
		p.Comments = []string{comment}
		var b strings.Builder
		if err := report.WriteOverview(&b, report.Survey(p)); err != nil {
			t.Fatal(err)
		}
		if out := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(out, want) {
			t.Errorf("want %q in:\n%s", want, b.String())
		}
	}
}

// What was lost for a reason that more time does not help is not answered by advice to
// take more; and blocks that were not kept are no samples.
func TestOverviewAdvice(t *testing.T) {
	text := func(p *model.Profile) string {
		var b strings.Builder
		if err := report.WriteOverview(&b, report.Survey(p)); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	out := text(&model.Profile{Block: 8, Counts: []model.Count{{Name: model.CPUMasked, N: 4e9}, {Name: model.LostBecause.Of(model.SignalsBlocked), N: 3}}})
	if !strings.Contains(out, `most to "`+string(model.SignalsBlocked)+`"`) || !strings.Contains(out, "--interrupt samples them") || strings.Contains(out, "profile longer") {
		t.Errorf("signals blocked: %s", out)
	}
	use := []*model.Location{{Address: 1}}
	p := &model.Profile{Block: 8, BinsPerOctave: 16, Records: []model.Record{{Kind: model.Reuse, Use: use, Ending: model.Ending{Reuse: use}, Timing: model.Timing{Time: 1, Native: 1}, Weight: model.Weight{Observations: 10, Accesses: 10}}},
		Counts: []model.Count{{Name: model.BlocksAllocated, N: 1000}, {Name: model.BlocksNotKept, N: 400}}}
	if out := text(p); !strings.Contains(out, "400 of 1000 allocated blocks were not kept") || !strings.Contains(out, "0 lost") {
		t.Errorf("blocks not kept: %s", out)
	}
}
