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

func repeat(n int, c []Clustered) (out [][]Clustered) {
	for range n {
		out = append(out, c)
	}
	return out
}
