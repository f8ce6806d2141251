package model

import (
	"math"
	"math/rand/v2"
	"testing"
)

// clustered draws holds in which what happens goes together: each is of one kind of code, with a
// share of far reuses of its own, and of the far ones one is watched, for all.
func clustered(rng *rand.Rand, holds int, far func() float64) *Profile {
	p := &Profile{Block: 64, BinsPerOctave: 16}
	for h := range holds {
		share := far()
		const classified = 200
		open := 0
		for range classified {
			if rng.Float64() < share {
				open++
			}
		}
		if open < classified {
			p.Records = append(p.Records, Record{Kind: Reuse, Timing: Timing{Exact: true, Time: 3}, Lookahead: Lookahead{Distinct: 3}, Cluster: Cluster{Hold: uint64(h + 1)},
				Weight: Weight{Observations: 1, Accesses: float64(classified - open)}})
		}
		if open == 0 {
			continue
		}
		// Half of the far ones come before 10^5 accesses, half not before 10^6.
		r := Record{Kind: Reuse, Timing: Timing{Time: 20_000 + rng.Uint64N(50_000)}, Lookahead: Lookahead{After: 1000, Distinct: 40}, Cluster: Cluster{Hold: uint64(h + 1)}, Weight: Weight{Observations: 1, Accesses: float64(open)}}
		if rng.IntN(2) == 0 {
			r.Kind, r.Time, r.Distinct = Censored, 4_000_000, 0
		}
		p.Records = append(p.Records, r)
	}
	return p
}

// Where what a hold tells goes together, bands still hold the truth in 93 to 97 of a hundred, also
// where few holds see anything far.
func TestBandsCoverClusters(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rng := newRand(t, 91)
	for _, c := range []struct {
		name        string
		holds       int
		share, mean float64 // of holds with far reuses, and how many there
	}{
		{"everywhere", 300, 1, 0.05},
		{"in a tenth of the holds", 300, 0.1, 0.3},
		{"in one of fifty", 500, 0.02, 0.2},
	} {
		const runs = 1000
		in, low, high, quoted, wide := 0, 0, 0, 0, 0.0
		truth := c.share * c.mean / 2
		for range runs {
			p := clustered(rng, c.holds, func() float64 {
				if rng.Float64() >= c.share {
					return 0
				}
				return c.mean * 2 * rng.Float64()
			})
			// A cache in which those of 10^5 accesses hit, and the others miss.
			curve, err := p.MissRatios([]uint64{uint64(300_000 * truth)}, CurveOptions{certain: true, Model: "ssx"})
			if err != nil {
				t.Fatal(err)
			}
			q := curve.Points[0]
			switch {
			case q.High < truth:
				low++
			case q.Low > truth:
				high++
			default:
				in++
			}
			if q.Quote == Quoted {
				quoted++
			}
			wide += (q.High - q.Low) / truth / runs
		}
		t.Logf("%s, %.2f %%: covered %.1f %%, too low %d, too high %d, width %.2f of the ratio, quoted %d of %d", c.name, 100*truth, 100*float64(in)/runs, low, high, wide, quoted, runs)
		if cover := float64(in) / runs; cover < 0.925 {
			t.Errorf("%s: bands cover %.3f", c.name, cover)
		}
	}
}

// One observation a hold, or several that are alike in one record: the same bands.
func TestClustersOfRecords(t *testing.T) {
	one, many := &Profile{Block: 64}, &Profile{Block: 64}
	for i := range 400 {
		r := Record{Kind: Reuse, Timing: Timing{Exact: true, Time: 2}, Lookahead: Lookahead{Distinct: 2}, Weight: Weight{Observations: 1, Accesses: 10}, Cluster: Cluster{Hold: uint64(i + 1)}}
		if i%10 == 0 {
			r.Time, r.Distinct = 5000, 3000
		}
		one.Records = append(one.Records, r)
	}
	for _, n := range []int64{360, 40} {
		r := Record{Kind: Reuse, Timing: Timing{Exact: true, Time: 2}, Lookahead: Lookahead{Distinct: 2}, Weight: Weight{Observations: n, Accesses: 10 * float64(n)}}
		if n == 40 {
			r.Time, r.Distinct = 5000, 3000
		}
		many.Records = append(many.Records, r)
	}
	a, err := one.MissRatios([]uint64{100}, CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := many.MissRatios([]uint64{100}, CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x, y := a.Points[0], b.Points[0]
	t.Logf("%+v, %+v", x, y)
	near(t, "ratio", x.MissRatio, 0.1, 1e-9)
	near(t, "ratio of those alike", y.MissRatio, 0.1, 1e-9)
	near(t, "low", y.Low, x.Low, 0.01)
	near(t, "high", y.High, x.High, 0.01)
	if a.Holds != 400 || b.Holds != 400 {
		t.Errorf("%d and %d holds, want 400", a.Holds, b.Holds)
	}
	if want := 0.1 * 1.96 * math.Sqrt(0.9/40); math.Abs((x.High-x.Low)/2-want) > 0.012 {
		t.Errorf("half width %v, a binomial count has %v", (x.High-x.Low)/2, want)
	}
}

// What is summed over many holds is the same to the last bit each time.
func TestClusterSumsRepeat(t *testing.T) {
	p := &Profile{}
	r := rand.New(rand.NewPCG(1, 2))
	var records []*Record
	for i := range 1000 {
		x := &Record{Kind: Reuse, Weight: Weight{Observations: 1, Accesses: r.ExpFloat64()}}
		x.Time, x.Hold = 1+r.Uint64N(1000), uint64(1+i/2)
		records = append(records, x)
		p.Records = append(p.Records, *x)
	}
	value := func(r *Record) float64 { return r.Accesses }
	values := func(k int) []float64 { return []float64{records[k].Accesses} }
	sums, squares, off := p.clusterSums(records, value), p.ClusterSquares(records, 1, values)[0], p.meanError(100)
	for range 20 {
		if got := p.clusterSums(records, value); got != sums {
			t.Fatalf("sums %v, then %v", sums, got)
		}
		if got := p.ClusterSquares(records, 1, values)[0]; got != squares {
			t.Fatalf("squares %v, then %v", squares, got)
		}
		if got := p.meanError(100); got != off {
			t.Fatalf("mean's error %v, then %v", off, got)
		}
	}
}
