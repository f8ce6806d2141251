// Needs the traces of realtrace_test.go: valgrind and RDX_LONG=1.

package model

import (
	"fmt"
	"slices"
	"testing"
)

// scores compares an estimated stack-distance histogram with the exact one:
// accuracy on l2 and l10 bins, mean and largest error of the miss ratio at the
// sizes of the l10 bins up to the number of blocks; all in percent.
type scores struct{ l2, l10, mean, max float64 }

func score(t testing.TB, exact, est *Hist, blocks int) (s scores) {
	t.Helper()
	e, err := Score(exact, est, uint64(blocks))
	if err != nil {
		t.Fatal(err)
	}
	return scores{100 * e.L2, 100 * e.L10, 100 * e.MissMean, 100 * e.MissMax}
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

// leastLocal is the l2 that the time-local conversion reaches on words; what is
// not listed, and all lines, reach 92. In the sort of words a seventh of the
// reuses take 40 to 48 accesses within one comparison, the same sequence each
// time: distances are 31 to 33, the model says 29 to 32, and 32 is a bin's edge.
var leastLocal = map[string]float64{"sort-words": 89}

// By epochs of the run, as rdx does it by default, the conversion reaches
// l2 >= 92 and a mean miss-ratio error <= 1.9 points where phases differ, too,
// and on average more than SSX on the others.
func TestRealAccuracyLocal(t *testing.T) {
	for _, line := range []bool{false, true} {
		t.Run(fmt.Sprintf("line=%v", line), func(t *testing.T) {
			for _, list := range [][]realProgram{realPrograms, hardPrograms} {
				var gain float64
				realScores(t, list, 10, line, func(name string, s scores) {
					i := slices.IndexFunc(list, func(p realProgram) bool { return p.name == name })
					l := list[i].timeLocal(t, line, 640)
					t.Logf("%-10s  %v  time-local, 640 epochs", name, l)
					gain += (l.l2 - s.l2) / float64(len(list))
					least := 92.0
					if v, ok := leastLocal[name]; ok && !line {
						least = v
					}
					if l.l2 < least || l.mean > 1.9 {
						t.Errorf("%s: time-local l2 %.1f (at least %.0f), mean miss-ratio error %.2f (at most 1.9)", name, l.l2, least, l.mean)
					}
				})
				t.Logf("mean gain in l2 %+.2f", gain)
				if gain < 0 {
					t.Errorf("time-local conversion loses %.1f points of l2 on average", -gain)
				}
			}
		})
	}
}

// timeLocal is the score of the time-local conversion of a program's trace.
func (p realProgram) timeLocal(t *testing.T, line bool, n int) scores {
	t.Helper()
	h := p.hists(t, line)
	trace := p.load(t).blocks(line)
	epochs := make([]Epoch, n)
	b, length := LogBins(10), (len(trace)+n-1)/n
	for i := range epochs {
		epochs[i] = Epoch{Length: float64(min(length, len(trace)-i*length)), Times: NewHist(b)}
	}
	next := make([]int, h.blocks) // 1 + position of the next use
	for i := len(trace) - 1; i >= 0; i-- {
		e := epochs[i/length].Times
		if j := next[trace[i]]; j != 0 {
			e.Add(uint64(j-1-i), 1)
		} else {
			e.AddKind(Cold, 0, 1)
		}
		next[trace[i]] = i + 1
	}
	x, err := NewTimeLocal(epochs)
	if err != nil {
		t.Fatal(err)
	}
	est := NewHist(h.dists.Bins)
	for i, e := range epochs {
		if err := x.Stacks(est, i, e.Times); err != nil {
			t.Fatal(err)
		}
	}
	return score(t, h.dists, est, h.blocks)
}

// A profile of 3000 uses drawn at random from each program, the unfinished
// ones censored at the end of the run, through all that a profile goes
// through, with and without the epochs that tell when each was. Sampling itself
// costs one to two points.
func TestRealSampled(t *testing.T) {
	const n = 3000
	for _, line := range []bool{false, true} {
		t.Run(fmt.Sprintf("line=%v", line), func(t *testing.T) {
			rng := newRand(t, 61)
			var mean, plain float64
			programs := slices.Concat(realPrograms, hardPrograms)
			for _, program := range programs {
				h := program.hists(t, line)
				trace := program.load(t).blocks(line)
				wanted := map[int]uint64{} // position of a drawn use -> reuse time
				for len(wanted) < n {
					wanted[rng.IntN(len(trace))] = 0
				}
				next := make([]int, h.blocks)
				for i := len(trace) - 1; i >= 0; i-- {
					if _, ok := wanted[i]; ok && next[trace[i]] != 0 {
						wanted[i] = uint64(next[trace[i]] - 1 - i)
					}
					next[trace[i]] = i + 1
				}
				p := &Profile{Block: 64, BinsPerOctave: 10, Caches: []Cache{{Size: 32 << 10}}}
				for i, time := range wanted {
					r := Record{Kind: Reuse, Time: time, Epoch: 1 + 200*i/len(trace), Observations: 1, Accesses: float64(len(trace)) / n}
					if time == 0 {
						r.Kind, r.Time = Censored, uint64(max(1, len(trace)-1-i))
					}
					p.Records = append(p.Records, r)
				}
				of := func(p *Profile) scores {
					st, err := p.Stacks(h.dists.Bins)
					if err != nil {
						t.Fatal(err)
					}
					return score(t, h.dists, st, h.blocks)
				}
				s, w := of(p), of(withoutEpochs(p))
				t.Logf("%-10s  %v  without epochs %v", program.name, s, w)
				mean += s.l2 / float64(len(programs))
				plain += w.l2 / float64(len(programs))
				least := 88.0
				if v, ok := leastLocal[program.name]; ok && !line {
					least = v - 3
				}
				if s.l2 < least {
					t.Errorf("%s: l2 %.1f, want %.0f", program.name, s.l2, least)
				}
			}
			t.Logf("mean l2 %.1f, without epochs %.1f", mean, plain)
			if mean < 93 || mean < plain {
				t.Errorf("mean l2 %.1f, without epochs %.1f, want 93", mean, plain)
			}
		})
	}
}
