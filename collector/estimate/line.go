package estimate

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/sampler"
)

// False sharing is seen by watching other words of a datum's line for writes of
// other threads: as many as there are free slots, drawn at random. How likely
// each was to be drawn is known, so that each write that is seen can be weighted
// for those of words that were not drawn (Horvitz and Thompson).

const (
	WordBytes = 8
	LineBytes = 64
	LineWords = LineBytes / WordBytes
)

// LineSeen counts in which words of a line writes were seen, by the word that
// was used: words often written are drawn more often.
type LineSeen [LineWords][LineWords]float64

// wordBoost is how much likelier a word is to be drawn that has been seen
// written most often than one that never was. The larger, the fewer are missed
// of what is known, and the heavier each that is new weighs.
const wordBoost = 8

// Scores of the words of a line where word used is used, 0 for that itself.
func (l *LineSeen) Scores(used int) (scores [LineWords]float64) {
	most := 1.0
	for _, n := range l[used] {
		most = max(most, n)
	}
	for w, n := range l[used] {
		if w != used {
			scores[w] = 1 + (wordBoost-1)*n/most
		}
	}
	return scores
}

// wordSets are all sets of n words of a line, as bits, with weights: each set's
// is the product of its words' scores.
func wordSets(scores [LineWords]float64, n int) (weights [1 << LineWords]float64, sum float64) {
	for set := range weights {
		if bits.OnesCount8(uint8(set)) != n {
			continue
		}
		weights[set] = 1
		for w, s := range scores {
			if set>>w&1 != 0 {
				weights[set] *= s
			}
		}
		sum += weights[set]
	}
	return weights, sum
}

// DrawWords draws n words of the line at base, of which word used is used.
func DrawWords(r *rand.Rand, scores [LineWords]float64, n int, base uint64) []record.LineWord {
	weights, sum := wordSets(scores, n)
	u, drawn := r.Float64()*sum, 0
	for set, w := range weights {
		if w > 0 {
			drawn = set // the last, should rounding leave none
			if u -= w; u < 0 {
				break
			}
		}
	}
	// That all of some words are drawn, in which at least they are.
	all := func(some int) (p float64) {
		for set, w := range weights {
			if set&some == some {
				p += w / sum
			}
		}
		return p
	}
	var out []record.LineWord
	for w := range LineWords {
		if drawn>>w&1 == 0 {
			continue
		}
		word := record.LineWord{Addr: base + uint64(w)*WordBytes, Drawn: all(1 << w)}
		i := 0
		for v := range LineWords {
			if drawn>>v&1 != 0 {
				word.Both[i] = all(1<<w | 1<<v)
				i++
			}
		}
		out = append(out, word)
	}
	return out
}

// KeepWords are those of the words drawn that are watched in the end, any of them as likely as
// any other.
func KeepWords(drawn []record.LineWord, kept []int) (line []record.LineWord) {
	n, k := float64(len(drawn)), float64(len(kept))
	slices.Sort(kept)
	for _, i := range kept {
		w := drawn[i]
		w.Drawn *= k / n
		w.Both = [sampler.NumSlots]float64{}
		for place, j := range kept {
			if i == j {
				w.Both[place] = w.Drawn
			} else {
				w.Both[place] = drawn[i].Both[j] * k * (k - 1) / (n * (n - 1))
			}
		}
		line = append(line, w)
	}
	return line
}

// WordAt is the place of an address in its line.
func WordAt(addr uint64) int { return int(addr % LineBytes / WordBytes) }
