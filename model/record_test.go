package model

import "testing"

// A record has no part that its kind does not have.
func TestRecordParts(t *testing.T) {
	timing, end := Timing{Time: 3}, Ending{Reuse: []*Location{{Address: 1}}}
	for k := range NumKinds {
		if k != Cold && k != Lost && k != UnknownSharing && k.Parts() == (Parts{}) {
			t.Errorf("%v has no part: is it in the table?", k)
		}
		for _, c := range []struct {
			r    Record
			good bool
		}{
			{Record{Kind: k}, true},
			{Record{Kind: k, Timing: timing}, k.Parts().Timed},
			{Record{Kind: k, Lookahead: Lookahead{After: 1}}, k.Parts().Timed},
			{Record{Kind: k, HalfLine: HalfLine{Half: true}}, k.Parts().Timed},
			{Record{Kind: k, Ending: end}, k.Parts().Ended},
			{Record{Kind: k, Weight: Weight{Observations: 1}, Cluster: Cluster{Hold: 2}, Derived: Derived{Reuses: 3}}, true},
		} {
			if err := c.r.Check(); (err == nil) != c.good {
				t.Errorf("%+v: %v", c.r, err)
			}
		}
	}
	if (NumKinds).Parts() != (Parts{}) {
		t.Error("an unknown kind has parts")
	}
}

// Copies of a record have words of their own once they are changed.
func TestRecordWords(t *testing.T) {
	var r Record
	r.SetWords(Words{})
	if r.Rare != nil || r.Words() != (Words{}) || r.Member() != "" {
		t.Errorf("nothing takes memory: %+v", r)
	}
	r.SetWords(Words{EndTID: 2, Member: "hits"})
	other := r
	w := other.Words()
	w.Member, w.Written = "misses", 8
	other.SetWords(w)
	if r.Words() != (Words{EndTID: 2, Member: "hits"}) || other.Words() != w || other.Member() != "misses" {
		t.Errorf("%+v and %+v", r.Words(), other.Words())
	}
}
