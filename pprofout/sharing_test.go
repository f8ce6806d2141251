package pprofout

import (
	"bytes"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// Who ended an observation, in which stack and where, survives the file.
func TestRoundTripSharing(t *testing.T) {
	p := sampleProfile()
	base := p.Records[0]
	for _, r := range []model.Record{
		{Kind: model.Invalidated, Stack: model.StackPrivate, TID: 71, Ending: model.Ending{Rare: &model.Words{EndTID: 72, Address: 0x7f0000001008, Written: 0x7f0000001008}}},
		{Kind: model.FalseSharing, Stack: model.StackPrivate, TID: 71, Ending: model.Ending{Rare: &model.Words{EndTID: 72, Address: 0x7f0000001008, Written: 0x7f0000001030}}},
		{Kind: model.Reuse, Stack: model.StackShared, TID: 71, Ending: model.Ending{Rare: &model.Words{EndTID: 73, Address: 0x7f0000001008, Written: 0x7f0000001008}}},
		{Kind: model.Reuse, Stack: model.StackShared, TID: 71},
	} {
		r.Use, r.Reuse, r.Observations, r.Accesses, r.Time, r.Native = base.Use, base.Reuse, 1, 1e6, base.Time, base.Native
		r.Misses = make([]float64, len(p.Caches))
		p.Records = append(p.Records, r)
	}
	var buf bytes.Buffer
	if err := Write(&buf, p); err != nil {
		t.Fatal(err)
	}
	back, err := Read(&buf)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range p.Records[len(p.Records)-4:] {
		found := false
		for _, r := range back.Records {
			found = found || r.Kind == want.Kind && r.Stack == want.Stack && r.TID == want.TID && r.Words() == want.Words() && r.Time == want.Time && r.Accesses == want.Accesses &&
				len(r.Use) == len(want.Use) && len(r.Reuse) == len(want.Reuse)
		}
		if !found {
			t.Errorf("%v of thread %d by %d in the %v stack did not come back", want.Kind, want.TID, want.Words().EndTID, want.Stack)
		}
	}
}
