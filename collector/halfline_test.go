// Needs: root, bpf, watchpoint, gcc.
package collector

import (
	"fmt"
	"math"
	"os/exec"
	"testing"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// A cyclic walk in shuffled order touches each of a line's words once a lap, at
// random places of it: the line is not touched for a share x of a lap with
// probability (1-x)^7.
func TestLines(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	const words = 50_000
	got := lineAccuracy(t, compilePattern(t), words)
	// Were the other half left out it would be 0.70, with its hazard twice what it is 0.75, and 0.87 or 0.88 with 1.4 or 0.7
	// times as much, before chance. An access takes the longer the colder a hold leaves the caches: with work of 30 ns between
	// them, not 250, it was 0.79 to 0.90, as the machine was.
	if got < 0.9 {
		t.Errorf("accuracy %.3f", got)
	}
}

// lineAccuracy is the accuracy of a session's reuse times of lines.
func lineAccuracy(t *testing.T, pattern string, words float64) float64 {
	t.Helper()
	args := func(seconds string) []string { return []string{"spaced", fmt.Sprint(int(words)), seconds} }
	// What is read ahead is counted in accesses, and so is what is timed, by the rate at which the pattern makes them.
	out, err := exec.Command(pattern, args("1")...).Output()
	if err != nil {
		t.Fatal(err)
	}
	alone := accessTime(t, string(out))
	p, _, ns := profilePattern(t, pattern, Config{Burst: AutoBurst, AccessRate: 1 / alone, Overhead: 0.4}, 0, args("20")...) // 1600 half lines: chance takes six points, give or take one
	times, err := p.Times()
	if err != nil {
		t.Fatal(err)
	}
	bins := model.LogBins(1)
	truth := model.NewHist(bins)
	above := func(t uint64) float64 { return math.Pow(1-min(1, float64(t)*alone/(ns*words)), 7) }
	for i := range bins.Len() {
		truth.W[i] = above(bins.Lo(i)) - above(bins.Hi(i))
	}
	a, err := model.Accuracy(truth, times.Rebin(bins))
	if err != nil {
		t.Fatal(err)
	}
	halves, pairs := 0, 0
	for _, r := range p.Records {
		if r.Half && r.Kind == model.Reuse {
			halves++
			if r.Pair == model.Reuse {
				pairs++
			}
		}
	}
	t.Logf("accesses of %.3g ns, %.3g alone; accuracy %.3f, %d half lines and %d pairs touched again; %v %v", ns, alone, a, halves, pairs, p.Counts, p.Comments)
	if p.Block != 64 || halves < 50 || pairs == 0 || pairs == halves {
		t.Errorf("block %d, %d half lines, %d pairs", p.Block, halves, pairs)
	}
	return a
}
