// Needs the traces of realtrace_test.go: valgrind and RDX_LONG=1.

package model_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// scores compares an estimated stack-distance histogram with the exact one:
// accuracy on l2 and l10 bins, mean and largest error of the miss ratio at the
// sizes of the l10 bins up to the number of blocks; all in percent.
type scores struct{ l2, l10, mean, max float64 }

func score(t testing.TB, exact, est *model.Hist, blocks int) (s scores) {
	t.Helper()
	e, err := model.Score(exact, est, uint64(blocks))
	if err != nil {
		t.Fatal(err)
	}
	return scores{100 * e.L2, 100 * e.L10, 100 * e.MissMean, 100 * e.MissMax}
}

func (s scores) String() string {
	return fmt.Sprintf("%5.1f/%4.1f %5.2f/%4.1f", s.l2, s.l10, s.mean, s.max)
}

// realScores runs all models and the printed form of Shen's on the programs.
func realScores(t *testing.T, perOctave int, line bool, check func(name string, ssx scores)) (names []string, mean []scores) {
	names = append(append([]string(nil), model.ModelNames...), "shen as printed")
	mean = make([]scores, len(names))
	t.Logf("l2/l10, mean/max miss-ratio error of %v", names)
	for _, p := range realPrograms {
		h := p.hists(t, line)
		times := h.times.Rebin(model.LogBins(perOctave))
		row := fmt.Sprintf("%-10s", h.name)
		for i := range names {
			var m model.Model = &model.Shen{Form: model.ShenPrinted}
			if i < len(model.ModelNames) {
				m, _ = model.NewModel(names[i])
			}
			if s, ok := m.(*model.Shen); ok {
				s.N = float64(h.blocks)
			}
			if err := m.Reset(times); err != nil {
				t.Fatal(err)
			}
			est := model.NewHist(h.dists.Bins)
			if err := m.Stacks(est, times); err != nil {
				t.Fatal(err)
			}
			s := score(t, h.dists, est, h.blocks)
			row += fmt.Sprintf("  %v", s)
			mean[i].add(s, len(realPrograms))
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

// add makes s the mean, and the largest of the largest errors, of n scores.
func (s *scores) add(o scores, n int) {
	s.l2 += o.l2 / float64(n)
	s.l10 += o.l10 / float64(n)
	s.mean += o.mean / float64(n)
	s.max = max(s.max, o.max)
}

// The goal for the conversion of a program's full histogram of reuse times:
// l2 at least, and the mean miss-ratio error at most, in percent.
const goalL2, goalMiss = 92, 1.9

// ofBlocks names a program's words or lines.
type ofBlocks struct {
	name string
	line bool
}

// A shortfall is what is reached instead of the goal.
type shortfall struct{ l2, miss float64 }

// ssxShort: gzip on prose, perl and openssl go through many short phases that
// differ, which one histogram of the whole run can't tell. See localShort for
// the sort of words.
var ssxShort = map[ofBlocks]shortfall{
	{"gzip-text", false}:  {91.5, goalMiss},
	{"gzip-text", true}:   {89.5, 2.1},
	{"sort-words", false}: {87.5, goalMiss},
	{"perl", false}:       {90.5, goalMiss},
	{"openssl", false}:    {88.5, goalMiss},
}

// localShort: in the sort of words a seventh of the reuses take 40 to 48
// accesses within one comparison, the same sequence each time: distances are 31
// to 33, the model says 29 to 32, and 32 is the edge of an octave. With the
// edges elsewhere it is as good as the others, see TestRealOctaveEdges. With epochs
// of 200 accesses it would have 91.6.
var localShort = map[ofBlocks]shortfall{
	{"sort-words", false}: {89.5, goalMiss},
}

// check fails if the goal is not reached, or is where that is not expected.
func (s scores) check(t *testing.T, what string, of ofBlocks, short map[ofBlocks]shortfall) {
	t.Helper()
	want, isShort := short[of]
	if !isShort {
		want = shortfall{goalL2, goalMiss}
	}
	if s.l2 < want.l2 || s.mean > want.miss {
		t.Errorf("%v: %s l2 %.2f, mean miss-ratio error %.2f, want at least %v and at most %v", of, what, s.l2, s.mean, want.l2, want.miss)
	}
	if isShort && s.l2 >= goalL2 && s.mean <= goalMiss {
		t.Errorf("%v: %s l2 %.2f, mean miss-ratio error %.2f is no shortfall", of, what, s.l2, s.mean)
	}
}

// SSX on the full histogram of each program, at the resolution of a profile,
// reaches the goal but for ssxShort. And on average it is better than the models it
// is to replace, also on ten times finer bins.
func TestRealAccuracy(t *testing.T) {
	for _, perOctave := range []int{10, 100} {
		for _, line := range []bool{false, true} {
			t.Run(fmt.Sprintf("bins=%d/line=%v", perOctave, line), func(t *testing.T) {
				names, mean := realScores(t, perOctave, line, func(name string, s scores) {
					if perOctave == 10 {
						s.check(t, "ssx", ofBlocks{name, line}, ssxShort)
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

// By epochs of the run, as rdx does it by default, the conversion reaches the
// goal where phases differ, too, but for localShort, and on average it is
// better than SSX.
func TestRealAccuracyLocal(t *testing.T) {
	for _, line := range []bool{false, true} {
		t.Run(fmt.Sprintf("line=%v", line), func(t *testing.T) {
			var local scores
			_, mean := realScores(t, 10, line, func(name string, _ scores) {
				p := realProgramNamed(name)
				h := p.hists(t, line)
				s := score(t, h.dists, p.timeLocal(t, line, 640), h.blocks)
				t.Logf("%-10s  %v  time-local, 640 epochs", name, s)
				s.check(t, "time-local", ofBlocks{name, line}, localShort)
				local.add(s, len(realPrograms))
			})
			t.Logf("%-10s  %v  time-local, 640 epochs", "mean", local)
			if local.l2 < mean[0].l2 || local.mean > mean[0].mean {
				t.Errorf("time-local conversion is worse than ssx on average: %v and %v", local, mean[0])
			}
		})
	}
}

func realProgramNamed(name string) realProgram {
	return realPrograms[slices.IndexFunc(realPrograms, func(p realProgram) bool { return p.name == name })]
}

// How much l2 owes to where its edges are: with edges at 2^(k+j/8), on average
// of j = 0..7, every program reaches the goal, and what falls short at powers of
// two does not with the edges an eighth of an octave higher.
func TestRealOctaveEdges(t *testing.T) {
	const steps = 8
	for _, line := range []bool{false, true} {
		for _, p := range realPrograms {
			h := p.hists(t, line)
			local := p.timeLocal(t, line, 640)
			var at [steps]float64
			mean := 0.0
			for j := range at {
				b := octavesFrom(t, float64(j)/steps)
				a, err := model.Accuracy(h.dists.Rebin(b), local.Rebin(b))
				if err != nil {
					t.Fatal(err)
				}
				at[j] = 100 * a
				mean += at[j] / steps
			}
			t.Logf("%-10s line %-5v time-local, mean of edges %.1f  %5.1f", p.name, line, mean, at)
			if mean < goalL2 {
				t.Errorf("%s, line %v: l2 of shifted octaves %.1f on average, at least %d is wanted", p.name, line, mean, goalL2)
			}
			if _, short := localShort[ofBlocks{p.name, line}]; short && at[1] < goalL2 {
				t.Errorf("%s, line %v: l2 with edges at 2^(k+1/8) is %.1f: its shortfall is not that of an edge", p.name, line, at[1])
			}
		}
	}
}

// octavesFrom are bins with edges at 2^(k+shift).
func octavesFrom(t *testing.T, shift float64) *model.Bins {
	edges := []uint64{0}
	for k := range 50 {
		if e := uint64(math.Ceil(math.Exp2(float64(k) + shift))); e > edges[len(edges)-1] {
			edges = append(edges, e)
		}
	}
	b, err := model.EdgeBins(edges)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// timeLocal is the time-local conversion of a program's trace, cut into n epochs.
func (p realProgram) timeLocal(t *testing.T, line bool, n int) *model.Hist {
	t.Helper()
	h := p.hists(t, line)
	trace := p.load(t).blocks(line)
	epochs := make([]model.Epoch, n)
	b, length := model.LogBins(10), (len(trace)+n-1)/n
	for i := range epochs {
		epochs[i] = model.Epoch{Length: float64(min(length, len(trace)-i*length)), Times: model.NewHist(b)}
	}
	next := make([]int, h.blocks) // 1 + position of the next use
	for i := len(trace) - 1; i >= 0; i-- {
		e := epochs[i/length].Times
		if j := next[trace[i]]; j != 0 {
			e.Add(uint64(j-1-i), 1)
		} else {
			e.AddKind(model.Cold, 0, 1)
		}
		next[trace[i]] = i + 1
	}
	x, err := model.NewTimeLocal(epochs)
	if err != nil {
		t.Fatal(err)
	}
	est := model.NewHist(h.dists.Bins)
	for i, e := range epochs {
		if err := x.Stacks(est, i, e.Times); err != nil {
			t.Fatal(err)
		}
	}
	return est
}

// sampledLeast are the least and the mean l2 of profiles of 3000 uses, by how
// far is read ahead: what is reused within that many accesses has its distance
// counted, and what is not the beginning of it. From 64 on they are the goals for whole
// runs with real watchpoints; with 64 perl's words don't reach them, see perlWords.
// rdx reads 2047 ahead with a timer, 63 with a PMU.
var sampledLeast = []struct {
	ahead       int
	least, mean [2]float64 // of words and of lines
}{
	{0, [2]float64{87.5, 91}, [2]float64{93, 95}},
	{64, [2]float64{92, 91}, [2]float64{94.5, 95.5}},
	{255, [2]float64{92, 91}, [2]float64{94.5, 95.5}},
	{2047, [2]float64{92, 91}, [2]float64{94.5, 95.5}},
}

// perlWords is the least l2 of perl's words with 64 read ahead: of its accesses 6.7 % have distances
// of 118 to 139 and 6.7 % of 235 to 279, on both sides of the edges 128 and 256.
const perlWords = 89.5

// A profile of 3000 uses drawn at random from each program, the unfinished
// ones censored at the end of the run, through all that a profile goes
// through, with and without the epochs that tell when each was, and with and
// without reading ahead, as rdx does on x86-64.
func TestRealSampled(t *testing.T) {
	const n = 3000
	for k, line := range []bool{false, true} {
		t.Run(fmt.Sprintf("line=%v", line), func(t *testing.T) {
			rng := model.NewRand(t, 61)
			mean, plain := make([]scores, len(sampledLeast)), make([]scores, len(sampledLeast))
			for _, program := range realPrograms {
				h := program.hists(t, line)
				trace := program.load(t).blocks(line)
				uses := map[int]sampledUse{} // by position
				for len(uses) < n {
					uses[rng.IntN(len(trace))] = sampledUse{}
				}
				next, seen := make([]int, h.blocks), make([]int, h.blocks)
				for i := len(trace) - 1; i >= 0; i-- {
					if _, ok := uses[i]; ok && next[trace[i]] != 0 {
						uses[i] = followed(trace, i, next[trace[i]]-1, seen)
					}
					next[trace[i]] = i + 1
				}
				row := fmt.Sprintf("%-10s", program.name)
				for j, want := range sampledLeast {
					p := &model.Profile{Block: 64, BinsPerOctave: 10, Caches: []model.Cache{{Size: 32 << 10}}}
					for i, u := range uses {
						r := model.Record{Kind: model.Reuse, Timing: model.Timing{Time: u.time}, Epoch: 1 + 200*i/len(trace), Weight: model.Weight{Observations: 1, Accesses: float64(len(trace)) / n}}
						switch {
						case u.time == 0:
							r.Kind, r.Time = model.Censored, uint64(max(1, len(trace)-1-i))
						case u.time <= uint64(want.ahead):
							r.Exact, r.Distinct = true, u.distinct[j]
						case want.ahead > 0:
							r.After, r.Distinct = uint64(want.ahead)-1, u.distinct[j]
						}
						p.Records = append(p.Records, r)
					}
					of := func(p *model.Profile) scores {
						st, err := p.Stacks(h.dists.Bins)
						if err != nil {
							t.Fatal(err)
						}
						return score(t, h.dists, st, h.blocks)
					}
					s, w := of(p), of(model.WithoutEpochs(p))
					row += fmt.Sprintf("   %d ahead %v, without epochs %v", want.ahead, s, w)
					mean[j].add(s, len(realPrograms))
					plain[j].add(w, len(realPrograms))
					least := want.least[k]
					if program.name == "perl" && !line && want.ahead == 64 {
						least = min(least, perlWords)
					}
					if s.l2 < least {
						t.Errorf("%s, %d read ahead: l2 %.1f, want %.1f", program.name, want.ahead, s.l2, least)
					}
				}
				t.Log(row)
			}
			for j, want := range sampledLeast {
				t.Logf("%d read ahead: mean %v, without epochs %v", want.ahead, mean[j], plain[j])
				if mean[j].l2 < want.mean[k] || mean[j].l2 < plain[j].l2 {
					t.Errorf("%d read ahead: mean l2 %.1f, without epochs %.1f, want %.1f", want.ahead, mean[j].l2, plain[j].l2, want.mean[k])
				}
			}
		})
	}
}

// sampledUse is a use and its reuse; time is 0 if there is none. distinct[j] is how
// many different blocks are touched from the use on until just before the reuse, or
// as far as sampledLeast[j] reads ahead, if that is less.
type sampledUse struct {
	time     uint64
	distinct [4]uint64
}

// followed is a use at position i that is reused at j. seen holds, by block, 1 + the
// position of the use after which it was counted last.
func followed(trace []uint32, i, j int, seen []int) (u sampledUse) {
	u.time = uint64(j - i)
	at, n := i, uint64(0)
	for k, s := range sampledLeast {
		for ; at < min(j, i+s.ahead); at++ {
			if b := trace[at]; seen[b] != i+1 {
				seen[b] = i + 1
				n++
			}
		}
		u.distinct[k] = n
	}
	return u
}
