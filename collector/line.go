package collector

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// False sharing is seen by watching other words of a datum's line for writes of
// other threads: as many as there are free slots, drawn at random. How likely
// each was to be drawn is known, so that each write that is seen can be weighted
// for those of words that were not drawn (Horvitz and Thompson).

// lineWord is another word of a datum's line that is watched, too.
type lineWord struct {
	addr uint64
	// drawn is the probability that this word was drawn, and together that both
	// were, by place in observation.line.
	drawn    float64
	together [sampler.NumSlots]float64

	seen  *lineWrite
	cutAt float64 // age in ns at which its slot was given to another datum, 0: kept to the end
}

// lineWrite is a write of another thread to the line of a datum, elsewhere.
type lineWrite struct {
	tid   int
	pc    uint64
	stack int
	wall  float64 // ns since the use
}

// lineSeen counts in which words of a line writes were seen, by the word that
// was used: words often written are drawn more often.
type lineSeen [lineWords][lineWords]float64

// wordBoost is how much likelier a word is to be drawn that has been seen
// written most often than one that never was. The larger, the fewer are missed
// of what is known, and the heavier each that is new weighs.
const wordBoost = 8

// scores of the words of a line where word used is used, 0 for that itself.
func (l *lineSeen) scores(used int) (scores [lineWords]float64) {
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
func wordSets(scores [lineWords]float64, n int) (weights [1 << lineWords]float64, sum float64) {
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

// drawWords draws n words of the line at base, of which word used is used.
func drawWords(r *rand.Rand, scores [lineWords]float64, n int, base uint64) []lineWord {
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
	var out []lineWord
	for w := range lineWords {
		if drawn>>w&1 == 0 {
			continue
		}
		word := lineWord{addr: base + uint64(w)*wordBytes, drawn: all(1 << w)}
		i := 0
		for v := range lineWords {
			if drawn>>v&1 != 0 {
				word.together[i] = all(1<<w | 1<<v)
				i++
			}
		}
		out = append(out, word)
	}
	return out
}

// keepWords are those of the words drawn that are watched in the end, any of them as likely as
// any other.
func keepWords(drawn []lineWord, kept []int) (line []lineWord) {
	n, k := float64(len(drawn)), float64(len(kept))
	slices.Sort(kept)
	for _, i := range kept {
		w := drawn[i]
		w.drawn *= k / n
		w.together = [sampler.NumSlots]float64{}
		for place, j := range kept {
			if i == j {
				w.together[place] = w.drawn
			} else {
				w.together[place] = drawn[i].together[j] * k * (k - 1) / (n * (n - 1))
			}
		}
		line = append(line, w)
	}
	return line
}

// wordAt is the place of an address in its line.
func wordAt(addr uint64) int { return int(addr % lineBytes / wordBytes) }

// lineWeights says what each write seen elsewhere in a datum's line stands for,
// in observations like the one it belongs to.
//
// A word's slot may have gone to another datum before the write came: those seen
// after a time stand for those that were no longer seen, by Kaplan and Meier's
// estimate of how long words are watched. And where several words of a line
// are written, all say the same: that the line is gone. Each counts for one by
// the mean number of words that the same code writes where one is seen.
type lineWeights struct {
	bins    *model.Bins
	watched []float64 // probability to be watched still, by wall time in ns
	words   map[codePair]float64
	scale   float64 // for data watched of whose line no other word was watched, there being no free slot
}

// codePair is the code that used a datum and that wrote elsewhere in its line.
type codePair struct {
	process *process
	use     uint64
	write   uint64
}

func (s *Session) lineWeights() *lineWeights {
	lw := &lineWeights{bins: model.LogBins(10), words: make(map[codePair]float64)}
	cut, kept := make([]float64, lw.bins.Len()), make([]float64, lw.bins.Len())
	var private []*observation
	all, with := 0.0, 0.0
	for _, o := range s.seen {
		if o.state != done || !o.lined {
			continue // not watched: nobody writes so soon, or there is nobody else
		}
		weight := o.epoch.perObservation() * o.touches()
		all += weight
		if len(o.line) > 0 {
			with += weight
			private = append(private, o)
		}
	}
	lw.scale = 1
	if with > 0 {
		lw.scale = all / with
	}
	for _, o := range private {
		for i := range o.line {
			w := &o.line[i]
			age, to := o.watchedLook().wall, kept
			switch {
			case w.seen != nil:
				age = w.seen.wall
			case w.cutAt > 0:
				age, to = w.cutAt, cut
			case o.kind == model.Censored || o.kind == model.Pruned:
				to = cut
			}
			to[lw.bins.Index(uint64(max(age, 1)))] += o.epoch.perObservation()
		}
	}
	lw.watched = make([]float64, lw.bins.Len())
	sum := model.KaplanMeier(lw.watched, lw.bins, cut, kept, 0)
	for _, v := range lw.watched {
		sum += v
	}
	gone := 0.0
	for i, v := range lw.watched {
		lw.watched[i] = 1
		if sum > 0 {
			lw.watched[i] = max(1-(gone+v/2)/sum, fewestWatched)
		}
		gone += v
	}

	singles, pairs := make(map[codePair]float64), make(map[codePair]float64)
	for _, o := range private {
		for i := range o.line {
			w := &o.line[i]
			// Whose only word is watched knows of no others.
			if w.seen == nil || len(o.line) == 1 {
				continue
			}
			key, weight := o.pairWith(w), o.epoch.perObservation()/lw.still(w)
			singles[key] += weight / w.drawn
			for j := range o.line {
				if v := &o.line[j]; i != j && v.seen != nil {
					pairs[key] += weight / (w.together[j] * lw.still(v))
				}
			}
		}
	}
	for key, n := range singles {
		lw.words[key] = 1 + pairs[key]/n
	}
	return lw
}

func (o *observation) pairWith(w *lineWord) codePair {
	return codePair{o.process, o.watchedLook().pc, w.seen.pc}
}

// still is the probability that a word seen written was watched until then.
func (lw *lineWeights) still(w *lineWord) float64 {
	return lw.watched[lw.bins.Index(uint64(max(w.seen.wall, 1)))]
}

// of a word of the observation's line that was seen written.
func (lw *lineWeights) of(o *observation, w *lineWord) float64 {
	return lw.scale / (w.drawn * lw.still(w) * max(lw.words[o.pairWith(w)], 1))
}

// fewestWatched bounds the weight of what was seen when hardly any word was
// still watched.
const fewestWatched = 0.05
