package exact

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

func mustShards(t testing.TB, c ShardsConfig, accesses []model.Access) *Shards {
	t.Helper()
	s, err := NewShards(model.LineBytes, model.LogBins(10), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(accesses); err != nil {
		t.Fatal(err)
	}
	return s
}

// At a rate of 1 nothing is estimated.
func TestShardsOfAll(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	r := seededRand(t)
	for name, blocks := range testStreams(r, 60_000, 3000) {
		accesses := asAccesses(r, blocks)
		e, err := New(model.LineBytes, model.LogBins(10))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Add(accesses); err != nil {
			t.Fatal(err)
		}
		for _, c := range []ShardsConfig{{Rate: 1}, {Size: 100_000}} {
			s := mustShards(t, c, accesses)
			want, got := e.Distances(), s.Distances()
			if !slices.Equal(want.W, got.W) || want.Cold != got.Cold || s.Blocks() != float64(e.Blocks()) || s.Accesses() != e.Accesses() {
				t.Errorf("%s, %+v: not the exact histogram", name, c)
			}
		}
	}
}

// zipfStreams have many blocks, most of them rarely touched: what a sample of
// blocks can estimate.
func zipfStream(t testing.TB, seed uint64, n int) []model.Access {
	r := rand.New(rand.NewPCG(seed, 5))
	z := rand.NewZipf(r, 1.05, 50, 400_000)
	blocks := make([]uint64, n)
	for i := range blocks {
		blocks[i] = z.Uint64()
	}
	return asAccesses(r, blocks)
}

// Errors against the exact miss ratios, and how often they are within what the
// estimate says of itself.
func TestShardsAgainstExact(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	const n = 400_000
	streams := map[string]func(seed uint64) []model.Access{
		"zipf": func(seed uint64) []model.Access { return zipfStream(t, seed, n) },
		"uniform": func(seed uint64) []model.Access {
			r := rand.New(rand.NewPCG(seed, 6))
			blocks := make([]uint64, n)
			for i := range blocks {
				blocks[i] = r.Uint64N(60_000) + seed<<40
			}
			return asAccesses(r, blocks)
		},
	}
	for name, stream := range streams {
		for _, c := range []ShardsConfig{{Rate: 0.03}, {Size: 2048}} {
			var sum, worst float64
			inside, points := 0, 0
			for seed := range uint64(6) {
				accesses := stream(seed)
				e, err := New(model.LineBytes, model.LogBins(10))
				if err != nil {
					t.Fatal(err)
				}
				if err := e.Add(accesses); err != nil {
					t.Fatal(err)
				}
				s := mustShards(t, c, accesses)
				if c.Size > 0 && s.SampledBlocks() > c.Size {
					t.Errorf("%s: %d blocks in a sample of %d", name, s.SampledBlocks(), c.Size)
				}
				exact := e.Distances()
				for size := uint64(1024); size <= 65536; size *= 2 {
					want := exact.MissRatio(size)
					got, plusMinus := s.MissRatio(size)
					if plusMinus > 0.2 {
						t.Errorf("%s, %+v: %d blocks: %.3f +- %.3f says nothing", name, c, size, got, plusMinus)
					}
					err := math.Abs(got - want)
					sum += err
					worst = max(worst, err)
					points++
					if err <= plusMinus {
						inside++
					}
				}
			}
			t.Logf("%s, %+v: miss ratio off by %.4f on average, %.4f at most; %d of %d within the interval", name, c, sum/float64(points), worst, inside, points)
			if sum/float64(points) > 0.015 || worst > 0.06 {
				t.Errorf("%s, %+v: errors of %.4f on average and %.4f at most, want 0.015 and 0.06", name, c, sum/float64(points), worst)
			}
			if inside*10 < points*8 {
				t.Errorf("%s, %+v: %d of %d within the 95 %% interval", name, c, inside, points)
			}
		}
	}
}

// The sample stays at its size while blocks keep coming, and what it held
// before counts by the rate of then.
func TestShardsFixedSizeMass(t *testing.T) {
	r := seededRand(t)
	blocks := make([]uint64, 300_000)
	for i := range blocks {
		blocks[i] = uint64(i / 2) // each twice: half cold, half at distance 0
	}
	s := mustShards(t, ShardsConfig{Size: 500}, asAccesses(r, blocks))
	if s.SampledBlocks() > 500 || s.SampledBlocks() < 499 {
		t.Errorf("%d blocks in the sample", s.SampledBlocks())
	}
	if b := s.Blocks(); b < 120_000 || b > 185_000 {
		t.Errorf("%v blocks, want about 150000", b)
	}
	if got, pm := s.MissRatio(10_000); math.Abs(got-0.5) > pm+0.01 || pm > 0.1 {
		t.Errorf("miss ratio %v +- %v, want 0.5", got, pm)
	}
}

func TestShardsConfig(t *testing.T) {
	for _, c := range []ShardsConfig{{}, {Rate: -1}, {Rate: 1.5}, {Rate: math.NaN()}, {Size: 3}, {Size: -1}, {Rate: 0.1, Size: 100}} {
		if _, err := NewShards(model.LineBytes, model.LogBins(1), c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}
