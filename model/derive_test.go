package model

import (
	"math"
	"reflect"
	"testing"
)

func testProfile(records ...Record) *Profile {
	return &Profile{Block: 64, BinsPerOctave: 10, Records: records,
		Caches: []Cache{{Level: "L1d", Size: 64 * 4}, {Level: "L2", Size: 64 * 1024}}}
}

func rec(k Kind, time uint64, accesses float64) Record {
	return Record{Kind: k, Timing: Timing{Time: time}, Weight: Weight{Observations: 1, Accesses: accesses}}
}

// A loop over M blocks: every reuse has stack distance M-1.
func TestDeriveLoop(t *testing.T) {
	for _, m := range []uint64{1, 2, 3, 4, 5, 9} {
		p := testProfile(rec(Reuse, m, 1000), rec(Reuse, m, 500))
		p.Records[1].Observations = 3
		if err := p.Derive(); err != nil {
			t.Fatal(err)
		}
		miss := 0.0
		if m-1 >= 4 {
			miss = 1
		}
		for i, w := range []float64{1000, 500} {
			r := p.Records[i]
			near(t, "Reuses", r.Reuses, w, 1e-9)
			near(t, "Distance", r.Distance, float64(r.Observations)*float64(m-1)*64, 1e-9)
			near(t, "L1 misses", r.Misses[0], w*miss, 1e-9)
			near(t, "L2 misses", r.Misses[1], 0, 1e-9)
		}
	}
}

func TestDeriveCensored(t *testing.T) {
	p := testProfile(
		rec(Reuse, 2, 100),
		rec(Censored, 5, 100), // half of it to the later reuse, and the rest is as likely never reused as that
		rec(Reuse, 9, 100),
		rec(Censored, 2000, 50),
		rec(Cold, 0, 50),
		rec(Lost, 0, 1e6),
	)
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	r := p.Records
	for i, want := range []float64{100, 0, 150, 0, 0, 0} {
		near(t, "Reuses", r[i].Reuses, want, 1e-9)
	}
	for k := range p.Caches {
		for i, want := range map[int]float64{0: 0, 1: 50, 3: 50, 4: 50, 5: 0} {
			near(t, "Misses", r[i].Misses[k], want, 1e-9)
		}
	}
	h, err := p.Times()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "total", h.Total(), 400, 1e-9)
	near(t, "cold", h.Cold, 150, 1e-9)
	near(t, "lost", h.Lost, 1e6, 0)
	if h.N != 5 {
		t.Errorf("N = %d", h.N)
	}
	s, _ := p.Survival()
	near(t, "S(1)", s.Above(1), 1, 1e-12)
	near(t, "S(2)", s.Above(2), .75, 1e-12)
	near(t, "S(9)", s.Above(9), .375, 1e-12)
	if p.Longest() != 2000 {
		t.Errorf("Longest = %d", p.Longest())
	}
}

func TestDeriveInvalidated(t *testing.T) {
	p := testProfile(rec(Reuse, 2, 100), rec(Invalidated, 3, 100), rec(Reuse, 4, 50), rec(Reuse, 5, 50))
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	near(t, "misses of the invalidated", p.Records[1].Misses[1], 100, 1e-9)
	near(t, "reuses of the invalidated", p.Records[1].Reuses, 0, 0)
	h, _ := p.Times()
	near(t, "invalidated", h.Invalidated, 100, 1e-9)
	s, _ := p.Survival() // the invalidated have given up their room at 3
	near(t, "S(3)", s.Above(3), 1./3, 1e-12)
	near(t, "S(4)", s.Above(4), 1./6, 1e-12)
	near(t, "S(5)", s.Above(5), 0, 1e-12)
}

// The sum over records of what Derive fills in is what the histograms say,
// whatever the mixture, and it scales with the weights.
func TestDeriveAddsUp(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rng := newRand(t, 6)
	for range 50 {
		p := testProfile()
		for range 1 + rng.IntN(300) {
			r := rec(Kind(rng.IntN(int(NumKinds))), 1+rng.Uint64N(1<<rng.IntN(20)), float64(rng.IntN(1000)))
			r.BelowResolution = rng.IntN(4) == 0
			p.Records = append(p.Records, r)
		}
		if err := p.Derive(); err != nil {
			t.Fatal(err)
		}
		h, err := p.Times()
		if err != nil {
			t.Fatal(err)
		}
		var all, lost, reuses float64
		var misses [2]float64
		for _, r := range p.Records {
			switch r.Kind {
			case Lost:
				lost += r.Accesses
				continue
			case FalseSharing, TrueSharing, UnknownSharing:
				continue
			}
			all += r.Accesses
			reuses += r.Reuses
			for k, m := range r.Misses {
				misses[k] += m
			}
		}
		near(t, "total", h.Total(), all, 1e-6)
		near(t, "lost", h.Lost, lost, 0)
		near(t, "reuses", reuses, h.Finite(), 1e-6)
		if all == 0 {
			continue
		}
		var x SSX
		net, _ := p.Survival()
		if err := x.Reset(net); err != nil {
			t.Fatal(err)
		}
		for k, c := range p.Caches {
			near(t, "misses", misses[k]/all, x.MissRatio(h, uint64(c.Size/64)), 1e-9)
		}

		// Twice the weight is twice everything; distances are per observation.
		q := *p
		q.Records = append([]Record(nil), p.Records...)
		for i := range q.Records {
			q.Records[i].Accesses *= 2
		}
		if err := q.Derive(); err != nil {
			t.Fatal(err)
		}
		for i, r := range q.Records {
			near(t, "scaled reuses", r.Reuses, 2*p.Records[i].Reuses, 1e-6)
			near(t, "scaled distance", r.Distance, p.Records[i].Distance, 1e-6*(1+r.Distance))
			near(t, "scaled misses", r.Misses[0], 2*p.Records[i].Misses[0], 1e-6)
		}
	}
}

// Times are used with the resolution with which they are written.
func TestDeriveAfterBinning(t *testing.T) {
	rng := newRand(t, 7)
	p := testProfile()
	for range 300 {
		p.Records = append(p.Records, rec(Kind(rng.IntN(int(NumKinds))), 1+rng.Uint64N(1<<rng.IntN(20)), 1))
	}
	q := *p
	q.Records = append([]Record(nil), p.Records...)
	b := LogBins(10)
	for i := range q.Records {
		q.Records[i].Time = b.Mid(b.Index(q.Records[i].Time))
	}
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	if err := q.Derive(); err != nil {
		t.Fatal(err)
	}
	for i := range q.Records {
		q.Records[i].Time = p.Records[i].Time
	}
	if !reflect.DeepEqual(p.Records, q.Records) {
		t.Error("deriving before and after binning differ")
	}
}

func TestDeriveRefuses(t *testing.T) {
	for name, p := range map[string]*Profile{
		"no block":        {Records: []Record{rec(Reuse, 1, 1)}},
		"negative weight": testProfile(rec(Reuse, 1, -1)),
		"NaN weight":      testProfile(rec(Reuse, 1, math.NaN())),
		"infinite weight": testProfile(rec(Reuse, 1, math.Inf(1))),
		"unknown kind":    testProfile(rec(99, 1, 1)),
	} {
		if err := p.Derive(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, p := range map[string]*Profile{
		"empty":     testProfile(),
		"only lost": testProfile(rec(Lost, 0, 3)),
		"only cold": testProfile(rec(Cold, 0, 3)),
		"weight 0":  testProfile(rec(Reuse, 7, 0), rec(Censored, 7, 0)),
		"extremes":  testProfile(rec(Reuse, 0, 1), rec(Reuse, math.MaxUint64, 1), rec(Censored, math.MaxUint64, 1)),
	} {
		if err := p.Derive(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i, r := range p.Records {
			if math.IsNaN(r.Reuses+r.Distance+r.Misses[0]) || r.Reuses < 0 {
				t.Errorf("%s: record %d is %+v", name, i, r)
			}
		}
	}
}
