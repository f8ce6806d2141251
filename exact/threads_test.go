package exact

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

func mustSampler(t testing.TB, c ThreadSamplerConfig) *ThreadSampler {
	t.Helper()
	s, err := NewThreadSampler(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustStacks(t testing.TB, blockBytes int, shared bool) Stacks {
	t.Helper()
	var s Stacks
	var err error
	if shared {
		s, err = NewSharedStack(blockBytes)
	} else {
		s, err = NewPrivateStacks(blockBytes)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Sampling every touch gives the exact stacks, touch by touch.
func TestThreadSamplerEveryTouch(t *testing.T) {
	r := seededRand(t)
	for _, shared := range []bool{false, true} {
		for _, parallel := range []bool{false, true} {
			if !shared && parallel {
				continue // learns of writes late by design
			}
			accesses := threadAccesses(r, 4000, 4, 60, 0.2)
			for i := range accesses {
				accesses[i].PC = uint64(i) // names the touch
			}
			// The touch that follows each use in its stack, by the exact stacks.
			type key struct {
				thread int32
				block  uint64
			}
			next := map[uint64]Touch{}
			last := map[key]uint64{}
			err := mustStacks(t, model.WordBytes, shared).Add(accesses, func(x *Touch) {
				k := key{x.Thread, x.Block}
				if shared {
					k.thread = 0
				}
				if use, ok := last[k]; ok {
					next[use] = *x
				}
				last[k] = x.PC
			})
			if err != nil {
				t.Fatal(err)
			}
			seen := map[uint64]bool{}
			var kinds [model.NumKinds]int
			check := func(x *ThreadSample) {
				if seen[x.PC] {
					t.Fatalf("sample %d twice", x.PC)
				}
				seen[x.PC] = true
				kinds[x.Kind]++
				want, ok := next[x.PC]
				if !ok {
					// Nothing follows: open at the end, or another thread's write ended it.
					if x.Kind != model.Censored && x.Kind != model.Invalidated {
						t.Fatalf("shared %v: use %d: %+v, but it has no reuse", shared, x.PC, *x)
					}
					return
				}
				if x.Kind != want.Kind || x.Kind == model.Reuse && (x.Dist != want.Dist || x.Time != want.Time || x.EndPC != want.PC || x.EndThread != want.Thread) {
					t.Fatalf("shared %v parallel %v: use %d: %+v, want %+v", shared, parallel, x.PC, *x, want)
				}
				if x.Kind == model.Invalidated && accesses[x.EndPC].Op != model.Store {
					t.Fatalf("use %d invalidated by a load: %+v", x.PC, *x)
				}
			}
			s := mustSampler(t, ThreadSamplerConfig{BlockBytes: model.WordBytes, MeanPeriod: 1, Shared: shared, Parallel: parallel})
			s.Add(accesses, check)
			s.Finish(check)
			if len(seen) != len(accesses) {
				t.Errorf("%d samples of %d touches", len(seen), len(accesses))
			}
			if kinds[model.Reuse] == 0 || !shared && kinds[model.Invalidated] == 0 {
				t.Errorf("shared %v: kinds %v: the test does not test", shared, kinds)
			}
		}
	}
}

// Private stacks in Parallel mode learn of writes at a reuse or at Sync.
func TestThreadSamplerParallelWrites(t *testing.T) {
	const a, b, c, d = 8, 16, 24, 32
	run := func(sync bool, accesses ...model.Access) []ThreadSample {
		s := mustSampler(t, ThreadSamplerConfig{BlockBytes: 8, MeanPeriod: 1e18, Parallel: true})
		s.untilNext = 1 // sample the first access only
		var got []ThreadSample
		for _, x := range accesses {
			s.Add([]model.Access{x}, func(x *ThreadSample) { got = append(got, *x) })
			if sync && x.Op == model.Store {
				s.Sync(func(x *ThreadSample) { got = append(got, *x) })
			}
		}
		s.Finish(func(x *ThreadSample) { got = append(got, *x) })
		return got
	}
	one := func(addr uint64) model.Access { return model.Access{Addr: addr, Thread: 1} }
	write := func(addr uint64) model.Access { return model.Access{Addr: addr, Thread: 2, Op: model.Store} }
	check := func(name string, got []ThreadSample, kind model.Kind, dist uint64) {
		t.Helper()
		if len(got) != 1 || got[0].Kind != kind || got[0].Dist != dist {
			t.Errorf("%s: %+v, want %v at %d", name, got, kind, dist)
		}
	}
	// b leaves a hole, which c fills: two blocks above a. Without
	// synchronisation the hole is made too late and the distance comes out
	// too large, as section 3.3 says.
	check("synchronised", run(true, one(a), one(b), write(b), one(c), one(d), one(a)), model.Reuse, 2)
	check("not synchronised", run(false, one(a), one(b), write(b), one(c), one(d), one(a)), model.Reuse, 3)
	check("hole not filled", run(false, one(a), one(b), write(b), one(a)), model.Reuse, 1)
	check("write of the sampled block, at Sync", run(true, one(a), write(a)), model.Invalidated, 0)
	check("write of the sampled block, at reuse", run(false, one(a), write(a), one(a)), model.Invalidated, 0)
	check("write of the sampled block, at the end", run(false, one(a), write(a)), model.Invalidated, 0)
	check("write by the owner", run(false, one(a), model.Access{Addr: b, Thread: 1, Op: model.Store}, one(a)), model.Reuse, 1)
}

func TestThreadSamplerPruning(t *testing.T) {
	// The first block is never touched again; the rest loop over 50 blocks,
	// then the footprint grows.
	accesses := []model.Access{{Addr: 1 << 40}}
	for i := range 200_000 {
		accesses = append(accesses, model.Access{Addr: uint64(i%50) * 8})
	}
	for i := range 1000 {
		accesses = append(accesses, model.Access{Addr: uint64(i+1000) * 8})
	}
	for i := range 20_000 {
		accesses = append(accesses, model.Access{Addr: uint64(i%50) * 8})
	}
	for _, pruneAfter := range []int{0, 100, 1 << 30} {
		s := mustSampler(t, ThreadSamplerConfig{BlockBytes: 8, MeanPeriod: 500, PruneAfter: pruneAfter, PruneQuantile: 0.99})
		s.untilNext = 1
		var kinds [model.NumKinds]int
		note := func(x *ThreadSample) {
			kinds[x.Kind]++
			if x.Block == 1<<37 && x.Kind == model.Pruned && x.Dist < 50 {
				t.Errorf("pruned at distance %d", x.Dist)
			}
		}
		s.Add(accesses, note)
		s.Finish(note)
		counts := s.Counts()
		if uint64(kinds[model.Reuse]+kinds[model.Pruned]+kinds[model.Censored]) != counts.Samples {
			t.Errorf("%d samples, kinds %v", counts.Samples, kinds)
		}
		if pruneAfter == 100 {
			if kinds[model.Pruned] == 0 || counts.Analyzed > counts.Touches*3/4 {
				t.Errorf("pruning: kinds %v, counts %+v", kinds, counts)
			}
		} else if kinds[model.Pruned] != 0 || counts.Analyzed != counts.Touches-1 {
			t.Errorf("no pruning: kinds %v, counts %+v", kinds, counts)
		}
	}
}

func TestThreadSamplerPeriods(t *testing.T) {
	for _, mean := range []float64{1, 1.5, 10, 1e4, 1e9} {
		s := mustSampler(t, ThreadSamplerConfig{BlockBytes: 8, MeanPeriod: mean, Seed: 3})
		const n = 20_000
		var sum, one float64
		for range n {
			g := s.drawPeriod()
			sum += float64(g)
			if g == 1 {
				one++
			}
		}
		sd := math.Sqrt(mean * (mean - 1))
		near(t, "mean period", sum/n, mean, 5*sd/math.Sqrt(n))
		near(t, "periods of 1", one/n, 1/mean, 5*math.Sqrt(1/mean/n))
	}
}

func TestThreadSamplerConfig(t *testing.T) {
	for _, c := range []ThreadSamplerConfig{
		{},
		{BlockBytes: 8},
		{BlockBytes: 7, MeanPeriod: 10},
		{BlockBytes: 8, MeanPeriod: math.NaN()},
		{BlockBytes: 8, MeanPeriod: 0.5},
		{BlockBytes: 8, MeanPeriod: math.Inf(1)},
		{BlockBytes: 8, MeanPeriod: 5, PruneAfter: 1},
		{BlockBytes: 8, MeanPeriod: 5, PruneAfter: 1, PruneQuantile: 1},
		{BlockBytes: 8, MeanPeriod: 5, PruneAfter: -1, PruneQuantile: 0.5},
	} {
		if _, err := NewThreadSampler(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

func FuzzBlockSet(f *testing.F) {
	f.Add([]byte{1, 2, 3, 129, 1})
	f.Fuzz(func(t *testing.T, ops []byte) {
		var s blockSet
		want := map[uint64]bool{}
		for i, op := range ops {
			b := uint64(op % 64)
			if i%7 == 0 {
				b = uint64(i) * 1e15
			}
			switch {
			case op == 255:
				s.reset()
				clear(want)
			case op >= 128:
				if got := s.remove(b); got != want[b] {
					t.Fatalf("remove(%d) is %v", b, got)
				}
				delete(want, b)
			default:
				if got := s.add(b); got == want[b] {
					t.Fatalf("add(%d) is %v", b, got)
				}
				want[b] = true
			}
		}
		n := 0
		s.each(func(b uint64) {
			n++
			if !want[b] {
				t.Fatalf("%d is in the set", b)
			}
		})
		if n != len(want) || s.len() != uint64(n) {
			t.Fatalf("%d blocks, len %d, want %d", n, s.len(), len(want))
		}
	})
}

// parallelProgram is the stream of a made-up program in four shapes: threads
// that sweep their own part of an array and read their neighbours' edges, with
// barriers; readers of one table with a few writes; a producer and consumers;
// and threads that share nothing. The threads' accesses are interleaved at
// random in runs of up to maxRun. A nil part of the result is a barrier.
func parallelProgram(r *rand.Rand, shape string, threads, perThread, maxRun int) [][]model.Access {
	const part = 1500 // blocks
	var phases [][][]model.Access
	phase := func() [][]model.Access {
		phases = append(phases, make([][]model.Access, threads))
		return phases[len(phases)-1]
	}
	done := 0
	for done < perThread {
		p := phase()
		n := min(perThread-done, 3*part)
		done += n
		for th := range threads {
			base := uint64(th) * part
			stack := uint64(1<<20 + th*1000)
			add := func(b uint64, op model.Op, pc uint64) {
				p[th] = append(p[th], model.Access{Addr: b * model.LineBytes, Size: 8, Thread: int32(th), Op: op, PC: pc})
			}
			for i := 0; i < n; i++ {
				x := uint64(i)
				switch {
				case i%3 > 0: // locals, and a little further up the stack
					add(stack+uint64(20*r.Float64()*r.Float64()), model.Op(1+r.IntN(2)), 1)
				case shape == "stencil":
					at := base + x/3%part
					if x%30 == 0 {
						at = (at + part) % (part * uint64(threads)) // the neighbour's part
						add(at, model.Load, 2)
					} else {
						add(at, model.Op(1+r.IntN(2)), 3)
					}
				case shape == "table":
					b := uint64(4000 * r.Float64() * r.Float64())
					op := model.Load
					if r.IntN(50) == 0 {
						op = model.Store
					}
					add(1<<21+b, op, 4)
				case shape == "pipeline":
					b := 1<<22 + x/3%part
					if th == 0 {
						add(b, model.Store, 5)
					} else if r.IntN(4) > 0 {
						add(b, model.Load, 6)
					} else {
						add(base+1<<23+uint64(r.IntN(600)), model.Op(1+r.IntN(2)), 7)
					}
				default: // apart
					add(base+1<<24+uint64(part*r.Float64()*r.Float64()), model.Op(1+r.IntN(2)), 8)
				}
			}
		}
	}
	var out [][]model.Access
	for _, p := range phases {
		var stream []model.Access
		for left := threads; left > 0; {
			left = 0
			for _, th := range r.Perm(threads) {
				n := min(1+r.IntN(maxRun), len(p[th]))
				stream = append(stream, p[th][:n]...)
				p[th] = p[th][n:]
				if len(p[th]) > 0 {
					left++
				}
			}
		}
		out = append(out, stream, nil)
	}
	return out
}

// endless puts all that is not a reuse in one bin, as the paper does.
func endless(h *model.Hist) *model.Hist {
	c := h.Clone()
	c.Cold, c.Censored, c.Invalidated, c.Pruned = h.Endless(), 0, 0, 0
	return c
}

// The accuracy of sampling, measured as in Table 1 of Schuff et al.: overlap of
// the sampled and the full histogram, 10 bins an octave. The paper has 95.6 %
// for private stacks, 74.1 % for shared ones in parallel and 88.9 % for shared
// ones in sequence, on programs. Parallel shared sampling loses because the
// threads' order is not that of the full analysis: here, each runs ahead of the
// others by up to maxRun accesses.
func TestPaperSchuffTable1(t *testing.T) {
	const threads, perThread, period = 4, 100_000, 100
	variants := []struct {
		name             string
		shared, parallel bool
		maxRun           int
	}{
		{"private, sequential", false, false, 5},
		{"private, parallel", false, true, 2000},
		{"shared, sequential", true, false, 5},
		{"shared, parallel", true, true, 20},
		{"shared, parallel", true, true, 200},
		{"shared, parallel", true, true, 2000},
	}
	shapes := []string{"stencil", "table", "pipeline", "apart"}
	bins := model.LogBins(10)
	full := map[bool][]*model.Hist{} // by shared
	for _, shared := range []bool{false, true} {
		for i, shape := range shapes {
			h := model.NewHist(bins)
			exact := mustStacks(t, model.LineBytes, shared)
			for _, part := range parallelProgram(newRand(t, uint64(i)), shape, threads, perThread, 5) {
				if err := exact.Add(part, func(x *Touch) { h.AddKind(x.Kind, x.Dist, 1) }); err != nil {
					t.Fatal(err)
				}
			}
			full[shared] = append(full[shared], endless(h))
		}
	}
	mean := make([]float64, len(variants))
	for k, v := range variants {
		for i, shape := range shapes {
			sampled := model.NewHist(bins)
			s := mustSampler(t, ThreadSamplerConfig{BlockBytes: model.LineBytes, MeanPeriod: period, Seed: uint64(i),
				Shared: v.shared, Parallel: v.parallel, PruneAfter: 100, PruneQuantile: 0.99})
			note := func(x *ThreadSample) { sampled.AddKind(x.Kind, x.Dist, 1) }
			for _, part := range parallelProgram(newRand(t, uint64(i)), shape, threads, perThread, v.maxRun) {
				if part == nil {
					s.Sync(note)
				}
				s.Add(part, note)
			}
			s.Finish(note)
			acc, err := model.Accuracy(full[v.shared][i], endless(sampled))
			if err != nil {
				t.Fatal(err)
			}
			mean[k] += acc / float64(len(shapes))
			c := s.Counts()
			t.Logf("%-19s skew %-4d %-8s accuracy %.1f %%, %d samples, %d pruned, at most %d open",
				v.name, v.maxRun, shape, 100*acc, c.Samples, int(sampled.Pruned), c.MaxOpen)
			if sampled.Pruned > 0.011*float64(c.Samples) {
				t.Errorf("%s, %s: %v of %d samples pruned, want at most 1 %%", v.name, shape, sampled.Pruned, c.Samples)
			}
		}
		t.Logf("%-19s skew %-4d mean     accuracy %.1f %%", v.name, v.maxRun, 100*mean[k])
	}
	for k := range 3 {
		if mean[k] < 0.93 {
			t.Errorf("%s: mean accuracy %.1f %%, want at least 93", variants[k].name, 100*mean[k])
		}
	}
	if !(mean[2] > mean[3] && mean[3] > mean[4] && mean[4] > mean[5]) {
		t.Errorf("shared stacks: accuracies %.3v do not fall with the skew", mean[2:])
	}
}

// Touches are left out within one Add only: access by access none is, and the
// samples must be the same.
func TestThreadSamplerLeavesOut(t *testing.T) {
	r := seededRand(t)
	for _, shape := range []string{"stencil", "table", "pipeline", "apart"} {
		parts := parallelProgram(r, shape, 3, 20_000, 40)
		for _, c := range []ThreadSamplerConfig{
			{}, {Shared: true}, {Parallel: true}, {Shared: true, Parallel: true}, {PruneAfter: 10, PruneQuantile: 0.9}, {Parallel: true, PruneAfter: 10, PruneQuantile: 0.9},
		} {
			c.BlockBytes, c.MeanPeriod, c.Seed = model.LineBytes, 50, r.Uint64()
			var want, got []ThreadSample
			one, all := mustSampler(t, c), mustSampler(t, c)
			for _, part := range parts {
				if part == nil {
					one.Sync(func(x *ThreadSample) { want = append(want, *x) })
					all.Sync(func(x *ThreadSample) { got = append(got, *x) })
				}
				for i := range part {
					one.Add(part[i:i+1], func(x *ThreadSample) { want = append(want, *x) })
				}
				all.Add(part, func(x *ThreadSample) { got = append(got, *x) })
			}
			one.Finish(func(x *ThreadSample) { want = append(want, *x) })
			all.Finish(func(x *ThreadSample) { got = append(got, *x) })
			if len(want) < 100 || !slices.Equal(got, want) {
				t.Errorf("%s, %+v: %d samples differ from %d without leaving touches out", shape, c, len(got), len(want))
			}
			if one.Counts() != all.Counts() {
				t.Errorf("%s, %+v: counts %+v, want %+v", shape, c, all.Counts(), one.Counts())
			}
		}
	}
}

func benchmarkStream() []model.Access {
	var stream []model.Access
	for _, part := range parallelProgram(rand.New(rand.NewPCG(1, 1)), "stencil", 4, 200_000, 100) {
		stream = append(stream, part...)
	}
	return stream
}

func BenchmarkPrivateStacks(b *testing.B) {
	stream := benchmarkStream()
	s := mustStacks(b, model.LineBytes, false)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Add(stream, func(*Touch) {}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(stream))/b.Elapsed().Seconds()/1e6, "Macc/s")
}

func BenchmarkThreadSampler(b *testing.B) {
	stream := benchmarkStream()
	for _, c := range []struct {
		name   string
		period float64
	}{{"sparse", 1e8}, {"period10k", 1e4}, {"period1k", 1e3}} {
		b.Run(c.name, func(b *testing.B) {
			s := mustSampler(b, ThreadSamplerConfig{BlockBytes: model.LineBytes, MeanPeriod: c.period, Parallel: true, PruneAfter: 100, PruneQuantile: 0.99})
			b.ReportAllocs()
			for b.Loop() {
				s.Add(stream, func(*ThreadSample) {})
			}
			b.ReportMetric(float64(b.N*len(stream))/b.Elapsed().Seconds()/1e6, "Macc/s")
		})
	}
}

// Many open samples, as where much is touched once: 300 after 3 million touches.
func BenchmarkThreadSamplerManyOpen(b *testing.B) {
	stream := make([]model.Access, 3_000_000)
	for i := range stream {
		block := uint64(i % 1000)
		if i%10 == 0 {
			block = uint64(1<<20 + i)
		}
		stream[i] = model.Access{Addr: block * model.LineBytes, Size: 8, Op: model.Load}
	}
	for b.Loop() {
		s := mustSampler(b, ThreadSamplerConfig{BlockBytes: model.LineBytes, MeanPeriod: 1e3, PruneAfter: 100, PruneQuantile: 0.99})
		s.Add(stream, func(*ThreadSample) {})
		b.ReportMetric(float64(s.Counts().MaxOpen), "open")
	}
	b.ReportMetric(float64(b.N*len(stream))/b.Elapsed().Seconds()/1e6, "Macc/s")
}

// Touches of which the sampler would only have taken note can go by unseen.
func TestThreadSamplerSkip(t *testing.T) {
	r := seededRand(t)
	accesses := make([]model.Access, 300_000)
	for i := range accesses {
		accesses[i] = model.Access{Addr: uint64(r.IntN(1+r.IntN(100))) * 8, Size: 8, Op: model.Load, Thread: int32(i / 1000 % 3)}
	}
	for _, shared := range []bool{false, true} {
		c := ThreadSamplerConfig{BlockBytes: 8, MeanPeriod: 2000, Seed: 7, Shared: shared}
		whole, parts := mustSampler(t, c), mustSampler(t, c)
		var want, got []ThreadSample
		whole.Add(accesses, func(x *ThreadSample) { want = append(want, *x) })
		seen := 0
		for rest := accesses; len(rest) > 0; {
			n := min(int(parts.Idle()), len(rest))
			if err := parts.Skip(uint64(n)); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
			n = min(100, len(rest))
			parts.Add(rest[:n], func(x *ThreadSample) { got = append(got, *x) })
			rest = rest[n:]
			seen += n
		}
		if !slices.Equal(got, want) || len(got) == 0 || seen > len(accesses)*9/10 {
			t.Errorf("shared %v: %d samples of %d seen touches, want %d", shared, len(got), seen, len(want))
		}
		if c := parts.Counts(); c.Touches != uint64(len(accesses)) {
			t.Errorf("%d touches, want %d", c.Touches, len(accesses))
		}
		if err := parts.Skip(parts.Idle() + 1); err == nil {
			t.Error("more skipped than was idle")
		}
	}
}
