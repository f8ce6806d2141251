package model

import (
	"math"
	"testing"
)

// The half-line extrapolation where the answer is known: words of a line used
// independently of each other, and always together.
func TestHalfLine(t *testing.T) {
	near(t, "independent", HalfLineSurvival(.5, math.Exp(-.4), math.Exp(-.2)), .5*math.Exp(-.8), 1e-12)
	near(t, "together", HalfLineSurvival(.5, .3, .3), .5*.3, 1e-12)
	near(t, "pair never touched", HalfLineSurvival(1, .5, 1), .25, 1e-12)
	near(t, "nothing touched", HalfLineSurvival(.7, 1, 1), .7, 1e-12)
	near(t, "all touched", HalfLineSurvival(.7, 0, .1), 0, 0)
}

// Lines whose words are used independently of each other, always together, or
// in between; bursts that end early; watches that are cut off at any age and
// pairs that are given up soon after the half line was hit. The histogram of
// the whole lines must come out.
func TestHalfLineProfile(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rng := newRand(t, 43)
	const burst, n, scale = 63, 60000, 3000.0
	for _, c := range []struct {
		name      string
		pairShare float64 // share of lines whose words are used together
		early     float64 // share of bursts that end early
		cut       float64 // rate of giving up, in units of the words' rate
	}{
		{"independent", 0, 0, 0},
		{"together", 1, 0, 0},
		{"independent, cut off", 0, 0, 1},
		{"together, cut off", 1, 0, 1},
		{"early ends, cut off", 0, 0.2, 1},
	} {
		p := &Profile{Block: 64, BinsPerOctave: 16}
		truth := NewHist(LogBins(16))
		for range n {
			pairShare := rng.Float64() < c.pairShare
			var at [8]float64 // when each word of the line is next touched
			for w := range at {
				at[w] = 1 + math.Floor(rng.ExpFloat64()*scale)
				if pairShare {
					at[w] = at[0]
				}
			}
			first := func(words int) uint64 {
				m := at[0]
				for _, x := range at[1:words] {
					m = min(m, x)
				}
				return uint64(m)
			}
			truth.Add(first(8), 1)
			after := uint64(burst)
			if rng.Float64() < c.early {
				after = rng.Uint64N(burst)
			}
			r := Record{Kind: Reuse, Weight: Weight{Observations: 1, Accesses: 1}, Timing: Timing{Exact: true, Time: first(8)}}
			if r.Time > after {
				until, pairUntil := uint64(1<<40), uint64(1<<40)
				if c.cut > 0 {
					until = after + uint64(rng.ExpFloat64()*scale/c.cut) + 1
					pairUntil = until
				}
				end := func(at, until uint64) (Kind, uint64) {
					if at <= until {
						return Reuse, at
					}
					return Censored, until
				}
				r = Record{Weight: Weight{Observations: 1, Accesses: 1}, HalfLine: HalfLine{Half: true}, Lookahead: Lookahead{After: after}}
				r.Kind, r.Time = end(first(4), until)
				r.Pair, r.PairTime = end(first(2), pairUntil)
			}
			p.Records = append(p.Records, r)
		}
		got, err := p.Times()
		if err != nil {
			t.Fatal(err)
		}
		b := LogBins(2)
		a, err := Accuracy(truth.Rebin(b), got.Rebin(b))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "total", got.Total(), n, 1e-6)
		t.Logf("%s: accuracy %.4f", c.name, a)
		if a < 0.98 {
			t.Errorf("%s: accuracy %.4f", c.name, a)
		}
	}
}

// What was counted is not estimated: a reuse with one other block between is at
// distance 1 in the histogram, and misses in a cache of one block.
func TestCountedDistance(t *testing.T) {
	p := &Profile{Block: 64, BinsPerOctave: 16, Caches: []Cache{{Level: "C1", Size: 64}, {Level: "C2", Size: 128}}, Records: []Record{
		{Kind: Reuse, Timing: Timing{Exact: true, Time: 100}, Lookahead: Lookahead{Distinct: 2}, Weight: Weight{Observations: 3, Accesses: 30}},
		{Kind: Reuse, Timing: Timing{Exact: true, Time: 100}, Lookahead: Lookahead{Distinct: 61}, Weight: Weight{Observations: 1, Accesses: 10}},
	}}
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	r := &p.Records[0]
	near(t, "reuses", r.Reuses, 30, 1e-9)
	near(t, "distance", r.Distance, 3*64, 1e-9)
	near(t, "misses of one block", r.Misses[0], 30, 1e-9)
	near(t, "misses of two", r.Misses[1], 0, 0)
	h, err := p.Stacks(LogBins(16))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "at 1", h.W[h.Bins.Index(1)], 30, 1e-9)
	near(t, "at 60", h.W[h.Bins.Index(60)], 10, 1e-9)
	near(t, "total", h.Total(), 40, 1e-9)
	s := p.Shares()
	near(t, "exact share", s.Exact, 1, 1e-9)
	near(t, "unseen", s.Unseen, 0, 1e-9)
}
