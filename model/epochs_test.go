package model

import "testing"

// profileOf samples n uses of a trace of blocks, as a thread of its own.
func profileOf(p *Profile, trace []uint64, tid, n int, pick func(n int) int) {
	next := make([]int, len(trace))
	last := map[uint64]int{}
	for i := len(trace) - 1; i >= 0; i-- {
		next[i] = last[trace[i]]
		last[trace[i]] = i + 1
	}
	for range n {
		i := pick(len(trace))
		r := Record{Kind: Cold, TID: tid, Epoch: 1 + i*200/len(trace), Weight: Weight{Observations: 1, Accesses: float64(len(trace)) / float64(n)}}
		if next[i] != 0 {
			r.Kind, r.Time = Reuse, uint64(next[i]-1-i)
		}
		p.Records = append(p.Records, r)
	}
}

// withoutEpochs forgets when, and in which thread, things were.
func withoutEpochs(p *Profile) *Profile {
	q := *p
	q.Records = append([]Record(nil), p.Records...)
	for i := range q.Records {
		q.Records[i].TID, q.Records[i].Epoch = 0, 0
	}
	return &q
}

// A profile whose records say when they were is right where the program
// changes: sampled, and by all ways out of the model.
func TestProfileEpochs(t *testing.T) {
	rng := newRand(t, 51)
	trace := make([]uint64, 400_000)
	for i := range trace {
		if i/50_000%2 == 0 {
			trace[i] = uint64(i % 12)
		} else {
			trace[i] = 100 + rng.Uint64N(1500)
		}
	}
	l2 := LogBins(1)
	_, dists := histsOf(trace, LogBins(10), l2)
	p := &Profile{Block: 64, BinsPerOctave: 10, Caches: []Cache{{Size: 64 * 512}}}
	profileOf(p, trace, 7, 3000, rng.IntN)
	accuracy := func(p *Profile) float64 {
		h, err := p.Stacks(l2)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Accuracy(dists, h)
		if err != nil {
			t.Fatal(err)
		}
		return 100 * a
	}
	before, after := accuracy(withoutEpochs(p)), accuracy(p)
	t.Logf("l2 without epochs %.1f, with %.1f", before, after)
	if after < 93 || after < before+5 {
		t.Errorf("l2 %.1f with epochs, %.1f without: want 93 and 5 more", after, before)
	}
	// Joining epochs, as the collector does, changes nothing.
	q := *p
	q.Records = append([]Record(nil), p.Records...)
	q.JoinEpochs()
	near(t, "l2 after joining", accuracy(&q), after, 1e-9)
	seen := map[int]int{}
	for _, r := range q.Records {
		seen[r.Epoch]++
	}
	for e, n := range seen {
		if n < leastEpoch {
			t.Errorf("epoch %d has %d observations after joining", e, n)
		}
	}
	// The curve, the bins and the records say the same.
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	var misses, accesses float64
	for _, r := range p.Records {
		misses += r.Misses[0]
		accesses += r.Accesses
	}
	c, err := p.MissRatios([]uint64{512}, CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "miss ratio", c.Points[0].MissRatio, misses/accesses, 1e-9)
	near(t, "exact miss ratio", c.Points[0].MissRatio, dists.MissRatio(512), 0.03)
	b, err := p.StackBands(l2, CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h, _ := p.Stacks(l2)
	for i := range h.W {
		near(t, "stack band", b.H.W[i], h.W[i], 1e-6*h.Total())
		if b.Low[i] > h.W[i]+1e-9 || b.High[i] < h.W[i]-1e-9 {
			t.Errorf("bin %d: %v is not in its band %v to %v", i, h.W[i], b.Low[i], b.High[i])
		}
	}
}

// Threads that differ get each its own stack distances, epochs or not: beside a
// loop over 40 blocks, a thread that touches 4000 at random. Taken as one, half
// of the accesses in its windows would be taken for the loop's. Threads of a
// few observations each are taken together.
func TestProfileThreads(t *testing.T) {
	rng := newRand(t, 52)
	loop, random := make([]uint64, 100_000), make([]uint64, 100_000)
	for i := range loop {
		loop[i], random[i] = uint64(i%40), rng.Uint64N(4000)
	}
	_, dists := histsOf(random, LogBins(10), LinearBins(1, 4001))
	var exact float64
	for d, w := range dists.W {
		exact += float64(d) * w / dists.Finite()
	}
	p := &Profile{Block: 1, BinsPerOctave: 10, Caches: []Cache{{Size: 100}}}
	const n = 1000
	profileOf(p, random, 2, n, rng.IntN)
	profileOf(p, loop, 1, n, rng.IntN)
	for tid := range 200 {
		profileOf(p, loop[:10_000], 100+tid, 2, rng.IntN)
	}
	for i := range p.Records {
		p.Records[i].Epoch = 0
	}
	if g := p.epochGroups(); len(g.first) != 3 || g.rest != 2 {
		t.Errorf("groups %+v, want two threads and the rest", g.first)
	}
	mean := func(p *Profile) float64 {
		if err := p.Derive(); err != nil {
			t.Fatal(err)
		}
		var distance, reuses float64
		for _, r := range p.Records[:n] {
			if r.Kind == Reuse {
				distance += r.Distance
				reuses++
			}
		}
		return distance / reuses
	}
	by, one := mean(p), mean(withoutEpochs(p))
	t.Logf("mean distance of the random thread: exact %.0f, by threads %.0f, as one %.0f", exact, by, one)
	near(t, "mean distance by threads", by, exact, 0.08*exact)
	if one > 0.7*exact {
		t.Errorf("mean distance as one %.0f: the test tells nothing", one)
	}
}

// The bands of the time-local conversion cover the chance of sampling, though
// their variance is that of the stationary one. What they are to hold here is
// the mean over all samples: that the conversion errs is another matter.
func TestBandsCoverLocal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rng := newRand(t, 54)
	trace := make([]uint64, 400_000)
	for i := range trace {
		if i/50_000%2 == 0 {
			trace[i] = rng.Uint64N(40)
		} else {
			trace[i] = 100 + uint64(rng.ExpFloat64()*300)
		}
	}
	sizes := []uint64{4, 16, 64, 256, 1024}
	const runs = 100
	points := make([][]Point, len(sizes))
	for range runs {
		p := &Profile{Block: 64, BinsPerOctave: 10}
		profileOf(p, trace, 7, 1000, rng.IntN)
		c, err := p.MissRatios(sizes, CurveOptions{certain: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, q := range c.Points {
			points[i] = append(points[i], q)
		}
	}
	in := 0
	for i, ps := range points {
		mean := 0.0
		for _, q := range ps {
			mean += q.MissRatio / runs
		}
		here := 0
		for _, q := range ps {
			if q.Low <= mean && mean <= q.High {
				here++
			}
		}
		t.Logf("%d blocks: mean %.4f, covered %d of %d", sizes[i], mean, here, runs)
		in += here
		if here < 75 { // measured: 83 at the least, where few reuses reach
			t.Errorf("%d blocks: covered %d of %d", sizes[i], here, runs)
		}
	}
	if cover := float64(in) / float64(runs*len(sizes)); cover < 0.92 {
		t.Errorf("bands cover %.3f", cover)
	}
}

// What is cut off moves to later ends; epochs add up to the whole run.
func TestEpochsAddUp(t *testing.T) {
	rng := newRand(t, 53)
	for range 30 {
		p := testProfile()
		for range 400 {
			r := rec(Kind(rng.IntN(int(NumKinds))), 1+rng.Uint64N(1<<rng.IntN(20)), float64(rng.IntN(1000)))
			r.TID, r.Epoch = rng.IntN(3), rng.IntN(4)
			p.Records = append(p.Records, r)
		}
		e, err := p.estimate()
		if err != nil {
			t.Fatal(err)
		}
		l, err := p.local(e)
		if err != nil {
			t.Fatal(err)
		}
		net, mass := NewHist(e.bins), NewHist(e.bins)
		for i := range l.epochs {
			net.Merge(l.epochs[i].Times)
			mass.Merge(l.times[i])
		}
		for i := range net.W {
			near(t, "net", net.W[i], e.net.W[i], 1e-6)
			near(t, "mass", mass.W[i], e.mass.W[i], 1e-6)
		}
		near(t, "never", net.Cold, e.net.Cold, 1e-6)
	}
}
