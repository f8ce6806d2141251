package model

import (
	"math"
	"slices"
	"testing"
)

func TestCover(t *testing.T) {
	w := map[string]float64{"a": 50, "b": 25, "c": 15, "d": 5, "e": 5, "none": 0}
	for _, c := range []struct {
		share float64
		want  []string
	}{
		{0, nil}, {0.5, []string{"a"}}, {0.51, []string{"a", "b"}}, {0.75, []string{"a", "b"}}, {0.9, []string{"a", "b", "c"}},
		{0.95, []string{"a", "b", "c", "d"}}, {1, []string{"a", "b", "c", "d", "e"}},
	} {
		if got := Cover(w, c.share); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.share, got, c.want)
		}
	}
	third := map[int]float64{1: 0.1, 2: 0.1, 3: 0.1}
	if got := Cover(third, 1); len(got) != 3 {
		t.Errorf("all of three: %v", got)
	}
	if got := Cover(map[int]float64{}, 0.9); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// A loop over 100 lines and one over 10000, with as many accesses: in a cache
// of 1000 lines only the long one misses, in one of 20000 neither, and the
// cold accesses always.
func TestMissWeights(t *testing.T) {
	at := func(a uint64) []*Location { return []*Location{{Address: a}} }
	p := &Profile{Block: 64, BinsPerOctave: 16, Records: []Record{
		{Kind: Reuse, Use: at(1), Ending: Ending{Reuse: at(2)}, Timing: Timing{Time: 100}, Weight: Weight{Observations: 500, Accesses: 500}},
		{Kind: Reuse, Use: at(3), Ending: Ending{Reuse: at(4)}, Timing: Timing{Time: 20_000}, Weight: Weight{Observations: 480, Accesses: 480}},
		{Kind: Cold, Use: at(5), Weight: Weight{Observations: 20, Accesses: 20}},
		{Kind: Lost, Use: at(6), Weight: Weight{Observations: 1000, Accesses: 1000}},
	}}
	key := func(s []*Location) uint64 { return s[0].Address }
	w, err := MissWeights(p, 1000*64, key)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(w[4]-480) > 1 || math.Abs(w[5]-20) > 1e-9 || w[2] > 1 || w[1]+w[3]+w[6] != 0 {
		t.Errorf("64000 bytes: %v", w)
	}
	if w, err = MissWeights(p, 20_000*64, key); err != nil || w[4] > 1 || math.Abs(w[5]-20) > 1e-9 {
		t.Errorf("1.28 MB: %v, %v", w, err)
	}
	if p.Records[0].Misses != nil || p.Caches != nil {
		t.Error("the profile was changed")
	}
	if _, err := MissWeights(p, 63, key); err == nil {
		t.Error("a cache smaller than a block: no error")
	}
}
