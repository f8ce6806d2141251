// Needs an OpenCL driver: Debian's pocl-opencl-icd runs on any processor.

package device

import (
	"fmt"
	mathbits "math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/gpu/opencl"
	"github.com/rdx-profiler/rdx/model"
)

var theDevice = sync.OnceValues(func() (*opencl.Context, error) {
	api, err := opencl.Load(opencl.Libraries...)
	if err != nil {
		return nil, err
	}
	all, err := api.Devices()
	if err != nil {
		return nil, err
	}
	return Open(all[0])
})

func openDevice(t testing.TB) *opencl.Context {
	t.Helper()
	ctx, err := theDevice()
	if err != nil {
		if !strings.Contains(err.Error(), opencl.NoLibrary) { // where there is one it must work
			t.Fatal(err)
		}
		t.Skip("needs a device of OpenCL: ", err)
	}
	return ctx
}

func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// touchesOf makes runs of the blocks: those that follow each other and are the same are put together at random.
func touchesOf(r *rand.Rand, blocks []uint64) *model.Touches {
	t := &model.Touches{}
	for i := 0; i < len(blocks); {
		n := 1
		for i+n < len(blocks) && blocks[i+n] == blocks[i] && n < 64 && r.IntN(8) != 0 {
			n++
		}
		store := r.IntN(2)
		t.Blocks = append(t.Blocks, blocks[i])
		t.Runs = append(t.Runs, uint8((n-1)<<1|store))
		more := r.IntN(n)
		t.Repeats[0] += uint64(more)
		t.Repeats[1] += uint64(n - 1 - more)
		i += n
	}
	t.Ops[model.Load] = uint64(len(blocks))
	return t
}

func analyze(t testing.TB, ctx *opencl.Context, bins *model.Bins, c Config, touches *model.Touches, step int, factor bool) *exact.CountedAnalysis {
	t.Helper()
	c.Edges = bins.Edges()
	a, err := NewAnalysis(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for at := 0; at < len(touches.Blocks); at += step {
		end := min(at+step, len(touches.Blocks))
		if err := a.Add(touches.Blocks[at:end], touches.Runs[at:end]); err != nil {
			t.Fatal(err)
		}
	}
	counted, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	e, err := exact.NewCountedAnalysis(model.LineBytes, bins, counted, touches, factor)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

type result interface {
	Touches() uint64
	Blocks() uint64
	Times() *model.Hist
	Distances() *model.Hist
	LoadDistances() *model.Hist
	StoreDistances() *model.Hist
	Footprint() []model.FootprintPoint
	WindowError() float64
}

func same(t testing.TB, what string, want, got result) {
	t.Helper()
	if want.Touches() != got.Touches() || want.Blocks() != got.Blocks() {
		t.Errorf("%s: %d touches of %d blocks, want %d, %d", what, got.Touches(), got.Blocks(), want.Touches(), want.Blocks())
	}
	for name, h := range map[string][2]*model.Hist{"times": {want.Times(), got.Times()}, "distances": {want.Distances(), got.Distances()},
		"load distances": {want.LoadDistances(), got.LoadDistances()}, "store distances": {want.StoreDistances(), got.StoreDistances()}} {
		w, g := h[0], h[1]
		if w == nil && g == nil {
			continue
		}
		if !slices.Equal(w.W, g.W) || w.Cold != g.Cold || w.N != g.N {
			t.Errorf("%s: %s differ: %d entries, %v cold, want %d, %v", what, name, g.N, g.Cold, w.N, w.Cold)
			for i := range w.W {
				if w.W[i] != g.W[i] {
					t.Errorf("from %d on: %v, want %v", w.Bins.Lo(i), g.W[i], w.W[i])
					break
				}
			}
		}
	}
	if !reflect.DeepEqual(want.Footprint(), got.Footprint()) {
		t.Errorf("%s: footprints differ", what)
	}
	if a, b := want.WindowError(), got.WindowError(); a != b && !(a != a && b != b) {
		t.Errorf("%s: window gap %v, want %v", what, b, a)
	}
}

func olken(t testing.TB, bins *model.Bins, touches *model.Touches) *exact.Analysis {
	t.Helper()
	e, err := exact.New(model.LineBytes, bins)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.AddTouches(touches); err != nil {
		t.Fatal(err)
	}
	return e
}

// shapes are streams of n touches of up to m blocks.
var shapes = map[string]func(r *rand.Rand, n, m int) []uint64{
	"uniform": func(r *rand.Rand, n, m int) []uint64 {
		return made(n, func(int) uint64 { return r.Uint64N(uint64(m)) })
	},
	"skewed": func(r *rand.Rand, n, m int) []uint64 {
		return made(n, func(int) uint64 { return uint64(float64(m) * r.Float64() * r.Float64() * r.Float64()) })
	},
	"cyclic": func(r *rand.Rand, n, m int) []uint64 { return made(n, func(i int) uint64 { return uint64(i % m) }) },
	"sawtooth": func(r *rand.Rand, n, m int) []uint64 {
		return made(n, func(i int) uint64 { return uint64(max(i%(2*m)-m, m-1-i%(2*m))) })
	},
	"one block":    func(r *rand.Rand, n, m int) []uint64 { return made(n, func(int) uint64 { return 7 }) },
	"all new":      func(r *rand.Rand, n, m int) []uint64 { return made(n, func(i int) uint64 { return uint64(i) << 6 }) },
	"all new down": func(r *rand.Rand, n, m int) []uint64 { return made(n, func(i int) uint64 { return ^uint64(i) }) },
	"two halves": func(r *rand.Rand, n, m int) []uint64 {
		return made(n, func(i int) uint64 { return uint64(i/(1+n/4)%2*m) + r.Uint64N(uint64(m)) })
	},
	"wide numbers": func(r *rand.Rand, n, m int) []uint64 {
		return made(n, func(int) uint64 { b := r.Uint64N(uint64(m)); return b*0x9e3779b97f4a7c15 ^ b<<60 })
	},
	"ends of the space": func(r *rand.Rand, n, m int) []uint64 {
		return made(n, func(int) uint64 { return r.Uint64N(uint64(m)/2+1) - uint64(m)/4 })
	},
	"old and new": func(r *rand.Rand, n, m int) []uint64 {
		return made(n, func(i int) uint64 {
			if r.IntN(3) == 0 {
				return uint64(i)
			}
			return r.Uint64N(uint64(i) + 1)
		})
	},
}

func made(n int, f func(i int) uint64) []uint64 {
	b := make([]uint64, n)
	for i := range b {
		b[i] = f(i)
	}
	return b
}

// edges are sizes around those at which the kernels cut.
var edges = []int{1, 2, 7, 8, 9, 127, 128, 129, 255, 256, 257, 2047, 2048, 2049, 4095, 4096, 4097, 6143, 6145, 16383, 16384, 16385, 32767, 32768, 32769}

// Thousands of streams of all shapes, their lengths and the segments' random or at an edge.
func TestAgainstOlken(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	ctx := openDevice(t)
	r := seeded(t)
	bins := []*model.Bins{model.LogBins(10), model.LogBins(1), model.LogBins(10).With([]uint64{0, 3, 5000, 5001, 70000}), model.LinearBins(100, 7)}
	size := func(most int) int {
		n := 1 + r.IntN(1<<r.IntN(13))
		if r.IntN(4) == 0 {
			n = edges[r.IntN(len(edges))]
		}
		return min(n, most)
	}
	streams, start := 0, time.Now()
	for round := 0; streams < 2000 || round == 0; round++ {
		for name, shape := range shapes {
			n := size(1 << 14)
			segment := max(size(1<<14), n/4)
			b := bins[r.IntN(len(bins))]
			x := touchesOf(r, shape(r, n, 1+r.IntN(1<<r.IntN(14))))
			got := analyze(t, ctx, b, Config{Segment: segment}, x, 1+r.IntN(3*segment), false)
			same(t, fmt.Sprintf("%s of %d in segments of %d", name, n, segment), olken(t, b, x), got)
			if streams++; t.Failed() {
				return
			}
		}
	}
	t.Logf("%d streams in %v", streams, time.Since(start))
}

// Every pair of lengths and segments at an edge, as long as it takes not too many segments.
func TestEdges(t *testing.T) {
	ctx := openDevice(t)
	r := seeded(t)
	bins := model.LogBins(10)
	for _, n := range edges {
		x := touchesOf(r, shapes["skewed"](r, n, n))
		want := olken(t, bins, x)
		for _, segment := range edges {
			if n <= 4*segment {
				same(t, fmt.Sprintf("%d in segments of %d", n, segment), want, analyze(t, ctx, bins, Config{Segment: segment}, x, n, false))
			}
		}
	}
}

// Footprints that grow beyond what was allocated, many segments, and bins that work-groups do not count for themselves.
func TestLong(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	ctx := openDevice(t)
	r := seeded(t)
	for name, bins := range map[string]*model.Bins{"uniform": model.LogBins(10), "old and new": model.LogBins(64)} {
		x := touchesOf(r, shapes[name](r, 400_000, 130_000))
		same(t, name, olken(t, bins, x), analyze(t, ctx, bins, Config{Segment: 1 << 16}, x, 50_000, false))
	}
}

// A footprint that the device has no room for is an error that says so, and nothing is counted.
func TestTooSmall(t *testing.T) {
	ctx := openDevice(t)
	device := *ctx.Device
	device.Memory = 3 << 20
	small, err := Open(&device)
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	if segment := DefaultSegment(&device); segment != 2*tile {
		t.Errorf("segments of %d touches by default", segment)
	}
	a, err := NewAnalysis(small, Config{Edges: []uint64{0}, Segment: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	n := 100_000
	err = a.Add(made(n, func(i int) uint64 { return uint64(i) }), make([]uint8, n))
	if err == nil {
		_, err = a.Finish()
	}
	if err == nil || !strings.Contains(err.Error(), "distinct blocks") || !strings.Contains(err.Error(), "(consider: ") {
		t.Errorf("%v, want that there is no room for so many blocks", err)
	}
	if _, err := NewAnalysis(small, Config{Edges: []uint64{0}, Segment: 100_000}); err == nil || !strings.Contains(err.Error(), "segments of 100000 touches need") {
		t.Errorf("%v, want that there is no room for a segment", err)
	}
}

// Sums beyond 64 bits: as if so many touches had gone before.
func TestSums(t *testing.T) {
	ctx := openDevice(t)
	bins := model.LogBins(1)
	a, err := NewAnalysis(ctx, Config{Edges: bins.Edges(), Segment: 5000})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	const before = 1<<62 + 12345
	a.now = before
	n := 20_000
	blocks := made(n, func(i int) uint64 { return uint64(i) })
	if err := a.Add(blocks, make([]uint8, n)); err != nil {
		t.Fatal(err)
	}
	c, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	var hi, lo uint64
	for i := range n {
		var carry uint64
		lo, carry = mathbits.Add64(lo, before+uint64(i)+1, 0)
		hi += carry
	}
	at := len(c.First.N) - (bins.Len() - bins.Index(1<<62))
	if c.First.N[at] != uint64(n) || c.First.SumHi[at] != hi || c.First.SumL[at] != lo {
		t.Errorf("%d first touches, sum %d, %d; want %d, %d, %d", c.First.N[at], c.First.SumHi[at], c.First.SumL[at], n, hi, lo)
	}
}

func TestUntimed(t *testing.T) {
	ctx := openDevice(t)
	r := seeded(t)
	bins := model.LogBins(1)
	x := touchesOf(r, shapes["skewed"](r, 30_000, 20_000))
	want, got := olken(t, bins, x), analyze(t, ctx, bins, Config{Segment: 7000, Untimed: true}, x, 10_000, false)
	if w, g := want.Distances(), got.Distances(); !slices.Equal(w.W, g.W) || w.Cold != g.Cold || w.N != g.N {
		t.Errorf("distances %v, want %v", g.W, w.W)
	}
}

// Distances and times of each touch by itself.
func TestEach(t *testing.T) {
	ctx := openDevice(t)
	r := seeded(t)
	for name, shape := range shapes {
		blocks := shape(r, 9000, 3000)
		var dists, times []uint64
		a, err := NewAnalysis(ctx, Config{Edges: model.LogBins(1).Edges(), Segment: 2500, Each: func(d, x []uint64) error {
			dists, times = append(dists, d...), append(times, x...)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Add(blocks, make([]uint8, len(blocks))); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Finish(); err != nil {
			t.Fatal(err)
		}
		a.Close()
		wantDists, wantTimes := make([]uint64, len(blocks)), make([]uint64, len(blocks))
		if err := exact.NewOlken().Touch(blocks, wantDists, wantTimes); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(dists, wantDists) || !slices.Equal(times, wantTimes) {
			t.Errorf("%s: distances or times differ", name)
		}
	}
}

// The approximate merge has the results of the one on processors.
func TestApproximate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	ctx := openDevice(t)
	r := seeded(t)
	bins := model.LogBins(10)
	for name, shape := range shapes {
		x := touchesOf(r, shape(r, 30_000, 7000))
		piece, factor := []int{1, 100, 2048}[r.IntN(3)], r.IntN(2) == 0
		want, err := exact.NewParallel(model.LineBytes, bins, exact.ParallelConfig{Jobs: 1, Approximate: true, Factor: factor, PieceTouches: piece})
		if err != nil {
			t.Fatal(err)
		}
		if err := want.AddTouches(x); err != nil {
			t.Fatal(err)
		}
		if err := want.Finish(); err != nil {
			t.Fatal(err)
		}
		got := analyze(t, ctx, bins, Config{Segment: 1<<14 + r.IntN(99), PieceTouches: piece}, x, 1+r.IntN(5000), factor)
		same(t, fmt.Sprintf("%s in pieces of %d, factor %v", name, piece, factor), want, got)
		if want.Factor() != got.Factor() {
			t.Errorf("%s: factor %v, want %v", name, got.Factor(), want.Factor())
		}
	}
	if _, err := NewAnalysis(ctx, Config{Edges: bins.Edges(), Segment: 100, PieceTouches: 101}); err == nil {
		t.Error("a piece larger than a segment: no error")
	}
}

// Each element's count of greater ones before it, by a Fenwick tree, up to where all levels of nodes are in use.
func TestInversions(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	ctx := openDevice(t)
	r := seeded(t)
	defer ctx.FreeAll()
	for _, n := range append(slices.Clone(edges), 65_535, 65_537, 300_001, 1<<20) {
		p := &primitives{Context: ctx}
		if err := p.prepare(uint64(n)); err != nil {
			t.Fatal(err)
		}
		value := make([]uint32, n)
		for i, v := range r.Perm(n) {
			value[i] = uint32(v)
		}
		in, err := upload(ctx, value)
		if err != nil {
			t.Fatal(err)
		}
		out, err := ctx.Alloc(4 * uint64(n))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.inversions(in, uint32(n), out); err != nil {
			t.Fatal(err)
		}
		got := make([]uint32, n)
		if err := ctx.Read(words(got), out, 0); err != nil {
			t.Fatal(err)
		}
		tree := make([]uint32, n+1)
		for i, v := range value {
			below := uint32(0)
			for k := v + 1; k > 0; k &= k - 1 {
				below += tree[k]
			}
			if want := uint32(i) - below; got[v] != want {
				t.Fatalf("%d elements: the %d-th, %d, has %d, want %d", n, i, v, got[v], want)
			}
			for k := v + 1; int(k) <= n; k += k & -k {
				tree[k]++
			}
		}
		ctx.FreeAll()
	}
}

// racesEnv says that TestRaces has started the test that it runs.
const racesEnv = "RDX_GPU_TEST_RACES"

// All kernels once under Oclgrind, which is another implementation of OpenCL and sees what pocl's order of work-items hides:
// races, and accesses beyond the end of a buffer.
func TestRaces(t *testing.T) {
	if os.Getenv(racesEnv) != "" {
		everything(t)
		return
	}
	const library = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
	if _, err := os.Stat(library); err != nil {
		t.Skip("needs oclgrind: ", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "oclgrind.icd"), []byte(library+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestRaces$", "-test.v")
	cmd.Env = append(os.Environ(), racesEnv+"=1", "OCL_ICD_VENDORS="+dir+"/", "OCLGRIND_DATA_RACES=1", "OCLGRIND_MAX_ERRORS=3")
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil || !strings.Contains(text, "Oclgrind") || strings.Contains(text, "race at") || strings.Contains(text, "Invalid") || strings.Contains(text, "Kernel:") {
		t.Errorf("%v:\n%s", err, text[:min(len(text), 3000)])
	}
}

func everything(t *testing.T) {
	ctx := openDevice(t)
	t.Log(ctx.Device)
	r := seeded(t)
	bins := model.LogBins(10)
	x := touchesOf(r, shapes["old and new"](r, 2600, 2600))
	same(t, "exact", olken(t, bins, x), analyze(t, ctx, bins, Config{Segment: 2100}, x, 2600, false))
	blocks := shapes["skewed"](r, 2100, 300)
	one := blocks[:300]
	dists, times := make([]uint64, len(one)), make([]uint64, len(one))
	if err := exact.NewOlken().Touch(one, dists, times); err != nil {
		t.Fatal(err)
	}
	a, err := NewAnalysis(ctx, Config{Edges: []uint64{0}, Segment: len(one), Each: func(d, x []uint64) error {
		if !slices.Equal(d, dists) || !slices.Equal(x, times) {
			t.Error("each: distances or times differ")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Add(one, make([]uint8, len(one))); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Finish(); err != nil {
		t.Fatal(err)
	}
	a.Close()
	want, err := exact.NewParallel(model.LineBytes, bins, exact.ParallelConfig{Jobs: 1, Approximate: true, PieceTouches: 100})
	if err != nil {
		t.Fatal(err)
	}
	x = touchesOf(r, blocks)
	if err := want.AddTouches(x); err != nil {
		t.Fatal(err)
	}
	if err := want.Finish(); err != nil {
		t.Fatal(err)
	}
	same(t, "approximate", want, analyze(t, ctx, bins, Config{Segment: len(blocks), PieceTouches: 100}, x, len(blocks), false))
	countOnce(t, ctx, r, 300)
}

// countOnce checks counts of greater elements by going through all.
func countOnce(t *testing.T, ctx *opencl.Context, r *rand.Rand, n int) {
	t.Helper()
	c, err := newCounter(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	defer ctx.FreeAll()
	values := uint32(2 * n)
	some := func() []uint32 { // each value once at most, or none
		v := make([]uint32, n)
		for i, p := range r.Perm(int(values))[:n] {
			if r.IntN(5) > 0 {
				v[i] = uint32(p) + 1
			}
		}
		return v
	}
	counted, asked, greater := some(), some(), make([]uint32, n)
	if err := c.count(counted, asked, values, greater); err != nil {
		t.Fatal(err)
	}
	for i, q := range asked {
		want := uint32(0)
		for _, v := range counted[:i] {
			if v > q {
				want++
			}
		}
		if q != 0 && greater[i] != want {
			t.Fatalf("element %d of %d: %d greater ones before it, want %d", i, n, greater[i], want)
		}
	}
}

func TestCount(t *testing.T) {
	ctx := openDevice(t)
	r := seeded(t)
	for _, n := range []int{1, 2, 5, 1000, 1023, 1024, 1025, 2048, 5000} {
		countOnce(t, ctx, r, n)
	}
}

// Any blocks, any runs, any segment.
func FuzzAnalysis(f *testing.F) {
	f.Add([]byte("abbcaabbcaXYZa"), uint16(3))
	f.Add([]byte{0, 255, 0, 255, 1, 1, 2, 0}, uint16(1))
	f.Add(make([]byte, 5000), uint16(2048))
	f.Fuzz(func(t *testing.T, stream []byte, segment uint16) {
		if len(stream) > 40*(int(segment)+1) {
			t.Skip("too many segments")
		}
		ctx := openDevice(t)
		x := &model.Touches{Blocks: make([]uint64, len(stream)), Runs: make([]uint8, len(stream))}
		for i, b := range stream {
			x.Blocks[i], x.Runs[i] = uint64(int8(b))*0x0101010101010101, b%128
			x.Repeats[b&1] += uint64(x.Runs[i] >> 1)
		}
		bins := model.LogBins(8)
		same(t, "", olken(t, bins, x), analyze(t, ctx, bins, Config{Segment: int(segment) + 1}, x, 1000, false))
	})
}

// What is known of runs as they are copied, whatever their number.
func TestSummarize(t *testing.T) {
	r := seeded(t)
	for n := range 100 {
		blocks, runs := made(n, func(int) uint64 { return r.Uint64() }), make([]uint8, n)
		want := summary{0, ^uint64(0), uint64(n)}
		for i := range runs {
			runs[i] = uint8(r.UintN(128))
			if n%3 == 0 {
				runs[i] = 127
			}
			want.or |= blocks[i]
			want.and &= blocks[i]
			want.touches += uint64(runs[i] >> 1)
		}
		to := make([]uint64, n)
		if got := summarize(to, blocks, runs); got != want || !slices.Equal(to, blocks) {
			t.Fatalf("%d runs: %+v, want %+v", n, got, want)
		}
	}
}
