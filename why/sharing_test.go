package why

import (
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// TestSharingOfAStack: what is told of lines is no outcome of an access, and is left out of a profile of one stack.
func TestSharingOfAStack(t *testing.T) {
	whole := &model.Profile{Block: 64, Caches: []model.Cache{{Level: "L1d", Size: 32 << 10}}, Records: []model.Record{
		{Kind: model.Reuse, Stack: model.StackPrivate, Use: at("count", 5), Ending: model.Ending{Reuse: at("count", 5)}, Weight: model.Weight{Observations: 90, Accesses: 900}, Timing: model.Timing{Time: 4, Exact: true}},
		{Kind: model.FalseSharing, Stack: model.StackPrivate, Use: at("count", 5), TID: 1, Ending: model.Ending{Reuse: at("other", 7), Rare: &model.Words{EndTID: 2, Address: 64, Written: 72}}, Weight: model.Weight{Observations: 40, Accesses: 180}},
		{Kind: model.TrueSharing, Stack: model.StackPrivate, Use: at("seldom", 5), TID: 1, Ending: model.Ending{Reuse: at("other", 8), Rare: &model.Words{EndTID: 2, Address: 128, Written: 128}}, Weight: model.Weight{Observations: 40, Accesses: 2}},
	}}
	whole.AddCount(model.JoinedHolds, 90)
	p, err := report.OnStack(whole, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	a := AnalyzeWith(p, whole)
	if len(a.Findings) != 1 || a.Findings[0].Rule != "sharing" || !strings.Contains(a.Findings[0].Evidence[0], "20.0% of accesses") {
		t.Errorf("%+v", a.Findings)
	}
}

// Of several threads that nobody watched for what they take from each other it is said.
func TestUnwatchedThreads(t *testing.T) {
	record := func(tid int, accesses float64, stack model.StackKind) model.Record {
		return model.Record{Kind: model.Reuse, TID: tid, Stack: stack, Use: at("count", 5), Ending: model.Ending{Reuse: at("count", 5)}, Weight: model.Weight{Observations: 90, Accesses: accesses}, Timing: model.Timing{Time: 4, Exact: true}}
	}
	for _, c := range []struct {
		records []model.Record
		want    int
	}{
		{[]model.Record{record(1, 900, model.StackOwn), record(2, 800, model.StackOwn), record(3, 1, model.StackOwn)}, 2},
		{[]model.Record{record(1, 900, model.StackOwn), record(2, 1, model.StackOwn)}, 0},
		{[]model.Record{record(1, 900, model.StackPrivate), record(2, 900, model.StackShared)}, 0},
	} {
		a := Analyze(&model.Profile{Block: 64, Records: c.records})
		if a.Unwatched != c.want || strings.Contains(a.Text(), "was not watched") != (c.want > 0) {
			t.Errorf("%d, want %d: %s", a.Unwatched, c.want, a.Text())
		}
	}
}
