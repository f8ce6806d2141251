// Needs: nothing.

package exact

import (
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// A tally's profile holds the very histograms of the exact analysis, and each
// pair, time, distance and miss of a brute-force walk.
func TestPairTallyAgainstBrute(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rng := newRand(t, 71)
	accesses := randomAccesses(rng, 20000, 4000)
	for i := range accesses {
		accesses[i].PC = 0x1000 + uint64(rng.IntN(7))
	}
	caches := []model.Cache{{Level: "L1d", Size: 96 * 8}, {Level: "L2", Size: 1000 * 8}} // no edges of log bins
	for _, private := range []bool{false, true} {
		tally, err := NewPairTally(8, 10, private, caches)
		if err != nil {
			t.Fatal(err)
		}
		var stacks Stacks
		if private {
			stacks, err = NewPrivateStacks(8)
		} else {
			stacks, err = NewSharedStack(8)
		}
		if err != nil {
			t.Fatal(err)
		}
		bins := model.LogBins(10)
		times, dists := model.NewHist(bins), model.NewHist(bins)
		type pair struct {
			use, reuse uint64
			kind       model.Kind
		}
		type user struct {
			thread int32
			block  uint64
		}
		want, last := map[pair]float64{}, map[user]uint64{}
		misses := make([]float64, len(caches))
		var distances float64
		err = stacks.Add(accesses, func(x *Touch) {
			tally.Add(x)
			u := user{x.Thread, x.Block}
			if !private {
				u.thread = 0
			}
			k := pair{last[u], x.PC, x.Kind}
			switch x.Kind {
			case model.Cold:
				k = pair{x.PC, 0, model.Cold}
			case model.Invalidated:
				k.reuse = 0
			}
			want[k]++
			last[u] = x.PC
			times.AddKind(x.Kind, x.Time, 1)
			dists.AddKind(x.Kind, x.Dist, 1)
			for i, c := range caches {
				if x.Kind != model.Reuse || x.Dist >= uint64(c.Size)/8 {
					misses[i]++
				}
			}
			if x.Kind == model.Reuse {
				distances += 8 * float64(x.Dist)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		p := tally.Profile(func(pc uint64) *model.Location { return &model.Location{Address: pc} })
		gotTimes, err := p.Times()
		if err != nil {
			t.Fatal(err)
		}
		gotDists, err := p.Stacks(bins)
		if err != nil {
			t.Fatal(err)
		}
		equalHist(t, "times", gotTimes, times)
		equalHist(t, "distances", gotDists, dists)
		if err := p.Derive(); err != nil { // changes nothing
			t.Fatal(err)
		}
		got, gotMisses := map[pair]float64{}, make([]float64, len(caches))
		for _, r := range p.Records {
			k := pair{use: r.Use[0].Address, kind: r.Kind}
			if r.Reuse != nil {
				k.reuse = r.Reuse[0].Address
			}
			got[k] += r.Accesses
			distances -= r.Distance
			for i, m := range r.Misses {
				gotMisses[i] += m
			}
		}
		for k, n := range want {
			if got[k] != n {
				t.Errorf("private %v: pair %+v: %v times, want %v", private, k, got[k], n)
			}
		}
		if len(got) != len(want) || distances != 0 {
			t.Errorf("private %v: %d pairs, want %d; distances differ by %v", private, len(got), len(want), distances)
		}
		for i, m := range misses {
			if gotMisses[i] != m {
				t.Errorf("private %v: %v misses of %s, want %v", private, gotMisses[i], caches[i].Level, m)
			}
		}
	}
}

// With too many pairs the frequent ones and the histograms stay.
func TestPairTallyForgetsRare(t *testing.T) {
	rng := newRand(t, 72)
	tally, err := NewPairTally(8, 10, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	tally.limit = 1000
	s, _ := NewSharedStack(8)
	times, dists := model.NewHist(model.LogBins(10)), model.NewHist(model.LogBins(10))
	var accesses []model.Access
	for range 20000 {
		accesses = append(accesses, model.Access{Addr: 8, PC: 1}, model.Access{Addr: 16 + 8*uint64(rng.IntN(1000)), PC: 2 + uint64(rng.IntN(50))})
	}
	err = s.Add(accesses, func(x *Touch) {
		tally.Add(x)
		times.AddKind(x.Kind, x.Time, 1)
		dists.AddKind(x.Kind, x.Dist, 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	p := tally.Profile(func(pc uint64) *model.Location { return &model.Location{Address: pc} })
	gotTimes, _ := p.Times()
	gotDists, _ := p.Stacks(model.LogBins(10))
	equalHist(t, "times", gotTimes, times)
	equalHist(t, "distances", gotDists, dists)
	var frequent, rare float64
	for _, r := range p.Records {
		if r.Use[0].Address == 1 && r.Kind == model.Reuse {
			frequent += r.Accesses
		}
		if r.Use[0].Lines != nil {
			rare += r.Accesses
		}
	}
	if frequent != 19999 || rare != float64(tally.Rare()) || rare == 0 || len(p.Records) > 1000+200 {
		t.Errorf("frequent pair %v times, want 19999; %v rare, said %d; %d records", frequent, rare, tally.Rare(), len(p.Records))
	}
}

// The curve of exact distances is their histogram's, without a band.
func TestExactCurve(t *testing.T) {
	tally, err := NewPairTally(64, 10, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	var loop []model.Access
	for i := range 3000 {
		loop = append(loop, model.Access{Addr: uint64(i%1000) * 64, Size: 8})
	}
	s, _ := NewSharedStack(64)
	if err := s.Add(loop, tally.Add); err != nil {
		t.Fatal(err)
	}
	p := tally.Profile(func(pc uint64) *model.Location { return &model.Location{Address: pc} })
	c, err := p.MissRatios([]uint64{512, 1024}, model.CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1, 1.0 / 3} {
		if q := c.Points[i]; q.MissRatio != want || q.Low != want || q.High != want || q.Quote != model.Quoted {
			t.Errorf("%+v, want %v", q, want)
		}
	}
}

func TestAtRate(t *testing.T) {
	p := &model.Profile{Clock: model.Clock{Rate: 0.5}, Records: []model.Record{{Timing: model.Timing{Time: 10}}, {Timing: model.Timing{Time: 10, Exact: true}}, {HalfLine: model.HalfLine{Half: true, PairTime: 300}, Lookahead: model.Lookahead{After: 90}, Timing: model.Timing{Time: 200}}}}
	q := p.AtRate(2)
	if q.Records[0].Time != 40 || q.Records[1].Time != 10 || q.Clock.Rate != 2 || p.Records[0].Time != 10 || p.Clock.Rate != 0.5 {
		t.Errorf("%+v of %+v", q, p)
	}
	if r := q.Records[2]; r.Time != 800 || r.PairTime != 1200 {
		t.Errorf("half a line: %+v", r)
	}
	if r := p.AtRate(0.1).Records[2]; r.Time != 91 || r.PairTime != 91 {
		t.Errorf("half a line read ahead: %+v", r)
	}
}

func TestScore(t *testing.T) {
	b := model.LogBins(10)
	exact, est := model.NewHist(b), model.NewHist(b)
	exact.Add(4, 50) // in 1..8 blocks half miss
	exact.Cold = 50
	est.Add(4, 25)
	est.Add(64, 25)
	est.Cold = 50
	s, err := model.Score(exact, est, 8)
	if err != nil {
		t.Fatal(err)
	}
	// Sizes of 1, 2, 3, 4 blocks are right; at 5 to 8 a quarter is wrong.
	if s.L2 != 0.75 || s.L10 != 0.75 || s.MissMax != 0.25 || s.MissMean != 0.125 {
		t.Errorf("%+v", s)
	}
	if s, _ := model.Score(exact, exact, 8); s != (model.Scores{L2: 1, L10: 1}) {
		t.Errorf("against itself %+v", s)
	}
}

// Of an exact profile the misses are those of its distances, at any size and not
// only those of the caches that it was made for.
func TestMissWeightsExact(t *testing.T) {
	tally, err := NewPairTally(model.WordBytes, 16, false, []model.Cache{{Level: "L1d", Size: 32 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	stack, err := NewSharedStack(model.WordBytes)
	if err != nil {
		t.Fatal(err)
	}
	// Ten laps of 100, of 1000 and of 10,000 words by an instruction each.
	var all []model.Access
	for pc, words := range []uint64{100, 1000, 10_000} {
		for i := range 10 * words {
			all = append(all, model.Access{Addr: uint64(pc)<<20 + i%words*8, Size: 8, PC: uint64(pc + 1), Op: model.Load})
		}
	}
	if err := stack.Add(all, tally.Add); err != nil {
		t.Fatal(err)
	}
	p := tally.Profile(func(pc uint64) *model.Location { return &model.Location{Address: pc} })
	key := func(s []*model.Location) uint64 { return s[0].Address }
	for _, c := range []struct {
		bytes int64
		want  [3]float64 // misses
	}{
		{8, [3]float64{1000, 10_000, 100_000}}, {50 * 8, [3]float64{1000, 10_000, 100_000}}, {200 * 8, [3]float64{100, 10_000, 100_000}},
		{32 << 10, [3]float64{100, 1000, 100_000}}, {1 << 20, [3]float64{100, 1000, 10_000}},
	} {
		w, err := model.MissWeights(p, c.bytes, key)
		if err != nil || w[1] != c.want[0] || w[2] != c.want[1] || w[3] != c.want[2] {
			t.Errorf("%d bytes: %v (%v), want %v", c.bytes, w, err, c.want)
		}
	}
}

// A key gives back what it was made of, and keys are in the order of that.
func TestPairPacking(t *testing.T) {
	rng := newRand(t, 74)
	for _, bins := range [][2]int{{2, 2}, {588, 591}, {3700, 3703}} {
		p := newPairPacking(bins[0], bins[1])
		last := pairKey(0)
		for _, says := range []pairKey{p.reuse(0, 0), p.reuse(bins[0]-1, bins[1]-1), p.other(model.Cold), p.other(model.NumKinds - 1)} {
			if says <= last || says != p.says(says) {
				t.Errorf("%v bins: %#x after %#x", bins, says, last)
			}
			last = says
		}
		for range 1000 {
			use, reuse := rng.Uint32N(1<<p.place), rng.Uint32N(1<<p.place)
			time, dist := rng.IntN(bins[0]), rng.IntN(bins[1])
			k := p.key(use, reuse, p.reuse(time, dist))
			kind, gotTime, gotDist := p.bins(k)
			if p.uses(k) != use || p.reuses(k) != reuse || kind != model.Reuse || gotTime != time || gotDist != dist {
				t.Fatalf("%v bins: %d %d %d %d from %d %d %d %d", bins, p.uses(k), p.reuses(k), gotTime, gotDist, use, reuse, time, dist)
			}
			k = p.key(use, rarePlace, p.other(model.Invalidated))
			if kind, time, dist := p.bins(k); kind != model.Invalidated || time != 0 || dist != 0 || p.uses(k) != use {
				t.Fatalf("%v bins: %v %d %d", bins, kind, time, dist)
			}
		}
		if k := p.key(1<<p.place, 0, last); k != 0 {
			t.Errorf("%v bins: a place too many has key %#x", bins, k)
		}
	}
}

// No count is too large for a cell, and none is lost when the table grows or forgets.
func TestPairCellsWide(t *testing.T) {
	rng := newRand(t, 75)
	p := newPairCells(40_000, newPairPacking(588, 588))
	var want, got wideSum
	add := func(use uint32, n wideSum) {
		p.addWide(p.key(use, use, p.reuse(5, 5)), n)
		want = want.and(n)
	}
	for i := range 100_000 {
		add(1+rng.Uint32N(30_000), wideSum{rng.Uint64N(1 << 27), rng.Uint64N(1 << 35)})
		add(7, wideSum{1 << 40, 1 << 45})
		p.count(p.key(9, 9, p.reuse(5, 5)), 1<<31)
		want = want.and(wideSum{1, 1 << 31})
		add(40_000+uint32(i), wideSum{1, 1})
	}
	cells := p.sorted()
	for i := range cells {
		n := p.of(&cells[i])
		got = got.and(n)
		if use := p.uses(cells[i].key); use == 7 && n.touches < 100_000<<40 || use == 9 && n.touches < 100_000 {
			t.Errorf("place %d: %+v", use, n)
		}
	}
	if got != want || p.rare == 0 {
		t.Errorf("%+v (%d rare), want %+v", got, p.rare, want)
	}
}

// Places beyond those that keys have room for are counted as rare pairs.
func TestPairTallyTooManyPlaces(t *testing.T) {
	tally, err := NewPairTally(64, 10, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	tally.room(2) // the rare one and three
	s, _ := NewSharedStack(64)
	var all []model.Access
	for i := range uint64(40) {
		all = append(all, model.Access{Addr: 64 * (i % 2), Size: 1, PC: 1 + i/8})
	}
	if err := s.Add(all, tally.Add); err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, r := range tally.Profile(func(pc uint64) *model.Location { return &model.Location{Address: pc} }).Records {
		total += r.Accesses
	}
	if total != 40 || tally.Rare() != 16 {
		t.Errorf("%v touches, %d rare; want 40, 16", total, tally.Rare())
	}
}
