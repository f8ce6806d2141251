package model

import (
	"math"
	"testing"
)

// Whatever a session records, its profile is derived: no weight comes out
// negative, and what is estimated adds up to what was observed.
func TestDeriveAnyRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rng := newRand(t, 61)
	long := func() uint64 { return uint64(math.Exp2(rng.Float64() * 30)) }
	for round := range 3000 {
		p := &Profile{Block: 64, BinsPerOctave: 32, Caches: []Cache{{Size: 32 << 10}}}
		all := 0.0
		for range 1 + rng.IntN(200) {
			r := Record{Weight: Weight{Observations: 1, Accesses: rng.ExpFloat64() * 1e7}, TID: 1 + rng.IntN(2), Epoch: rng.IntN(4), Timing: Timing{Time: long()}}
			switch rng.IntN(4) {
			case 0:
				r.Kind, r.Exact = Reuse, true
			case 1:
				r.Kind = Cold
			default: // watched after what was read ahead
				r.After = min(long(), 2047)
				r.Time += r.After
				r.Half = rng.IntN(2) == 0
				if r.Kind = Censored; rng.IntN(2) == 0 {
					r.Kind = Reuse
					r.BelowResolution = rng.IntN(2) == 0
				}
				if r.Half {
					if r.Pair, r.PairTime = Censored, r.Time; r.Kind == Reuse && rng.IntN(2) == 0 {
						r.Pair = Reuse
					}
				}
			}
			all += r.Accesses
			p.Records = append(p.Records, r)
		}
		if err := p.Derive(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		times, err := p.Times()
		if err != nil {
			t.Fatal(err)
		}
		sum := times.Cold
		for i, w := range times.W {
			if w < 0 {
				t.Errorf("round %d: bin %d has weight %v", round, i, w)
			}
			sum += w
		}
		if math.Abs(sum-all) > 1e-9*all {
			t.Errorf("round %d: estimated %v of %v observed", round, sum, all)
		}
	}
}
