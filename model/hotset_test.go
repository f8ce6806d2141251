package model

import (
	"math"
	"slices"
	"testing"
)

// hotProfile is of so many holds, each with 98 accesses that are reused at once and two of which none is known, all as if in hot sets
// of so many blocks; 0: in none.
func hotProfile(holds int, hot func(hold int) uint64) *Profile {
	p := &Profile{Block: 64, BinsPerOctave: 32, Caches: []Cache{{Level: "L1", Size: 32 << 10}, {Level: "L2", Size: 1 << 20}}}
	use := []*Location{{Address: 1}}
	for h := range holds {
		cluster := Cluster{Hold: uint64(h + 1)}
		p.Records = append(p.Records,
			Record{Kind: Reuse, Use: use, Ending: Ending{Reuse: use}, Cluster: cluster, Timing: Timing{Time: 4, Exact: true}, Lookahead: Lookahead{Distinct: 3}, Weight: Weight{Observations: 1, Accesses: 98e6}},
			Record{Kind: Censored, Use: use, Cluster: cluster, Timing: Timing{Time: 20000, Exact: true}, Lookahead: Lookahead{Distinct: 600, Hot: hot(h)}, Weight: Weight{Observations: 1, Accesses: 2e6}})
	}
	return p
}

func hotCurve(t *testing.T, p *Profile, sizes ...uint64) []Point {
	t.Helper()
	c, err := p.MissRatios(sizes, CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Points
}

// A hot set that has room in a cache bounds its misses: by chance alone where nothing is outside of it, by what is outside
// as often as LRU may miss for each of these, and not where it does not fit.
func TestHotSetBounds(t *testing.T) {
	const holds, all = 100, 0.02
	sizes := []uint64{1024, 4096, 16384, 1 << 20}
	without := hotCurve(t, hotProfile(holds, func(int) uint64 { return 0 }), sizes...)
	for _, q := range without {
		if q.High < all || q.High > 1.5*all {
			t.Errorf("without a hot set, %d blocks: %+v", q.Blocks, q)
		}
	}
	in := hotCurve(t, hotProfile(holds, func(int) uint64 { return 4096 }), sizes...)
	// As of one hold of a hundred, of which none was seen to miss: 3.7 times, and by how far Student's is from a normal distribution.
	chance := 3.7 * all / holds
	for i, q := range in {
		times := hotTimes(q.Blocks, 4096)
		switch {
		case times == 0 && i < 2 && q != without[i]:
			t.Errorf("%d blocks, less than twice the set's: %+v, without it %+v", q.Blocks, q, without[i])
		case times > 0 && (q.High < times*chance || q.High > 1.3*times*chance || q.MissRatio > q.High || q.Low != 0 || q.Quote != BeyondObservation):
			t.Errorf("%d blocks: %+v, want a bound of %.3g", q.Blocks, q, times*chance)
		}
	}
	if in[3].High > in[2].High {
		t.Errorf("a larger cache misses more: %+v, %+v", in[2], in[3])
	}
	// One hold in five has its uses outside.
	some := hotCurve(t, hotProfile(holds, func(h int) uint64 {
		if h%5 == 0 {
			return 0
		}
		return 4096
	}), 16384)[0]
	if times := hotTimes(16384, 4096); some.High < times*all/5 || some.High > times*all/5*1.9 || math.Abs(some.MissRatio-all/5) > 1e-6 {
		t.Errorf("with one in five outside: %+v, want a ratio of %.3g and a bound of more than %.3g", some, all/5, times*all/5)
	}
	for _, c := range []struct {
		blocks, set uint64
		want        float64
	}{{16384, 8192, 16384. / 7169}, {16384, 1, 16384. / 15360}, {16384, 16384, 0}, {16384, 14000, 0}, {64, 64, 0}} {
		if got := hotTimes(c.blocks, c.set); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d blocks with %d hot: %v times, want %v", c.blocks, c.set, got, c.want)
		}
	}
}

// What is in a size's hot set misses neither there nor in larger caches, and records add up to the curve.
func TestHotSetDerive(t *testing.T) {
	p := hotProfile(60, func(h int) uint64 { return []uint64{0, 1024, 4096, 1 << 16}[h%4] })
	sizes := []uint64{512, 2048, 16384, 20000, 1 << 18}
	points := hotCurve(t, p, sizes...)
	sums := make([]float64, len(sizes))
	err := p.MissesAt(sizes, func(i int, misses []float64) {
		for k, m := range misses {
			if sums[k] += m; k > 0 && m > misses[k-1] {
				t.Errorf("record %d misses %v", i, misses)
			}
		}
		if hot := p.Records[i].Hot; hot > 0 && hot <= 4096 && misses[2] > 0 {
			t.Errorf("record %d, in a set of %d: misses %v", i, hot, misses)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for k, q := range points {
		if math.Abs(sums[k]-q.Misses) > 1e-6*sums[k] {
			t.Errorf("%d blocks: records miss %v, the curve %v", sizes[k], sums[k], q.Misses)
		}
	}
	if !slices.IsSortedFunc(points, func(a, b Point) int { return int(math.Copysign(1, b.MissRatio-a.MissRatio)) }) {
		t.Errorf("%+v", points)
	}
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	if at := hotCurve(t, p, 16384)[0]; at.High != points[2].High {
		t.Errorf("alone %+v, with others %+v", at, points[2])
	}
}

// Whatever a profile says, few sets are asked of: two an octave.
func TestHotSets(t *testing.T) {
	p := &Profile{}
	add := func(hot uint64) { p.Records = append(p.Records, Record{Lookahead: Lookahead{Hot: hot}}) }
	for _, hot := range []uint64{0, 1, 2, 5, 11585, 11586, 16384, 1 << 40, math.MaxInt64} {
		add(hot)
	}
	if got, want := p.hotSets(), []uint64{1, 2, 5, 11585, 16384}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for hot := range uint64(10_000) {
		add(hot)
	}
	if got := p.hotSets(); len(got) > 2*hotSizes {
		t.Errorf("%d sets", len(got))
	}
}
