// Needs the traces of realtrace_test.go: valgrind and RDX_LONG=1.

package model

import (
	"fmt"
	"math"
	"testing"
)

// scores compares an estimated stack-distance histogram with the exact one:
// accuracy on l2 and l10 bins, mean and largest error of the miss ratio at the
// sizes of the l10 bins up to the number of blocks; all in percent.
type scores struct{ l2, l10, mean, max float64 }

func score(t testing.TB, exact, est *Hist, blocks int) (s scores) {
	t.Helper()
	for _, c := range []struct {
		bins *Bins
		to   *float64
	}{{LogBins(1), &s.l2}, {LogBins(10), &s.l10}} {
		a, err := Accuracy(exact.Rebin(c.bins), est.Rebin(c.bins))
		if err != nil {
			t.Fatal(err)
		}
		*c.to = 100 * a
	}
	grid, n := LogBins(10), 0.0
	for i := 1; i < grid.Len() && grid.Lo(i) <= uint64(blocks); i++ {
		e := 100 * math.Abs(exact.MissRatio(grid.Lo(i))-est.MissRatio(grid.Lo(i)))
		s.mean += e
		s.max = max(s.max, e)
		n++
	}
	s.mean /= n
	return s
}

func (s scores) String() string {
	return fmt.Sprintf("%5.1f/%4.1f %5.2f/%4.1f", s.l2, s.l10, s.mean, s.max)
}

// realScores runs all models and the printed form of Shen's on the programs.
func realScores(t *testing.T, programs []realProgram, perOctave int, line bool, check func(name string, ssx scores)) (names []string, mean []scores) {
	names = append(append([]string(nil), ModelNames...), "shen as printed")
	mean = make([]scores, len(names))
	t.Logf("l2/l10, mean/max miss-ratio error of %v", names)
	for _, p := range programs {
		h := p.hists(t, line)
		times := h.times.Rebin(LogBins(perOctave))
		row := fmt.Sprintf("%-10s", h.name)
		for i := range names {
			var m Model = &Shen{Form: ShenPrinted}
			if i < len(ModelNames) {
				m, _ = NewModel(names[i])
			}
			if s, ok := m.(*Shen); ok {
				s.N = float64(h.blocks)
			}
			if err := m.Reset(times); err != nil {
				t.Fatal(err)
			}
			est := NewHist(h.dists.Bins)
			if err := m.Stacks(est, times); err != nil {
				t.Fatal(err)
			}
			s := score(t, h.dists, est, h.blocks)
			row += fmt.Sprintf("  %v", s)
			n := float64(len(programs))
			mean[i].l2 += s.l2 / n
			mean[i].l10 += s.l10 / n
			mean[i].mean += s.mean / n
			mean[i].max = max(mean[i].max, s.max)
			if i == 0 {
				check(h.name, s)
			}
		}
		t.Log(row)
	}
	row := fmt.Sprintf("%-10s", "mean")
	for _, s := range mean {
		row += fmt.Sprintf("  %v", s)
	}
	t.Log(row)
	return names, mean
}

// SSX on the full histogram of each program, at the resolution of a profile:
// l2 >= 92, mean miss-ratio error <= 1.9 points. And on average better than the
// models it is to replace, also on ten times finer bins.
func TestRealAccuracy(t *testing.T) {
	for _, perOctave := range []int{10, 100} {
		for _, line := range []bool{false, true} {
			t.Run(fmt.Sprintf("bins=%d/line=%v", perOctave, line), func(t *testing.T) {
				names, mean := realScores(t, realPrograms, perOctave, line, func(name string, s scores) {
					if perOctave == 10 && (s.l2 < 92 || s.mean > 1.9) {
						t.Errorf("%s: ssx l2 %.1f (at least 92), mean miss-ratio error %.2f (at most 1.9)", name, s.l2, s.mean)
					}
				})
				for i, s := range mean[1:] {
					if s.l2 > mean[0].l2 || s.l10 > mean[0].l10 {
						t.Errorf("%s is better than ssx: %v and %v", names[i+1], s, mean[0])
					}
				}
			})
		}
	}
}

// What SSX does where it does worst; the bounds only keep that from growing.
func TestRealAccuracyHard(t *testing.T) {
	for _, line := range []bool{false, true} {
		t.Run(fmt.Sprintf("line=%v", line), func(t *testing.T) {
			realScores(t, hardPrograms, 10, line, func(name string, s scores) {
				if s.l2 < 87 || s.mean > 2.5 {
					t.Errorf("%s: ssx l2 %.1f (at least 87), mean miss-ratio error %.2f (at most 2.5)", name, s.l2, s.mean)
				}
			})
		})
	}
}
