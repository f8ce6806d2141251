package model

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Clusters of eight whose members are drawn together with probability alike
// have a correlation of alike within, and so the effect 1 + 7 alike.
func TestDesignEffect(t *testing.T) {
	for _, alike := range []float64{0, 0.2, 0.5, 1} {
		r := rand.New(rand.NewPCG(7, 1))
		var got []float64
		for range 20 {
			var clusters [][]Clustered
			for range 400 {
				one := r.IntN(2)
				var c []Clustered
				for range 8 {
					v := r.IntN(2)
					if r.Float64() < math.Sqrt(alike) {
						v = one
					}
					c = append(c, Clustered{uint64(1 + 1000*v), 1})
				}
				clusters = append(clusters, c)
			}
			got = append(got, DesignEffect(clusters))
		}
		var mean float64
		for _, v := range got {
			mean += v / float64(len(got))
		}
		if want := 1 + 7*alike; math.Abs(mean/want-1) > 0.06 {
			t.Errorf("alike %.1f: %.3f on average, want %.1f", alike, mean, want)
		}
	}
}

func TestDesignEffectFew(t *testing.T) {
	two := []Clustered{{1, 1}, {math.MaxUint64, 3}}
	for _, c := range []struct {
		name     string
		clusters [][]Clustered
		want     float64
	}{
		{"nothing", nil, 1},
		{"too few to tell", [][]Clustered{two, two}, 4},
		{"one each", [][]Clustered{{{1, 1}}}, 1},
		{"all the same time", repeat(20, []Clustered{{5, 1}, {5, 1}}), 2},
	} {
		if got := DesignEffect(c.clusters); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Holds of four observations of one time tell as much as one each, and the same as a record of all four.
func TestSetDesignEffect(t *testing.T) {
	of := func(hold uint64, n int64, squares float64) Record {
		return Record{Kind: Reuse, Timing: Timing{Time: 1 + 1000*(hold%2), Exact: true}, Cluster: Cluster{Hold: hold},
			Weight: Weight{Observations: n, Accesses: float64(n), Squares: squares}}
	}
	var single, summed, merged, alone []Record
	for hold := range uint64(400) {
		for range 4 {
			single = append(single, of(hold+1, 1, 0))
		}
		summed = append(summed, of(hold+1, 4, 0))
		merged = append(merged, of(0, 4, 8))
		alone = append(alone, of(0, 4, 0))
	}
	for _, c := range []struct {
		name    string
		records []Record
		want    float64
	}{
		{"one by one", single, 4},
		{"summed", summed, 4},
		{"merged, squares of twice as many as there are", merged, 2},
		{"each its own hold", alone, 3}, // what it had
	} {
		p := &Profile{Records: c.records, DesignEffect: 3}
		if p.SetDesignEffect(); math.Abs(p.DesignEffect/c.want-1) > 0.01 {
			t.Errorf("%s: %v, want %v", c.name, p.DesignEffect, c.want)
		}
	}
}

func repeat(n int, c []Clustered) (out [][]Clustered) {
	for range n {
		out = append(out, c)
	}
	return out
}
