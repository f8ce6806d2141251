package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

// A finding is of the lines that pairs have in common, names the members of structs, those taken most first, and what is taken hardly ever
// is none.
func TestSharingFindings(t *testing.T) {
	at := func(function string) []*model.Location {
		return []*model.Location{{Address: 1, Lines: []model.Line{{Function: function, File: "a.c", Line: 7}}}}
	}
	record := func(kind model.Kind, reader, read, writer, written string, address, wrote uint64, accesses float64) model.Record {
		return model.Record{Kind: kind, Stack: model.StackPrivate, Use: at(reader), TID: 1, Weight: model.Weight{Observations: 40, Accesses: accesses},
			Ending: model.Ending{Reuse: at(writer), Rare: &model.Words{EndTID: 2, Address: address, Written: wrote, Member: read, WrittenMember: written}}}
	}
	p := &model.Profile{Duration: time.Second, Records: []model.Record{
		{Kind: model.Reuse, Stack: model.StackPrivate, Use: at("work"), Weight: model.Weight{Observations: 1000, Accesses: 1e6}},
		record(model.FalseSharing, "left", "x of struct pair", "right", "y of struct pair", 0x1000, 0x1008, 9000),
		record(model.FalseSharing, "right", "y of struct pair", "left", "x of struct pair", 0x1008, 0x1000, 9000),
		record(model.FalseSharing, "third", "z of struct far", "fourth", "a of struct far", 0x3000, 0x3008, 3000),
		record(model.FalseSharing, "third", "z of struct far", "fourth", "a of struct far", 0x500, 0x508, 3000), // lines before and behind the first's
		record(model.TrueSharing, "seldom", "", "seldom", "", 0x2000, 0x2000, 20),
	}}
	p.Records[0].Ending.Reuse = at("work")
	found := SharingFindings(p)
	if len(found) != 2 {
		t.Fatalf("%d findings, want 2", len(found))
	}
	if f := found[0]; f.Most || math.Abs(f.Rate-18000) > 1 {
		t.Errorf("%+v", f)
	}
	p.Duration = time.Microsecond
	if f := SharingFindings(p)[0]; !f.Most || f.Rate != mostTransfers || !strings.Contains(f.Text, "more than can be: it moves up to") {
		t.Errorf("%+v", f)
	}
	for i, want := range []string{"x and y of struct pair (data): ", "a and z of struct far (data): "} {
		if !strings.HasPrefix(found[i].Text, want) {
			t.Errorf("%q, want it to begin with %q", found[i].Text, want)
		}
	}
}
