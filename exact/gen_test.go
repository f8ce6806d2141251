package exact

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

func mustGenerate(t testing.TB, law *DistanceLaw, n, seed uint64, length int) []uint64 {
	t.Helper()
	g, err := NewGenerator(law, n, seed)
	if err != nil {
		t.Fatal(err)
	}
	blocks := make([]uint64, length)
	if err := g.Fill(blocks); err != nil {
		t.Fatal(err)
	}
	return blocks
}

func distances(t testing.TB, blocks []uint64) []uint64 {
	t.Helper()
	dist := make([]uint64, len(blocks))
	if err := NewOlken().Touch(blocks, dist, nil); err != nil {
		t.Fatal(err)
	}
	return dist
}

// reuseAccuracy is 1 - sum|R - R^|/2 over bins of width 1, cold accesses left
// out, as Shen & Shaw compute their Table 3.
func reuseAccuracy(weights []float64, dist []uint64) float64 {
	count := make([]float64, len(weights))
	var n, sum, diff float64
	for _, d := range dist {
		if d != model.Infinite {
			count[d]++
			n++
		}
	}
	for _, w := range weights {
		sum += w
	}
	for k := range count {
		diff += math.Abs(count[k]/n - weights[k]/sum)
	}
	return 1 - diff/2
}

// Shen & Shaw, Table 3, column "Gen. acc." (T = 50,000, N = 500, bins of
// width 1); their "var" fits as a standard deviation with the mean at N/2.
// The exponential's 96.0 is what a rate of 0.002 gives; 0.02 is expected to
// give 97.5.
func TestPaperTable3Generator(t *testing.T) {
	const n, length, seeds = 500, 50_000, 10
	normal := func(sd float64) func(k int) float64 {
		return func(k int) float64 { z := (float64(k) - n/2) / sd; return math.Exp(-z * z / 2) }
	}
	exponential := func(rate float64) func(k int) float64 {
		return func(k int) float64 { return math.Exp(-rate * float64(k)) }
	}
	for _, c := range []struct {
		name        string
		law         func() (*DistanceLaw, error)
		f           func(k int) float64
		want, paper float64
	}{
		{"Normal 20", func() (*DistanceLaw, error) { return NormalLaw(n/2, 20, n) }, normal(20), 98.2, 98.2},
		{"Normal 100", func() (*DistanceLaw, error) { return NormalLaw(n/2, 100, n) }, normal(100), 96.3, 96.4},
		{"Normal 200", func() (*DistanceLaw, error) { return NormalLaw(n/2, 200, n) }, normal(200), 96.0, 96.1},
		{"exp -0.02 k", func() (*DistanceLaw, error) { return ExponentialLaw(0.02, n) }, exponential(0.02), 97.5, 96.0},
		{"exp -0.002 k", func() (*DistanceLaw, error) { return ExponentialLaw(0.002, n) }, exponential(0.002), 96.0, 96.0},
	} {
		law, err := c.law()
		if err != nil {
			t.Fatal(err)
		}
		weights := make([]float64, n)
		for k := range weights {
			weights[k] = c.f(k)
		}
		var sum float64
		for seed := range uint64(seeds) {
			sum += reuseAccuracy(weights, distances(t, mustGenerate(t, law, n, seed, length)))
		}
		got := 100 * sum / seeds
		t.Logf("%-13s accuracy %.1f %%, paper %.1f, expected %.1f", c.name, got, c.paper, c.want)
		if math.Abs(got-c.want) > 0.4 {
			t.Errorf("%s: accuracy %.2f %%, want %.1f +- 0.4", c.name, got, c.want)
		}
	}
}

// Every access has exactly the distance that was drawn for it.
func TestGeneratorExact(t *testing.T) {
	for _, n := range []uint64{1, 2, 500, 100_000} {
		law, err := ZipfLaw(0.7, n)
		if err != nil {
			t.Fatal(err)
		}
		const seed = 5
		length := 3*int(n) + 200_000
		dist := distances(t, mustGenerate(t, law, n, seed, length))
		g, err := NewGenerator(law, n, seed)
		if err != nil {
			t.Fatal(err)
		}
		draws := make([]uint64, length)
		law.draw(g.rand, draws[n:])
		for i, d := range dist {
			if uint64(i) < n {
				draws[i] = model.Infinite
			}
			if d != draws[i] {
				t.Fatalf("n = %d: access %d has distance %d, drawn was %d", n, i, d, draws[i])
			}
		}
	}
}

func TestGeneratorDeterministicAndStreaming(t *testing.T) {
	law, err := ExponentialLaw(0.001, 5000)
	if err != nil {
		t.Fatal(err)
	}
	whole := mustGenerate(t, law, 5000, 3, 100_000)
	if slices.Equal(whole, mustGenerate(t, law, 5000, 4, 100_000)) {
		t.Error("two seeds give one stream")
	}
	g, err := NewGenerator(law, 5000, 3)
	if err != nil {
		t.Fatal(err)
	}
	r := seededRand(t)
	for at := 0; at < len(whole); {
		part := make([]uint64, min(r.IntN(5000), len(whole)-at))
		if err := g.Fill(part); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(part, whole[at:at+len(part)]) {
			t.Fatalf("a stream asked for in parts differs at %d", at)
		}
		at += len(part)
	}
}

func TestGeneratorCold(t *testing.T) {
	// Half the accesses are new blocks, the others repeat the third last.
	law, err := newLaw([]float64{1, 1}, []uint64{2, model.Infinite}, []uint64{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGenerator(law, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	blocks := make([]uint64, 200_000)
	if err := g.Fill(blocks); err != nil {
		t.Fatal(err)
	}
	cold := 0
	for i, d := range distances(t, blocks) {
		switch d {
		case model.Infinite:
			cold++
		case 2:
		default:
			t.Fatalf("access %d has distance %d", i, d)
		}
	}
	if uint64(cold) != g.Blocks() {
		t.Errorf("%d cold accesses, generator says %d blocks", cold, g.Blocks())
	}
	if math.Abs(float64(cold)-100_000) > 5*math.Sqrt(50_000) {
		t.Errorf("%d of 200000 accesses are cold, want about half", cold)
	}
	if g.Short() == 0 || g.Short() > 100 {
		t.Errorf("%d draws before there were three blocks", g.Short())
	}
}

// A table of weights is drawn from in proportion, whatever its shape.
func TestLawFrequencies(t *testing.T) {
	r := seededRand(t)
	for range 20 {
		weights := make([]float64, 1+r.IntN(40))
		var sum float64
		for i := range weights {
			if r.IntN(3) > 0 {
				weights[i] = math.Exp(8 * r.NormFloat64())
			}
			sum += weights[i]
		}
		if sum == 0 {
			continue
		}
		law, err := WeightLaw(weights)
		if err != nil {
			t.Fatal(err)
		}
		const draws = 200_000
		count := make([]float64, len(weights))
		d := make([]uint64, draws)
		law.draw(rand.NewPCG(r.Uint64(), 0), d)
		for _, k := range d {
			count[k]++
		}
		for i, w := range weights {
			p := w / sum
			if w == 0 && count[i] > 0 {
				t.Fatalf("weight 0 was drawn %v times", count[i])
			}
			// Bernstein's inequality: by chance once in 10^8.
			const l = 19
			if dev := math.Abs(count[i] - p*draws); dev > math.Sqrt(2*l*p*(1-p)*draws)+2*l/3. {
				t.Errorf("weights %v: entry %d drawn %v times, want %.0f", weights, i, count[i], p*draws)
			}
		}
	}
}

func TestGeneratorBadInput(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, f := range map[string]func() (*DistanceLaw, error){
		"no weights":      func() (*DistanceLaw, error) { return WeightLaw(nil) },
		"zero weights":    func() (*DistanceLaw, error) { return WeightLaw([]float64{0, 0}) },
		"negative weight": func() (*DistanceLaw, error) { return WeightLaw([]float64{1, -1}) },
		"NaN weight":      func() (*DistanceLaw, error) { return WeightLaw([]float64{1, nan}) },
		"infinite weight": func() (*DistanceLaw, error) { return WeightLaw([]float64{1, inf}) },
		"infinite sum":    func() (*DistanceLaw, error) { return WeightLaw([]float64{1e308, 1e308}) },
		"no blocks":       func() (*DistanceLaw, error) { return ZipfLaw(1, 0) },
		"too many blocks": func() (*DistanceLaw, error) { return ZipfLaw(1, 1<<40) },
		"zero deviation":  func() (*DistanceLaw, error) { return NormalLaw(1, 0, 5) },
		"NaN mean":        func() (*DistanceLaw, error) { return NormalLaw(nan, 1, 5) },
		"NaN rate":        func() (*DistanceLaw, error) { return ExponentialLaw(nan, 5) },
		"NaN exponent":    func() (*DistanceLaw, error) { return ZipfLaw(nan, 5) },
	} {
		if law, err := f(); err == nil {
			t.Errorf("%s: no error, law %+v", name, law)
		}
	}
	law, err := WeightLaw([]float64{1, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewGenerator(law, 2, 0); err == nil {
		t.Error("distance 2 over 2 blocks: no error")
	}
	if _, err := NewGenerator(law, 3, 0); err != nil {
		t.Error(err)
	}
	// Far from the mean every density underflows, but the law is not lost.
	if _, err := NormalLaw(-1e6, 1, 5); err != nil {
		t.Error(err)
	}
}

func benchmarkGenerator(b *testing.B, law *DistanceLaw, n uint64) {
	g, err := NewGenerator(law, n, 1)
	if err != nil {
		b.Fatal(err)
	}
	blocks := make([]uint64, 4096)
	for g.Blocks() < n {
		if err := g.Fill(blocks); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := g.Fill(blocks); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(blocks))/b.Elapsed().Seconds()/1e6, "Macc/s")
}

func BenchmarkGeneratorNormal500(b *testing.B) {
	law, _ := NormalLaw(250, 20, 500)
	benchmarkGenerator(b, law, 500)
}

func BenchmarkGeneratorUniform1M(b *testing.B) {
	law, _ := ExponentialLaw(0, 1e6)
	benchmarkGenerator(b, law, 1e6)
}

func BenchmarkGeneratorUniform4M(b *testing.B) {
	law, _ := ExponentialLaw(0, 4e6)
	benchmarkGenerator(b, law, 4e6)
}
