package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
)

// Each word is drawn as often as its probability says, and each two together.
func TestDrawWords(t *testing.T) {
	var seen LineSeen
	seen[2][5], seen[2][6] = 10, 5
	scores := seen.Scores(2)
	r := rand.New(rand.NewPCG(1, 1))
	for n := 1; n <= 3; n++ {
		const draws = 20000
		times, both := map[uint64]float64{}, 0.0
		probability, bothDrawn := map[uint64]float64{}, 0.0
		for range draws {
			words := DrawWords(r, scores, n, 0x1000)
			if len(words) != n {
				t.Fatalf("%d words drawn, want %d", len(words), n)
			}
			for i, w := range words {
				times[w.Addr]++
				probability[w.Addr] = w.Drawn
				for j, v := range words {
					if w.Addr == 0x1028 && v.Addr == 0x1030 {
						both++
						bothDrawn = w.Both[j]
					}
					if i == j && w.Both[j] != w.Drawn {
						t.Fatalf("word %d with itself: %v, want %v", i, w.Both[j], w.Drawn)
					}
				}
			}
		}
		sum := 0.0
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 4*math.Sqrt(want/draws) {
				t.Errorf("%d words: %s drawn in %.4f, want %.4f", n, what, got, want)
			}
		}
		for addr, p := range probability {
			sum += p
			near("one", times[addr]/draws, p)
		}
		near("two", both/draws, bothDrawn)
		if math.Abs(sum-float64(n)) > 1e-9 || probability[0x1010] != 0 {
			t.Errorf("%d words: probabilities add up to %v; of the word used: %v", n, sum, probability[0x1010])
		}
		if p := probability; !(p[0x1028] > p[0x1030] && p[0x1030] > p[0x1000]) {
			t.Errorf("%d words: probabilities %v, want those seen written to be likelier", n, p)
		}
	}
}

// The share of accesses whose line is written comes out right: from few words
// watched, whichever were learnt to be written, where some stop being watched
// before the write, and where several words are written at once.
func TestLineWeights(t *testing.T) {
	for name, c := range map[string]struct {
		written []int // words
		cut     float64
	}{
		"one word":                      {[]int{5}, 0},
		"one word, watched for a while": {[]int{5}, 1},
		"all words":                     {[]int{1, 2, 3, 4, 5, 6, 7}, 0},
		"three words, for a while":      {[]int{1, 2, 7}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(2, 2))
			const n, share = 20000, 0.3
			s := NewStage(Input{})
			var learnt LineSeen
			e := &record.Epoch{CPU: n, Accepted: n}
			p := &target.Process{}
			for i := range n {
				const end = 10e6
				o := &record.Observation{Process: p, Epoch: e, State: record.Done, Kind: model.Reuse, Stack: model.StackPrivate, PC: 1, Word: 0x7000, Sharing: record.Sharing{Wall: end, Lined: true}}
				// One whose reuse was read ahead, of which nobody could write the line meanwhile.
				s.Seen = append(s.Seen, &record.Observation{Process: p, Epoch: e, State: record.Done, Kind: model.Reuse, Stack: model.StackPrivate, PC: 1, Soon: 9, Counted: 9})
				if n := i % 4; n > 0 {
					o.Line = DrawWords(r, learnt.Scores(0), n, 0x7000)
				}
				at := r.Float64() * end
				gone := r.Float64() < share
				for k := range o.Line {
					w := &o.Line[k]
					cut := r.ExpFloat64() * end / max(c.cut, 1e-9)
					for _, j := range c.written {
						if gone && WordAt(w.Addr) == j && at < cut {
							w.Seen = &record.LineWrite{Wall: at, PC: 2}
							learnt[0][j]++
						}
					}
					if w.Seen == nil && cut < end {
						w.CutAt = cut
					}
				}
				s.Seen = append(s.Seen, o)
			}
			weights, got := s.lineWeights(), 0.0
			for _, o := range s.Seen {
				for k := range o.Line {
					if w := &o.Line[k]; w.Seen != nil {
						got += weights.of(o, w) / n
					}
				}
			}
			if math.Abs(got-share) > 0.015 {
				t.Errorf("share of lines written: %.3f, want %.3f", got, share)
			}
		})
	}
}

// Words that could not be watched, as registers were missing, were not drawn: however many are left of
// those drawn, in random order, each write that is seen stands for as many as there are.
func TestKeepWords(t *testing.T) {
	const seed, rounds = 1, 30_000
	r := rand.New(rand.NewPCG(seed, 1))
	var known LineSeen
	known[0][5], known[0][2] = 3, 1
	written := map[uint64]bool{0x40 + 2*8: true, 0x40 + 5*8: true, 0x40 + 7*8: true}
	for n := 1; n <= 3; n++ {
		for k := 0; k <= n; k++ {
			words, pairs := 0.0, 0.0
			for range rounds {
				line := KeepWords(DrawWords(r, known.Scores(0), n, 0x40), r.Perm(n)[:k])
				if len(line) != k {
					t.Fatalf("%d words of %d", len(line), k)
				}
				for i := range line {
					if !written[line[i].Addr] {
						continue
					}
					words += 1 / line[i].Drawn
					for j := range line {
						if i != j && written[line[j].Addr] {
							pairs += 1 / line[i].Both[j]
						}
					}
				}
			}
			want, wantPairs := 3.0, 6.0
			if k < 1 {
				want = 0
			}
			if k < 2 {
				wantPairs = 0
			}
			words, pairs = words/rounds, pairs/rounds
			t.Logf("%d of %d drawn: %.3f words written, %.3f pairs (seed %d)", k, n, words, pairs, seed)
			if math.Abs(words-want) > 0.05 || math.Abs(pairs-wantPairs) > 0.3 {
				t.Errorf("%d of %d drawn: %.3f words written and %.3f pairs, want %v and %v", k, n, words, pairs, want, wantPairs)
			}
		}
	}
}
