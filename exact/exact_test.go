package exact

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

func randomAccesses(r *rand.Rand, n int, addresses uint64) []model.Access {
	sizes := []uint32{0, 1, 2, 3, 4, 8, 8, 8, 16, 32, 64, 100, 5000}
	a := make([]model.Access, n)
	for i := range a {
		a[i] = model.Access{
			Addr:   r.Uint64N(addresses) - addresses/2,
			Size:   sizes[r.IntN(len(sizes))],
			Op:     model.Op(r.IntN(3)),
			Thread: int32(r.IntN(4)),
			PC:     uint64(r.IntN(50)),
		}
	}
	return a
}

// touchesOf lists the blocks the accesses overlap by visiting every byte.
func touchesOf(accesses []model.Access, blockBytes int) (blocks []uint64, stores []bool) {
	for _, a := range accesses {
		seen := false
		var prev uint64
		for i := uint64(0); i < uint64(max(a.Size, 1)); i++ {
			if i > 0 && a.Addr+i == 0 {
				break // the end of the address space
			}
			b := (a.Addr + i) / uint64(blockBytes)
			if !seen || b != prev {
				blocks = append(blocks, b)
				stores = append(stores, a.Op == model.Store)
			}
			seen, prev = true, b
		}
	}
	return blocks, stores
}

func TestExactAgainstBrute(t *testing.T) {
	r := seededRand(t)
	bins := model.LogBins(10)
	for _, block := range []int{1, model.WordBytes, model.LineBytes, model.PageBytes} {
		accesses := randomAccesses(r, 300, 30_000)
		blocks, stores := touchesOf(accesses, block)
		e, err := New(block, bins)
		if err != nil {
			t.Fatal(err)
		}
		for rest := accesses; len(rest) > 0; {
			n := min(1+r.IntN(100), len(rest))
			if err := e.Add(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		times, dists, storeDists := model.NewHist(bins), model.NewHist(bins), model.NewHist(bins)
		var brute bruteStack
		var ops [3]uint64
		for _, a := range accesses {
			ops[a.Op]++
		}
		if block == 1 {
			blocks, stores = nil, nil // too many for the brute force; counts only
		}
		for i, b := range blocks {
			d, tm := brute.touch(b)
			kind := model.Reuse
			if d == model.Infinite {
				kind = model.Cold
			}
			times.AddKind(kind, tm, 1)
			dists.AddKind(kind, d, 1)
			if stores[i] {
				storeDists.AddKind(kind, d, 1)
			}
		}
		if e.Accesses() != uint64(len(accesses)) || e.Loads() != ops[model.Load] || e.Stores() != ops[model.Store] {
			t.Errorf("block %d: %d accesses, %d loads, %d stores; want %d, %v by Op", block, e.Accesses(), e.Loads(), e.Stores(), len(accesses), ops)
		}
		if block == 1 {
			continue
		}
		equalHist(t, "times", e.Times(), times)
		equalHist(t, "distances", e.Distances(), dists)
		equalHist(t, "store distances", e.StoreDistances(), storeDists)
		sum := e.LoadDistances()
		if err := sum.Merge(e.StoreDistances()); err != nil {
			t.Fatal(err)
		}
		equalHist(t, "loads and stores", sum, dists)
		if e.Touches() != uint64(len(blocks)) || e.Blocks() != uint64(len(brute.stack)) {
			t.Errorf("block %d: %d touches of %d blocks, want %d of %d", block, e.Touches(), e.Blocks(), len(blocks), len(brute.stack))
		}
	}
}

func equalHist(t *testing.T, what string, got, want *model.Hist) {
	t.Helper()
	if acc, err := model.Accuracy(got, want); err != nil || math.Abs(1-acc) > 1e-12 || got.Total() != want.Total() || got.N != want.N {
		t.Errorf("%s: accuracy %v (%v), total %v N %d, want %v %d", what, acc, err, got.Total(), got.N, want.Total(), want.N)
	}
}

// windowsFootprint averages the number of distinct blocks over all windows.
func windowsFootprint(blocks []uint64, w int) float64 {
	sum := 0
	for at := 0; at+w <= len(blocks); at++ {
		distinct := map[uint64]bool{}
		for _, b := range blocks[at : at+w] {
			distinct[b] = true
		}
		sum += len(distinct)
	}
	return float64(sum) / float64(len(blocks)-w+1)
}

func footprintOf(t *testing.T, blocks []uint64, bins *model.Bins) map[uint64]float64 {
	t.Helper()
	fp := map[uint64]float64{}
	for _, p := range exactOf(t, blocks, bins).Footprint() {
		fp[p.Window] = p.Blocks
	}
	return fp
}

func TestFootprintAgainstBrute(t *testing.T) {
	r := seededRand(t)
	for name, blocks := range testStreams(r, 300, 40) {
		for _, bins := range []*model.Bins{model.LogBins(1), model.LogBins(10), model.LinearBins(7, 200)} {
			fp := footprintOf(t, blocks, bins)
			if len(fp) < 5 {
				t.Fatalf("%s: footprint at %d windows only", name, len(fp))
			}
			for w, got := range fp {
				if want := windowsFootprint(blocks, int(w)); math.Abs(got-want) > 1e-9 {
					t.Errorf("%s: fp(%d) = %v, want %v", name, w, got, want)
				}
			}
		}
	}
}

// Footprints never fall, and those of a cyclic stream are exactly min(w, m).
func TestFootprintMonotone(t *testing.T) {
	r := seededRand(t)
	for name, blocks := range testStreams(r, 20_000, 3000) {
		prev := 0.0
		for _, p := range exactOf(t, blocks, model.LogBins(10)).Footprint() {
			if p.Blocks < prev-1e-9 {
				t.Errorf("%s: fp(%d) = %v, below %v", name, p.Window, p.Blocks, prev)
			}
			prev = p.Blocks
			if want := float64(min(p.Window, 3000)); name == "loop" && math.Abs(p.Blocks-want) > 1e-6 {
				t.Errorf("loop: fp(%d) = %v, want %v", p.Window, p.Blocks, want)
			}
		}
	}
}

func TestExactEdges(t *testing.T) {
	e, err := New(model.LineBytes, model.LogBins(10))
	if err != nil {
		t.Fatal(err)
	}
	if e.Footprint() != nil || e.Times().Total() != 0 || e.Blocks() != 0 {
		t.Error("an empty trace has results")
	}
	if err := e.Add(nil); err != nil {
		t.Fatal(err)
	}
	if err := e.Add([]model.Access{{Addr: ^uint64(0), Size: 8}}); err != nil { // runs past the end
		t.Fatal(err)
	}
	if h := e.Distances(); h.Cold != 1 || h.N != 1 {
		t.Errorf("one access: %+v", h)
	}
	if fp := e.Footprint(); len(fp) != 1 || fp[0] != (model.FootprintPoint{Window: 1, Blocks: 1}) {
		t.Errorf("one access: footprint %v", fp)
	}
	if err := e.Add([]model.Access{{Addr: 0}, {Addr: ^uint64(0)}, {Addr: 63, Size: 2}}); err != nil {
		t.Fatal(err)
	}
	if e.Touches() != 5 || e.Blocks() != 3 {
		t.Errorf("%d touches of %d blocks, want 5 of 3", e.Touches(), e.Blocks())
	}
	for _, bytes := range []int{0, -8, 3, 100} {
		if _, err := New(bytes, model.LogBins(10)); err == nil {
			t.Errorf("block size %d: no error", bytes)
		}
	}
}

func BenchmarkExactZipfLines(b *testing.B) {
	law, err := ZipfLaw(1.3, 110_000)
	if err != nil {
		b.Fatal(err)
	}
	g, err := NewGenerator(law, 110_000, 1)
	if err != nil {
		b.Fatal(err)
	}
	blocks := make([]uint64, 1<<22)
	if err := g.Fill(blocks); err != nil {
		b.Fatal(err)
	}
	accesses := make([]model.Access, len(blocks))
	for i, x := range blocks {
		accesses[i] = model.Access{Addr: x * model.LineBytes, Size: 8}
	}
	e, err := New(model.LineBytes, model.LogBins(10))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	n := 0
	for b.Loop() {
		at := n % len(accesses)
		part := accesses[at:min(at+4096, len(accesses))]
		if err := e.Add(part); err != nil {
			b.Fatal(err)
		}
		n += len(part)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Macc/s")
}

// What is added as touches, and counted on another goroutine, is what an Analysis
// finds access by access.
func TestExactTouches(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	r := seededRand(t)
	bins := model.LogBins(10)
	for name, stream := range testStreams(r, 100_000, 4000) {
		accesses := asAccesses(r, stream)
		want, err := New(model.LineBytes, bins)
		if err != nil {
			t.Fatal(err)
		}
		if err := want.Add(accesses); err != nil {
			t.Fatal(err)
		}
		e, err := New(model.LineBytes, bins)
		if err != nil {
			t.Fatal(err)
		}
		parallel, err := NewParallel(model.LineBytes, bins, ParallelConfig{Jobs: 2, PieceTouches: 1 + r.IntN(5000)})
		if err != nil {
			t.Fatal(err)
		}
		for rest := accesses; len(rest) > 0; {
			part := rest[:min(1+r.IntN(5000), len(rest))]
			rest = rest[len(part):]
			var s splitter
			touches := model.Touches{Blocks: make([]uint64, 3*len(part)), Runs: make([]uint8, 3*len(part))}
			n, _, left := s.fill(e.gran, part, touches.Blocks, touches.Runs, math.MaxInt)
			if len(left) > 0 {
				t.Fatalf("%d accesses have more than %d touches", len(part), 3*len(part))
			}
			touches.Blocks, touches.Runs, touches.Ops, touches.Repeats = touches.Blocks[:n], touches.Runs[:n], s.count.Ops, s.count.Repeats
			for _, to := range []interface{ AddTouches(*model.Touches) error }{e, parallel} {
				if err := to.AddTouches(&touches); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := parallel.Finish(); err != nil {
			t.Fatal(err)
		}
		type results interface {
			Loads() uint64
			Stores() uint64
			Touches() uint64
			Blocks() uint64
			Times() *model.Hist
			StoreDistances() *model.Hist
			Distances() *model.Hist
			Footprint() []model.FootprintPoint
			WindowError() float64
		}
		for how, got := range map[string]results{"touches": e, "parallel": parallel} {
			if got.Loads() != want.Loads() || got.Stores() != want.Stores() || got.Touches() != want.Touches() || got.Blocks() != want.Blocks() ||
				!slices.Equal(got.Times().W, want.Times().W) || !slices.Equal(got.Distances().W, want.Distances().W) ||
				!slices.Equal(got.StoreDistances().W, want.StoreDistances().W) ||
				!slices.Equal(got.Footprint(), want.Footprint()) || got.WindowError() != want.WindowError() {
				t.Errorf("%s, %s: not what an Analysis finds", name, how)
			}
		}
	}
}
