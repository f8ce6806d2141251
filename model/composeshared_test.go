package model_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/model"
)

func generate(t testing.TB, law *exact.DistanceLaw, n, seed uint64, length int) []uint64 {
	t.Helper()
	g, err := exact.NewGenerator(law, n, seed)
	if err != nil {
		t.Fatal(err)
	}
	blocks := make([]uint64, length)
	if err := g.Fill(blocks); err != nil {
		t.Fatal(err)
	}
	return blocks
}

// Predictions from the programs alone against an exact shared stack of their
// streams interleaved.
func TestComposeAgainstSharedStack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	const n = 400_000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	law := func(l *exact.DistanceLaw, err error) *exact.DistanceLaw {
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	streams := [][]uint64{
		generate(t, law(exact.ZipfLaw(0.8, 3000)), 3000, 1, n),
		generate(t, law(exact.ExponentialLaw(0.002, 2000)), 2000, 2, n),
		generate(t, law(exact.NormalLaw(300, 200, 1000)), 1000, 3, n),
	}
	rates := []float64{1, 2, 0.5}
	programs := make([]model.Corunner, len(streams))
	for i, blocks := range streams {
		e, err := exact.New(1, model.LogBins(20))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if err := e.Add([]model.Access{{Addr: b}}); err != nil {
				t.Fatal(err)
			}
		}
		programs[i] = model.Corunner{Rate: rates[i], Footprint: model.FootprintCurve(e.Footprint()), Cold: float64(e.Blocks()) / n}
	}
	// Interleave at random by rate, until one stream ends.
	var accesses []model.Access
	at := make([]int, len(streams))
	for {
		u := r.Float64() * 3.5
		i := 0
		for ; u > rates[i]; i++ {
			u -= rates[i]
		}
		if at[i] == n {
			break
		}
		accesses = append(accesses, model.Access{Addr: streams[i][at[i]]<<8 | uint64(i), Thread: int32(i)})
		at[i]++
	}
	for _, c := range []uint64{50, 200, 500, 1000, 2000, 4000, 5900, 7000} {
		shared, err := exact.NewSharedStack(1)
		if err != nil {
			t.Fatal(err)
		}
		misses := make([]float64, len(streams))
		if err := shared.Add(accesses, func(x *exact.Touch) {
			if x.Dist >= c {
				misses[x.Thread]++
			}
		}); err != nil {
			t.Fatal(err)
		}
		composed, err := model.Compose(programs, float64(c))
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range composed {
			measured := misses[i] / float64(at[i])
			if math.Abs(got.MissRatio-measured) > 0.02 {
				t.Errorf("%d blocks, program %d: miss ratio %.4f, measured %.4f", c, i, got.MissRatio, measured)
			}
		}
	}
}
