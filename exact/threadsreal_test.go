// Needs the instrumentation engine (make -C trace/valgrind), valgrind and the
// programs named below; run with RDX_LONG=1.

//go:build linux

package exact_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/trace"
)

// words is text that compresses and sorts, in so many lines.
func words(lines int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for range lines {
		for range 1 + r.IntN(5) {
			fmt.Fprintf(&b, "%x ", int(5000*r.Float64()*r.Float64()))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

const threadedPython = `
import sys, threading
sys.setswitchinterval(0.0001)
shared = list(range(3000))
def work(k):
    own = [0] * 2000
    for i in range(25000):
        own[i * 7 % 2000] += shared[i * 13 % 3000]
        if i % 100 == k: shared[i % 3000] = i
t = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for x in t: x.start()
for x in t: x.join()
`

// Table 1 of Schuff et al. on real multithreaded programs: accuracy of the
// sampled histograms against the exact ones of the same run, 10 bins an
// octave, lines. Both see the accesses in the order in which the engine lets
// threads run, one after the other in long turns: so what a skew between
// threads costs does not show here, and the parallel variants differ from the
// sequential ones by late invalidation only.
func TestPaperSchuffTable1Real(t *testing.T) {
	in := programInputs(t, 200_000)
	engine, text, script := in.engine, in.text, in.script
	small := filepath.Join(in.dir, "small")
	if err := os.WriteFile(small, words(20_000), 0o644); err != nil {
		t.Fatal(err)
	}
	variants := []struct {
		name             string
		shared, parallel bool
		paper            float64 // mean accuracy; it has none for private stacks in sequence
	}{
		{"private, parallel", false, true, 95.6}, {"private, sequential", false, false, 95.6},
		{"shared, parallel", true, true, 74.1}, {"shared, sequential", true, false, 88.9},
	}
	sum, n := make([]float64, len(variants)), 0
	for _, argv := range [][]string{
		{"xz", "-1", "-T4", "--block-size=65536", "-c", small},
		{"sort", "--parallel=4", "-S", "40M", text},
		{"zstd", "-T4", "-1", "-c", text},
		{"/usr/bin/python3", "-I", "-S", script},
	} {
		path, err := exec.LookPath(argv[0])
		if err != nil {
			t.Logf("%s: not installed, left out", argv[0])
			continue
		}
		argv := append([]string{path}, argv[1:]...)
		bins := model.LogBins(10)
		private, err := exact.NewPrivateStacks(model.LineBytes)
		if err != nil {
			t.Fatal(err)
		}
		shared, err := exact.NewSharedStack(model.LineBytes)
		if err != nil {
			t.Fatal(err)
		}
		// What is not a reuse is one bin, as in the paper.
		add := func(h *model.Hist, k model.Kind, d uint64) {
			if k != model.Reuse {
				k = model.Cold
			}
			h.AddKind(k, d, 1)
		}
		full := map[bool]*model.Hist{false: model.NewHist(bins), true: model.NewHist(bins)}
		samplers, sampled := make([]*exact.ThreadSampler, len(variants)), make([]*model.Hist, len(variants))
		note := make([]func(*exact.ThreadSample), len(variants))
		for i, v := range variants {
			samplers[i], err = exact.NewThreadSampler(exact.ThreadSamplerConfig{BlockBytes: model.LineBytes, MeanPeriod: 5000, Seed: 1,
				Shared: v.shared, Parallel: v.parallel, PruneAfter: 100, PruneQuantile: 0.99})
			if err != nil {
				t.Fatal(err)
			}
			sampled[i] = model.NewHist(bins)
			note[i] = func(x *exact.ThreadSample) { add(sampled[i], x.Kind, x.Dist) }
		}
		accesses := 0
		res, err := trace.Run(context.Background(), trace.Command{Args: argv, Env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}}, trace.Options{Engine: engine},
			func(batch []model.Access) {
				accesses += len(batch)
				if err := private.Add(batch, func(x *exact.Touch) { add(full[false], x.Kind, x.Dist) }); err != nil {
					t.Fatal(err)
				}
				if err := shared.Add(batch, func(x *exact.Touch) { add(full[true], x.Kind, x.Dist) }); err != nil {
					t.Fatal(err)
				}
				for i, s := range samplers {
					s.Add(batch, note[i])
				}
			})
		if err != nil || res.ExitCode != 0 || len(res.Partial) > 0 {
			t.Fatalf("%q: %+v, %v", argv, res, err)
		}
		n++
		for i, v := range variants {
			samplers[i].Finish(note[i])
			acc, err := model.Accuracy(full[v.shared], sampled[i])
			if err != nil {
				t.Fatal(err)
			}
			sum[i] += acc
			c := samplers[i].Counts()
			t.Logf("%-8s %3d threads %9d accesses  %-19s accuracy %.1f %%, %d samples, %.1f %% analysed", filepath.Base(argv[0]), private.Threads(), accesses,
				v.name, 100*acc, c.Samples, 100*float64(c.Analyzed)/float64(c.Touches))
		}
	}
	if n == 0 {
		t.Skip("none of the programs is installed")
	}
	for i, v := range variants {
		mean := 100 * sum[i] / float64(n)
		t.Logf("%-19s mean accuracy %.1f %%, paper %.1f", v.name, mean, v.paper)
		if mean < v.paper {
			t.Errorf("%s: mean accuracy %.1f %%, the paper's is %.1f", v.name, mean, v.paper)
		}
	}
}

// inputs of programs whose accesses an engine tells.
type inputs struct{ engine, dir, text, script string }

// programInputs makes them: a text of n words and a Python program of several
// threads. The engine is that of the source tree, if make engine has built it.
func programInputs(t *testing.T, n int) inputs {
	t.Helper()
	if os.Getenv("RDX_LONG") == "" {
		t.Skip("takes minutes: set RDX_LONG=1")
	}
	engine := needs.Engine(t, "..")
	dir := t.TempDir()
	in := inputs{engine, dir, filepath.Join(dir, "in"), filepath.Join(dir, "in.py")}
	if err := os.WriteFile(in.text, words(n), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in.script, []byte(threadedPython), 0o644); err != nil {
		t.Fatal(err)
	}
	return in
}
