// Needs the instrumentation engine (make -C trace/valgrind), valgrind and the
// programs named below; run with RDX_LONG=1.

//go:build linux

package exact_test

import (
	"context"
	"errors"
	"math"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/gpu"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/trace"
)

// firstAccesses runs a program and returns the first n accesses, and how long
// the engine took for each of them.
func firstAccesses(t *testing.T, engine string, n int, argv ...string) ([]model.Access, time.Duration) {
	t.Helper()
	var all []model.Access
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	start := time.Now()
	var elapsed time.Duration
	_, err := trace.Run(ctx, trace.Command{Args: argv, Env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}}, trace.Options{Engine: engine}, func(batch []model.Access) {
		if len(all) < n {
			all = append(all, batch[:min(len(batch), n-len(all))]...)
			if elapsed = time.Since(start); len(all) == n {
				cancel()
			}
		}
	})
	if err != nil && !errors.Is(err, context.Canceled) && len(all) < n {
		t.Fatalf("%q: %v", argv, err)
	}
	return all, elapsed
}

// HP-RDA's figures 10 to 14 on programs of this machine, lines: speed-up over
// the sequential analysis, alone and with the tracing, and the mean error of a
// bin (one an octave) of the approximate merge, as their formula has it: without
// and with the effective factor. Theirs, on SPEC CPU2000: 19.6 times on a GPU
// and 3 on four cores (figure 10), 15.1 and 1.85 with the tracing (figure 11);
// errors of 1.2 % and 0.37 % (figure 14).
func TestPaperHPRDA(t *testing.T) {
	in := programInputs(t, 60_000)
	engine, text, script := in.engine, in.text, in.script
	cores := runtime.NumCPU()
	bins := model.LogBins(1)
	var programs, plainSum, factorSum, speedSum, wholeSum, gpuSum float64
	devices, noGPU := gpu.List()
	if noGPU != nil {
		t.Logf("no GPU: %v", noGPU)
	}
	for _, argv := range [][]string{
		{"gzip", "-6", "-c", text}, {"bzip2", "-c", text}, {"xz", "-1", "-c", text}, {"sort", "--parallel=1", text},
		{"/usr/bin/python3", "-I", "-S", script}, {"awk", `{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) print w, n[w] }`, text},
	} {
		path, err := exec.LookPath(argv[0])
		if err != nil {
			t.Logf("%s: not installed, left out", argv[0])
			continue
		}
		accesses, tracing := firstAccesses(t, engine, 6_000_000, append([]string{path}, argv[1:]...)...)
		start := time.Now()
		e, err := exact.New(model.LineBytes, bins)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Add(accesses); err != nil {
			t.Fatal(err)
		}
		sequential := time.Since(start)
		run := func(c exact.ParallelConfig) (*model.Hist, time.Duration) {
			start := time.Now()
			p, err := exact.NewParallel(model.LineBytes, bins, c)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Add(accesses); err != nil {
				t.Fatal(err)
			}
			if err := p.Finish(); err != nil {
				t.Fatal(err)
			}
			return p.Distances(), time.Since(start)
		}
		want := e.Distances()
		merged, parallel := run(exact.ParallelConfig{Jobs: cores})
		if a, err := model.Accuracy(want, merged); err != nil || a != 1 {
			t.Errorf("%s: the exact merge has accuracy %v, %v", argv[0], a, err)
		}
		var plain, factor [2]float64
		for i, piece := range []int{2048, 16384} {
			for _, f := range []bool{false, true} {
				h, _ := run(exact.ParallelConfig{Jobs: cores, Approximate: true, Factor: f, PieceTouches: piece})
				if err := binError(want, h); f {
					factor[i] = err
				} else {
					plain[i] = err
				}
			}
		}
		speed := sequential.Seconds() / parallel.Seconds()
		whole := (tracing + sequential).Seconds() / math.Max((tracing+parallel).Seconds(), 1e-9)
		t.Logf("%-8s %8d accesses %7d lines: exact merge on %d cores %.2f times as fast, %.2f with tracing; error without, with factor: pieces of 2048 %.2f %%, %.2f %%; of 16384 %.2f %%, %.2f %%",
			filepath.Base(argv[0]), len(accesses), e.Blocks(), cores, speed, whole, plain[0], factor[0], plain[1], factor[1])
		if noGPU == nil {
			gpuSum += onGPU(t, accesses, bins, want, plain[0], factor[0], sequential)
		}
		programs++
		speedSum, wholeSum = speedSum+speed, wholeSum+whole
		plainSum, factorSum = plainSum+plain[0], factorSum+factor[0]
	}
	if programs == 0 {
		t.Skip("none of the programs is installed")
	}
	t.Logf("mean: %.2f times as fast, %.2f with tracing (paper, four cores: 3, 1.85; GPU: 19.6, 15.1); error %.2f %% without and %.2f %% with the factor (paper: 1.2, 0.37), 0 with the exact merge",
		speedSum/programs, wholeSum/programs, plainSum/programs, factorSum/programs)
	if noGPU == nil {
		t.Logf("mean on %s (%s): %.2f times as fast as one core, transfers included (paper: 19.6)", devices[0].Name, devices[0].Kind, gpuSum/programs)
	}
}

// onGPU does the same on a GPU: exact, and the approximate merge of pieces of 2048, whose errors are to be those that it
// has on processors. It returns how many times as fast as the sequential analysis the exact one was.
func onGPU(t *testing.T, accesses []model.Access, bins *model.Bins, want *model.Hist, plain, factor float64, sequential time.Duration) float64 {
	t.Helper()
	run := func(c gpu.Config) (*model.Hist, time.Duration) {
		e, err := gpu.NewExact(model.LineBytes, bins, c)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		start := time.Now()
		if err := e.Add(accesses); err != nil {
			t.Fatal(err)
		}
		r, err := e.Result()
		if err != nil {
			t.Fatal(err)
		}
		return r.Distances(), time.Since(start)
	}
	h, elapsed := run(gpu.Config{Device: "0"})
	if a, err := model.Accuracy(want, h); err != nil || a != 1 {
		t.Errorf("the exact merge on the GPU has accuracy %v, %v", a, err)
	}
	for _, f := range []bool{false, true} {
		h, _ := run(gpu.Config{Device: "0", Piece: 2048, Factor: f})
		if err, same := binError(want, h), map[bool]float64{false: plain, true: factor}[f]; err != same {
			t.Errorf("the approximate merge on the GPU, factor %v, has an error of %v %%, and %v %% on processors", f, err, same)
		}
	}
	speed := sequential.Seconds() / elapsed.Seconds()
	t.Logf("         on the GPU: %.2f times as fast as one core, error 0; of the approximate merge the same errors", speed)
	return speed
}

// binError is their measure: the mean over the bins of the difference of two
// normalised histograms, in percent. Bins that are empty in both are left out.
func binError(a, b *model.Hist) float64 {
	ta, tb := a.Total(), b.Total()
	var sum, n float64
	for i := range a.W {
		if a.W[i] > 0 || b.W[i] > 0 {
			sum += math.Abs(a.W[i]/ta - b.W[i]/tb)
			n++
		}
	}
	return 100 * sum / math.Max(n, 1)
}
