package exact

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

func mustParallel(t testing.TB, block int, bins *model.Bins, c ParallelConfig, accesses []model.Access, step int) *Parallel {
	t.Helper()
	p, err := NewParallel(block, bins, c)
	if err != nil {
		t.Fatal(err)
	}
	for rest := accesses; len(rest) > 0; {
		n := min(step, len(rest))
		if err := p.Add(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := p.Finish(); err != nil {
		t.Fatal(err)
	}
	return p
}

// sameExact compares all that two analyses have found, to the last touch.
func sameExact(t *testing.T, what string, want *Analysis, got *Parallel) {
	t.Helper()
	if a, b := [5]uint64{want.Accesses(), want.Loads(), want.Stores(), want.Touches(), want.Blocks()},
		[5]uint64{got.Accesses(), got.Loads(), got.Stores(), got.Touches(), got.Blocks()}; a != b {
		t.Errorf("%s: accesses, loads, stores, touches, blocks %v, want %v", what, b, a)
	}
	for _, h := range []struct {
		name      string
		want, got *model.Hist
	}{
		{"times", want.Times(), got.Times()}, {"distances", want.Distances(), got.Distances()},
		{"load distances", want.LoadDistances(), got.LoadDistances()}, {"store distances", want.StoreDistances(), got.StoreDistances()},
	} {
		if !slices.Equal(h.want.W, h.got.W) || h.want.Cold != h.got.Cold || h.want.N != h.got.N {
			t.Errorf("%s: %s differ: %d, want %d entries, %v, want %v cold", what, h.name, h.got.N, h.want.N, h.got.Cold, h.want.Cold)
		}
	}
	if !reflect.DeepEqual(want.Footprint(), got.Footprint()) {
		t.Errorf("%s: footprints differ", what)
	}
	if a, b := want.WindowError(), got.WindowError(); a != b {
		t.Errorf("%s: window gap %v, want %v", what, b, a)
	}
}

func asAccesses(r *rand.Rand, blocks []uint64) []model.Access {
	a := make([]model.Access, len(blocks))
	for i, b := range blocks {
		a[i] = model.Access{Addr: b * model.LineBytes, Size: 8, Op: model.Op(r.IntN(3))}
	}
	return a
}

func TestParallelIsExact(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	r := seededRand(t)
	bins := model.LogBins(10)
	for name, blocks := range testStreams(r, 60_000, 9000) {
		accesses := asAccesses(r, blocks)
		want, err := New(model.LineBytes, bins)
		if err != nil {
			t.Fatal(err)
		}
		if err := want.Add(accesses); err != nil {
			t.Fatal(err)
		}
		for _, c := range []ParallelConfig{{Jobs: 1}, {Jobs: 2, PieceTouches: 1000}, {Jobs: 3, PieceTouches: 4096}, {Jobs: 8, PieceTouches: 7777},
			{Jobs: 1, withoutFilter: true}, {Jobs: 2, PieceTouches: 1000, withoutFilter: true}} {
			got := mustParallel(t, model.LineBytes, bins, c, accesses, 1+r.IntN(5000))
			sameExact(t, fmt.Sprintf("%s, %+v", name, c), want, got)
		}
	}
}

// Pieces that are merged touch by touch, alone and among others.
func TestParallelWholePieces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	r := seededRand(t)
	bins := model.LogBins(10)
	for name, blocks := range testStreams(r, 60_000, 9000) {
		accesses := asAccesses(r, blocks)
		want, err := New(model.LineBytes, bins)
		if err != nil {
			t.Fatal(err)
		}
		if err := want.Add(accesses); err != nil {
			t.Fatal(err)
		}
		for _, c := range []ParallelConfig{{Jobs: 1, withoutFilter: true}, {Jobs: 2, PieceTouches: 1000, withoutFilter: true}, {Jobs: 5, PieceTouches: 333}} {
			for _, every := range []uint{2, 1 << 30} {
				p, err := NewParallel(model.LineBytes, bins, c)
				if err != nil {
					t.Fatal(err)
				}
				p.measureEvery = every
				p.handed = 1
				p.manyFirst.Store(true)
				if err := p.Add(accesses); err != nil {
					t.Fatal(err)
				}
				if err := p.Finish(); err != nil {
					t.Fatal(err)
				}
				sameExact(t, fmt.Sprintf("%s, %+v, every %d", name, c, every), want, p)
			}
		}
	}
}

// Accesses that span many blocks, more than a piece holds among them.
func TestParallelWideAccesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	r := seededRand(t)
	bins := model.LogBins(4)
	accesses := randomAccesses(r, 5000, 300_000)
	for i := range accesses {
		if r.IntN(500) == 0 {
			accesses[i].Size = 1 + r.Uint32N(40_000)
		}
	}
	accesses = append(accesses, model.Access{Addr: ^uint64(0), Size: 9}, model.Access{Addr: 0, Size: 0})
	want, err := New(model.WordBytes, bins)
	if err != nil {
		t.Fatal(err)
	}
	if err := want.Add(accesses); err != nil {
		t.Fatal(err)
	}
	for _, pieces := range []int{1, 37, 1000, 0} {
		got := mustParallel(t, model.WordBytes, bins, ParallelConfig{Jobs: 2, PieceTouches: pieces}, accesses, 300)
		sameExact(t, fmt.Sprint(pieces), want, got)
	}
}

func FuzzParallel(f *testing.F) {
	f.Add([]byte("abbcaabbcaXYZa"), uint8(3), uint8(2))
	f.Add([]byte{0, 255, 0, 255, 1, 1, 2, 0}, uint8(1), uint8(3))
	f.Fuzz(func(t *testing.T, trace []byte, piece, jobs uint8) {
		accesses := make([]model.Access, len(trace))
		for i, b := range trace {
			accesses[i] = model.Access{Addr: uint64(int8(b)) * 8, Size: uint32(b % 20), Op: model.Op(b % 3)}
		}
		bins := model.LogBins(8)
		want, err := New(model.WordBytes, bins)
		if err != nil {
			t.Fatal(err)
		}
		if err := want.Add(accesses); err != nil {
			t.Fatal(err)
		}
		c := ParallelConfig{Jobs: int(jobs)%4 + 1, PieceTouches: int(piece) + 1}
		sameExact(t, fmt.Sprint(c), want, mustParallel(t, model.WordBytes, bins, c, accesses, 10))
	})
}

// approximate analyses the text, a byte a block, in the pieces given.
func approximate(t *testing.T, factor bool, pieces ...string) *Parallel {
	t.Helper()
	p, err := NewParallel(model.LineBytes, model.LinearBins(1, 100), ParallelConfig{Jobs: 1, Approximate: true, Factor: factor})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range pieces {
		for _, c := range text {
			if err := p.Add([]model.Access{{Addr: uint64(c) * model.LineBytes}}); err != nil {
				t.Fatal(err)
			}
		}
		p.hand()
	}
	if err := p.Finish(); err != nil {
		t.Fatal(err)
	}
	return p
}

// The example of the paper's figures 6 and 8: between pieces formula 1 says 5
// and 1 for a, 5 and 1 for b, and 6 for g (4 in truth); within them are four
// reuses, three of distance 1 and one of 2.
func TestParallelApproximatePaper(t *testing.T) {
	p := approximate(t, false, "dacbcg", "efafba", "baga")
	want := []float64{0, 5, 1, 0, 0, 2, 1}
	if got := p.Distances(); !slices.Equal(got.W[:7], want) || got.Cold != 7 || got.N != 16 {
		t.Errorf("%v, cold %v, N %d; want %v, 7, 16", got.W[:10], got.Cold, got.N, want)
	}
	if got := p.Factor(); got != 7.0/12 {
		t.Errorf("effective factor %v, want 7/12", got)
	}
	if p.Times() != nil || p.Footprint() != nil {
		t.Error("an approximate merge has no reuse times")
	}
	// No distance is above the 7 blocks there are: the factor changes nothing.
	if got := approximate(t, true, "dacbcg", "efafba", "baga").Distances(); !slices.Equal(got.W[:7], want) {
		t.Errorf("with the factor %v, want %v", got.W[:10], want)
	}
	// y and z count in all four pieces: 7 for the last x, 3 blocks of 9, 7/3.
	for factor, d := range map[bool]int{false: 7, true: 2} {
		h := approximate(t, factor, "xyzy", "zyzy", "zyzy", "zx").Distances()
		want := []float64{0, 10, 0, 0, 0, 0, 0, 0}
		want[d]++
		if !slices.Equal(h.W[:8], want) {
			t.Errorf("factor %v: %v, want %v", factor, h.W[:8], want)
		}
	}
}

func TestParallelErrors(t *testing.T) {
	for _, c := range []ParallelConfig{{}, {Jobs: -1}, {Jobs: 1, PieceTouches: -1}, {Jobs: 1, PieceTouches: 1 << 30}} {
		if _, err := NewParallel(model.LineBytes, model.LogBins(1), c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	p, err := NewParallel(1, model.LogBins(1), ParallelConfig{Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	p.merge.order.live = maxLive + 1 // as if that many had been touched
	wide := []model.Access{{Addr: 0, Size: 1 << 16}}
	for range 20 {
		if err = p.Add(wide); err != nil {
			break
		}
	}
	if err != ErrTooManyBlocks {
		t.Errorf("Add: %v, want %v", err, ErrTooManyBlocks)
	}
	if err := p.Finish(); err != ErrTooManyBlocks {
		t.Errorf("Finish: %v, want %v", err, ErrTooManyBlocks)
	}
	if err := p.Finish(); err != ErrTooManyBlocks {
		t.Errorf("Finish again: %v", err)
	}
}

// Streams of the three kinds by which analysers are compared: most accesses to
// the last few of 1.1e5 lines, words of 8.7e5, and 4e6 blocks with no locality.
func benchmarkStreams(b *testing.B) map[string][]model.Access {
	s := map[string][]model.Access{}
	for _, x := range []struct {
		name   string
		zipf   float64
		blocks uint64
	}{{"lines", 1.5, 110_000}, {"words", 1.2, 870_000}} {
		law, err := ZipfLaw(x.zipf, x.blocks)
		s[x.name] = asAccesses(rand.New(rand.NewPCG(1, 3)), generated(b, law, err, x.blocks))
	}
	r := rand.New(rand.NewPCG(1, 2))
	blocks := make([]uint64, 1<<24)
	for i := range blocks {
		blocks[i] = r.Uint64N(4_000_000)
	}
	s["uniform"] = asAccesses(r, blocks)
	return s
}

func BenchmarkParallel(b *testing.B) {
	for name, accesses := range benchmarkStreams(b) {
		for _, jobs := range []int{0, 1, 2} {
			b.Run(fmt.Sprintf("%s/jobs%d", name, jobs), func(b *testing.B) {
				for b.Loop() {
					if jobs == 0 { // the sequential algorithm
						e, err := New(model.LineBytes, model.LogBins(10))
						if err != nil {
							b.Fatal(err)
						}
						if err := e.Add(accesses); err != nil {
							b.Fatal(err)
						}
						continue
					}
					mustParallel(b, model.LineBytes, model.LogBins(10), ParallelConfig{Jobs: jobs}, accesses, 4096)
				}
				b.ReportMetric(float64(b.N*len(accesses))/b.Elapsed().Seconds()/1e6, "Macc/s")
			})
		}
	}
}
