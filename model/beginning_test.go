package model

import (
	"math/rand/v2"
	"testing"
)

// Reuses of one time, half of them in loops over 20 blocks and half in loops over
// 300, mixed within the epochs: no function of the time tells them apart. What was counted
// ahead of each does: the first 255 accesses of a window touch 20 different
// blocks in the small loop and 255 in the large one.
func TestBeginningTellsReusesApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(81, 1))
	const time, after = 1000, 254
	p := &Profile{Block: 64, BinsPerOctave: 10}
	for range 2000 {
		small := rng.IntN(2) == 0
		r := Record{Kind: Reuse, Timing: Timing{Time: time}, Lookahead: Lookahead{After: after, Distinct: 21}, Weight: Weight{Observations: 1, Accesses: 1}}
		if !small {
			r.Distinct = 255
		}
		p.Records = append(p.Records, r)
	}
	// Others of their surroundings: most accesses are to a block used 20 ago.
	for range 20000 {
		p.Records = append(p.Records, Record{Kind: Reuse, Timing: Timing{Time: 20, Exact: true}, Lookahead: Lookahead{Distinct: 20}, Weight: Weight{Observations: 1, Accesses: 1}})
	}
	with, err := p.Stacks(LogBins(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	var mean [2]float64
	var n [2]float64
	for i := range p.Records[:2000] {
		r := &p.Records[i]
		k := 0
		if r.Distinct == 255 {
			k = 1
		}
		d, _ := r.MeanDistance()
		mean[k] += d / 64
		n[k]++
	}
	// The rest of the window, 745 accesses, has the same for both.
	small, large := mean[0]/n[0], mean[1]/n[1]
	near(t, "difference of the distances", large-small, 234, 1e-6)
	if small < 20 || large < 254 {
		t.Errorf("mean distances %v and %v are less than what was counted", small, large)
	}
	if got := with.Total(); got != 22000 {
		t.Errorf("total %v", got)
	}
	for i := range p.Records {
		p.Records[i].After = 0
		if !p.Records[i].Exact {
			p.Records[i].Distinct = 0
		}
	}
	without, err := p.Stacks(LogBins(1))
	if err != nil {
		t.Fatal(err)
	}
	// Without it the two are one peak between.
	if a, err := Accuracy(with, without); err != nil || a > 0.96 {
		t.Errorf("accuracy of one by the other %v, %v", a, err)
	}
}

// A beginning in which as much was counted as the model expects changes nothing of the
// mean, and nothing of the spread but what was in the beginning.
func TestBeginningAsExpected(t *testing.T) {
	h := NewHist(LogBins(10))
	rng := newRand(t, 82)
	for range 5000 {
		h.Add(1+uint64(rng.ExpFloat64()*300), 1)
	}
	h.Cold = 500
	x, err := NewTimeLocal([]Epoch{{Length: 1e6, Times: h}})
	if err != nil {
		t.Fatal(err)
	}
	c, v := x.local[0].moments(100)
	for i := h.Bins.Index(200); i < h.Bins.Index(3000); i++ {
		var plain, begun spread
		x.spreads(0, i, beginning{}, func(p *spread, _ float64) { plain = *p })
		begun = plain
		begun.begin(c, c, v)
		near(t, "from", begun.c0, plain.c0, 1e-9)
		near(t, "to", begun.c1, plain.c1, 1e-9)
		near(t, "variance", begun.v, plain.v-v, 1e-9)
	}
	// None of what was counted is lost, however late the reuse is not.
	s := spread{c0: 90, c1: 95, v: 4, least: 1, most: 120}
	s.begin(110, 100, 10)
	if s.c0 < 110 || s.c1 < 110 || s.v != 0 || s.below(110) != 0 || s.below(112) != 1 {
		t.Errorf("%+v", s)
	}
}
