package model

import "testing"

func TestQuotable(t *testing.T) {
	caches := []Cache{{Level: "L1d"}, {Level: "L2"}, {Level: "L3"}}
	for _, c := range []struct {
		misses []float64
		want   int
	}{
		{[]float64{500, 100, 50}, 2},
		{[]float64{500, 100, 9}, 1}, // 9 in 1000 is chance
		{[]float64{9, 9, 9}, -1},
		{[]float64{0, 0, 0}, -1},
	} {
		p := Profile{Caches: caches, Records: []Record{
			{Weight: Weight{Observations: 1000, Accesses: 1000}, Derived: Derived{Misses: c.misses}},
			{Kind: Lost, Weight: Weight{Observations: 1e6, Accesses: 1e6}},
		}}
		if got := p.Quotable(); got != c.want {
			t.Errorf("misses %v: cache %d, want %d", c.misses, got, c.want)
		}
	}
	if got := (&Profile{Caches: caches}).Quotable(); got != -1 {
		t.Errorf("empty profile: cache %d, want none", got)
	}
}
