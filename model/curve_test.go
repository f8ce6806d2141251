package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// sampleProfile draws n observations of reuse times from a population, each
// cut off at an independent random age.
func sampleProfile(rng *rand.Rand, population *Hist, n int, weight func() float64) *Profile {
	p := &Profile{Block: 64, BinsPerOctave: 10}
	total := population.Total()
	for range n {
		u, i := rng.Float64()*total, 0
		for i < len(population.W) && u >= population.W[i] {
			u -= population.W[i]
			i++
		}
		cut := uint64(math.Exp(rng.Float64()*8) * 3000)
		r := Record{Kind: Censored, Timing: Timing{Time: cut}, Weight: Weight{Observations: 1, Accesses: weight()}}
		if i < len(population.W) {
			lo, width := population.Bins.span(i)
			if t := uint64(lo) + rng.Uint64N(uint64(width)); t <= cut {
				r.Kind, r.Time = Reuse, t
			}
		}
		p.Records = append(p.Records, r)
	}
	return p
}

// population is a plausible program: reuse times over five decades and 1 %
// never reused.
func population() *Hist {
	h := NewHist(LogBins(10))
	for t := 1.0; t < 3e5; t *= 1.05 {
		h.Add(uint64(t), 1/(1+t/20)+0.02)
	}
	h.Cold = 0.01 * h.Total()
	return h
}

// 95 % bands hold the truth about 95 times in 100, for the miss ratio and for
// the bins of the histogram, with equal weights and with unequal ones.
func TestBandsCover(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	truth := population()
	var x SSX
	if err := x.Reset(truth); err != nil {
		t.Fatal(err)
	}
	bins := LogBins(1)
	dists := NewHist(bins)
	if err := x.Stacks(dists, truth); err != nil {
		t.Fatal(err)
	}
	sizes := []uint64{2, 8, 32, 128, 512, 2048, 8192}
	const runs = 300
	for name, weight := range map[string]func(*rand.Rand) float64{
		"equal":   func(*rand.Rand) float64 { return 1000 },
		"unequal": func(r *rand.Rand) float64 { return 100 + r.ExpFloat64()*1000 },
	} {
		rng := newRand(t, 31)
		var in, all, inBins, allBins, below, above int
		for run := range runs {
			p := sampleProfile(rng, truth, 1000, func() float64 { return weight(rng) })
			o := CurveOptions{certain: true}
			c, err := p.MissRatios(sizes, o)
			if err != nil {
				t.Fatal(err)
			}
			for i, q := range c.Points {
				mr := x.MissRatio(truth, sizes[i])
				all++
				switch {
				case mr < q.Low:
					below++
				case mr > q.High:
					above++
				default:
					in++
				}
			}
			if run%4 != 0 {
				continue
			}
			b, err := p.StackBands(bins, o)
			if err != nil {
				t.Fatal(err)
			}
			total := b.H.Total()
			for i, w := range dists.W {
				if share := w / truth.Total(); share > 1e-4 {
					allBins++
					if share >= b.Low[i]/total-1e-9 && share <= b.High[i]/total+1e-9 {
						inBins++
					}
				}
			}
		}
		cover, coverBins := float64(in)/float64(all), float64(inBins)/float64(allBins)
		t.Logf("%s weights: miss ratios covered %.1f %% (truth below %d, above %d of %d), bins %.1f %%", name, 100*cover, below, above, all, 100*coverBins)
		if cover < 0.93 || cover > 0.97 {
			t.Errorf("%s weights: bands cover %.3f of the miss ratios", name, cover)
		}
		if coverBins < 0.93 || coverBins > 0.98 {
			t.Errorf("%s weights: bands cover %.3f of the bins", name, coverBins)
		}
	}
}

// One or two that missed are no number, five are.
func TestQuotedFromFew(t *testing.T) {
	for missed, want := range map[int]Quote{2: TooRare, 5: Quoted} {
		p := testProfile()
		for i := range 1000 {
			far := uint64(10)
			if i < missed {
				far = 5000
			}
			p.Records = append(p.Records, rec(Reuse, far, 5))
		}
		c, err := p.MissRatios([]uint64{20}, CurveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if q := c.Points[0]; q.Quote != want || q.High < q.MissRatio || (q.Low > 0) != (want == Quoted) {
			t.Errorf("%d of 1000 missed: %+v, want %q", missed, q, want)
		}
	}
}

func TestCurveQuotes(t *testing.T) {
	p := testProfile()
	for range 970 {
		p.Records = append(p.Records, rec(Reuse, 10, 5))
	}
	for i := range 25 {
		p.Records = append(p.Records, rec(Reuse, uint64(5000+i), 5))
	}
	for range 5 {
		p.Records = append(p.Records, rec(Censored, 200000, 5))
	}
	c, err := p.MissRatios([]uint64{2, 20, 500, 100000}, CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "holds", float64(c.Holds), 1000, 1e-9)
	for i, want := range []Quote{Quoted, Quoted, Quoted, BeyondObservation} {
		q := c.Points[i]
		t.Logf("%+v", q)
		if q.Quote != want {
			t.Errorf("%d blocks: %q, want %q", q.Blocks, q.Quote, want)
		}
		if !(q.Low <= q.MissRatio && q.MissRatio <= q.High) {
			t.Errorf("%d blocks: %v..%v does not hold %v", q.Blocks, q.Low, q.High, q.MissRatio)
		}
	}
	near(t, "miss ratio", c.Points[1].MissRatio, 0.03, 1e-6)
	near(t, "misses", c.Points[1].Misses, 150, 0.01)
	near(t, "what was cut off may hit", c.Points[3].Low, 0, 1e-9)
	if h := c.Points[2].High; h < 0.0115 || h > 0.012 {
		t.Errorf("5 of 1000: upper bound %v, Poisson's is .01167", h)
	}

	for i := range 5 {
		p.Records[i].BelowResolution = true
		p.Records[i].Time = 300
	}
	if c, err = p.MissRatios([]uint64{2}, CurveOptions{}); err != nil || c.Points[0].Quote != Quoted {
		t.Errorf("half a percent below the resolution: %+v, %v", c, err)
	}
	for i := range 50 {
		p.Records[i].BelowResolution = true
		p.Records[i].Time = 300
	}
	if c, err = p.MissRatios([]uint64{2, 1000}, CurveOptions{}); err != nil || c.Points[0].Quote != BelowResolution || c.Points[1].Quote == BelowResolution {
		t.Errorf("resolution: %+v, %v", c, err)
	}

	for name, o := range map[string]CurveOptions{"model": {Model: "oracle"}, "ways": {Ways: -1}} {
		if _, err := p.MissRatios([]uint64{1}, o); err == nil {
			t.Errorf("bad %s accepted", name)
		}
	}
	if _, err := testProfile().MissRatios([]uint64{1}, CurveOptions{}); err == nil {
		t.Error("a profile without observations has a curve")
	}
}

// The same profile gives the same band.
func TestCurveDeterministic(t *testing.T) {
	p := sampleProfile(newRand(t, 32), population(), 300, func() float64 { return 1 })
	a, err := p.MissRatios([]uint64{64}, CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := p.MissRatios([]uint64{64}, CurveOptions{})
	if a.Points[0] != b.Points[0] {
		t.Errorf("%+v and %+v", a.Points[0], b.Points[0])
	}
}

// Smith's correction against a cache that hashes blocks to sets at random.
func TestSetAssociative(t *testing.T) {
	rng := newRand(t, 33)
	trace := make([]uint64, 60000)
	for i := range trace {
		trace[i] = uint64(rng.ExpFloat64() * 40)
	}
	_, dists := histsOf(trace, LogBins(1), LinearBins(1, 1000))
	for _, c := range []struct{ sets, ways int }{{16, 1}, {16, 4}, {64, 2}, {1, 32}} {
		got := SetAssociative(dists, uint64(c.sets*c.ways), c.ways)
		want := 0.0
		const hashes = 8
		for range hashes {
			set := map[uint64]int{}
			cache := make([][]uint64, c.sets)
			misses := 0
			for _, a := range trace {
				s, ok := set[a]
				if !ok {
					s = rng.IntN(c.sets)
					set[a] = s
				}
				l := cache[s]
				at := -1
				for i, b := range l {
					if b == a {
						at = i
					}
				}
				switch {
				case at >= 0:
					l = append(l[:at], l[at+1:]...)
				default:
					misses++
					if len(l) == c.ways {
						l = l[1:]
					}
				}
				cache[s] = append(l, a)
			}
			want += float64(misses) / float64(len(trace)) / hashes
		}
		t.Logf("%d sets of %d: corrected %.4f, simulated %.4f, fully associative %.4f", c.sets, c.ways, got, want, dists.MissRatio(uint64(c.sets*c.ways)))
		near(t, "miss ratio", got, want, 0.015)
	}
	near(t, "0 ways", SetAssociative(dists, 64, 0), dists.MissRatio(64), 0)
	if got := atLeast(3, 5, 0.2); math.Abs(got-0.05792) > 1e-9 {
		t.Errorf("P(Binomial(5, .2) >= 3) = %v", got)
	}
}

func TestGarwood(t *testing.T) {
	for _, c := range []struct{ k, low, high float64 }{{0, 0, 3.6889}, {1, .02532, 5.5716}, {10, 4.7954, 18.3904}} {
		l, h := garwood(c.k, 0.05)
		near(t, "low", l, c.low, 1e-3)
		near(t, "high", h, c.high, 1e-3)
		// Of counts of equal weight the gamma band is the same.
		l, h = gammaBand(c.k/1000, c.k/1e6, 1e-3)
		near(t, "gamma low", 1000*l, c.low, 1e-3)
		near(t, "gamma high", 1000*h, c.high, 1e-3)
	}
}

// All far reuses are by one distance. A cache is 1.7 times as large: neither the conversion nor the rate is off by so much with 95 %,
// but both together are, so that the band reaches to where all of them miss; and likewise of a smaller one.
func TestBandsJointly(t *testing.T) {
	const lines = 1 << 17
	p := around(lines, 2*lines, 1)
	p.Resident, p.Clock.RateSource, p.Clock.RateLow, p.Clock.RateHigh = 0, "measured", 1/1.4, 1.4
	sizes := []uint64{lines * 17 / 10, lines * 10 / 17, lines * 3, lines / 3}
	c, err := p.MissRatios(sizes, CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false, false} {
		q := c.Points[i]
		if (q.Low <= 0.001 && q.High >= 0.499) != want {
			t.Errorf("%d blocks: %.3g [%.3g, %.3g], want 0 and 0.5 in it: %v", q.Blocks, q.MissRatio, q.Low, q.High, want)
		}
	}
}

// A larger cache misses no more than a smaller one: of a few holds of different weight, cut off early, or reused after times of which
// little is known, the bands of the profile's caches fall with their size, those of others lie between them, and each is the same
// whichever others are asked for.
func TestBandsFall(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	cuts := 0
	for range 40 {
		p := &Profile{Block: 64, BinsPerOctave: 16, Caches: []Cache{{Size: 48 << 10}, {Size: 1 << 20}, {Size: 32 << 20}},
			Clock: Clock{Unit: "nanoseconds", Rate: 1, RateSource: "measured", RateLow: 0.3, RateHigh: 3, WaitNS: 10, PlainNS: 0.3}}
		for h := range 12 {
			weight := math.Exp(2 * rng.NormFloat64())
			open := rng.Float64()
			for range 4 {
				r := Record{Kind: Reuse, Timing: Timing{Time: uint64(math.Exp(17 * rng.Float64()))}, Cluster: Cluster{Hold: uint64(h + 1)},
					Weight: Weight{Observations: 1, Accesses: weight}}
				r.Open = open
				switch r.Lookahead = (Lookahead{After: 1000, Distinct: 300}); {
				case r.Time <= 1000:
					r.Exact = true
				case rng.IntN(2) == 0:
					r.Kind, r.Exact, r.Time = Censored, true, 1000
				default:
					r.Native = r.Time
				}
				p.Records = append(p.Records, r)
			}
		}
		others := []uint64{100, 768, 3000, 1 << 14, 1 << 17, 1 << 19, 1 << 21}
		all, err := p.MissRatios(others, CurveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(others)
		back, err := p.MissRatios(others, CurveOptions{})
		slices.Reverse(others)
		if err == nil {
			slices.Reverse(back.Points)
		}
		if err != nil || !slices.Equal(back.Points, all.Points) {
			t.Fatalf("%+v, the other way round %+v, %v", all, back, err)
		}
		caches, err := p.MissRatios(p.cacheBlocks(), CurveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i, q := range all.Points {
			alone, err := p.MissRatios(others[i:i+1], CurveOptions{})
			if err != nil || alone.Points[0] != q {
				t.Fatalf("%d blocks: %+v beside others, %+v alone, %v", q.Blocks, q, alone.Points[0], err)
			}
			for _, c := range caches.Points {
				if c.Blocks <= q.Blocks && q.High > max(c.High, q.MissRatio) || c.Blocks >= q.Blocks && q.Low < min(c.Low, q.MissRatio) {
					t.Errorf("%d blocks: [%.3g, %.3g], of %d: [%.3g, %.3g]", q.Blocks, q.Low, q.High, c.Blocks, c.Low, c.High)
				}
			}
		}
		q := *p
		q.Caches = nil
		for i, c := range caches.Points {
			free, err := q.MissRatios([]uint64{c.Blocks}, CurveOptions{})
			if err != nil {
				t.Fatal(err)
			}
			switch f := free.Points[0]; {
			case f.High < c.High || f.Low > c.Low || f.MissRatio != c.MissRatio:
				t.Errorf("%+v by itself, %+v beside others", f, c)
			case f.High > c.High || f.Low < c.Low:
				cuts++
			}
			if i > 0 && c.High > max(caches.Points[i-1].High, c.MissRatio) {
				t.Errorf("%+v", caches.Points)
			}
		}
	}
	if cuts == 0 {
		t.Error("no band would have been other without it")
	}
	t.Logf("%d of 120 bands would have been other", cuts)
}

// Errors are factors of a ratio: of some each of which leaves much of it, together so much is left. What may leave nothing leaves nothing,
// what is not known at all is off by all that it may, and of what fewer than three holds tell nothing is certain.
func TestFactors(t *testing.T) {
	at := func(change func(*bander)) Point {
		one := func(r float64) []float64 { return []float64{r} }
		x := &bander{p: &Profile{Clock: Clock{Unit: "accesses", RateSource: "measured", ColdNS: 1}}, e: &estimate{mass: NewHist(LogBins(1))}, clusters: 1000,
			sizes: []uint64{1}, ratio: one(0.04), base: one(0.02), variance: one(0.04 * 0.04 / 20), unit: one(1e-3),
			near: one(0.05), far: one(0.025), slow: one(0.01), fast: one(0.03), still: one(0.02), waiting: one(0.02), warm: one(0.018), cool: one(0.02)}
		for k := range x.less {
			x.less[k], x.more[k] = one(0.015), one(0.02)
		}
		change(x)
		return x.point(0)
	}
	low, high := gammaBand(0.04, 0.04*0.04/20, 1e-3)
	wider := studentFactor(1000)
	fewer, more := wider*math.Log(0.04/low), math.Log(1+wider*(high/0.04-1))
	squares := func(logs ...float64) (sum float64) {
		for _, l := range logs {
			sum += l * l
		}
		return math.Sqrt(sum)
	}
	down := func(logs ...float64) float64 { return 0.04 * math.Exp(-squares(append(logs, fewer)...)) }
	far, slow, warm, place := math.Log(1.6), math.Log(2), math.Log(1/0.9), 1.96*placeError
	near(t, "independent", at(func(*bander) {}).Low, down(far, slow, warm), 1e-9)
	near(t, "high", at(func(*bander) {}).High, 0.04*math.Exp(squares(more, math.Log(1.25), math.Log(1.5))), 1e-9)
	near(t, "by time", at(func(x *bander) { x.p.Clock.Unit = "nanoseconds" }).Low, down(far, slow, warm, place), 1e-9)
	near(t, "rate assumed", at(func(x *bander) { x.p.Clock.RateSource = AssumedRate }).Low, 0.04*math.Exp(-squares(squares(fewer, far)+slow, warm)), 1e-9)
	near(t, "cold caches unknown", at(func(x *bander) { x.p.Clock.ColdNS = 0 }).Low, down(far, slow)*0.9, 1e-9)
	near(t, "waiting more", at(func(x *bander) { x.waiting[0] = 0.002 }).Low, 0.04*math.Exp(-fewer)*0.1, 1e-9)
	near(t, "together", at(func(x *bander) { x.less[1][0] = 0.001 }).Low, 0.04*0.05, 1e-9)
	for name, change := range map[string]func(*bander){
		"far":        func(x *bander) { x.far[0] = 0 },
		"slow":       func(x *bander) { x.slow[0] = 0 },
		"warm":       func(x *bander) { x.warm[0] = 0 },
		"together":   func(x *bander) { x.less[1][0] = 0 },
		"none":       func(x *bander) { x.ratio[0] = 0 },
		"base":       func(x *bander) { x.base[0] = 0 },
		"two holds":  func(x *bander) { x.variance[0] = 0.04 * 0.04 / 2.9 },
		"no cluster": func(x *bander) { x.variance[0] = math.Inf(1) },
	} {
		if got := at(change).Low; got != 0 {
			t.Errorf("%s leaves nothing: low end %v", name, got)
		}
	}
}
