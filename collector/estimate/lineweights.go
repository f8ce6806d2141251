package estimate

import (
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
)

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
	blind   bool    // no other word of any line could be watched
	scale   float64 // for data watched of whose line no other word was watched, there being no free slot
}

// codePair is the code that used a datum and that wrote elsewhere in its line.
type codePair struct {
	process *target.Process
	use     uint64
	write   uint64
}

func (s *stage) lineWeights() *lineWeights {
	lw := &lineWeights{bins: model.LogBins(10), words: make(map[codePair]float64)}
	cut, kept := make([]float64, lw.bins.Len()), make([]float64, lw.bins.Len())
	var private []*record.Observation
	all, with := 0.0, 0.0
	for _, o := range s.Seen {
		if o.State != record.Done || !o.Lined {
			continue // not watched: nobody writes so soon, or there is nobody else
		}
		weight := o.Weight()
		all += weight
		if len(o.Line) > 0 {
			with += weight
			private = append(private, o)
		}
	}
	lw.scale = 1
	if lw.blind = with == 0; with > 0 {
		lw.scale = all / with
	}
	for _, o := range private {
		for i := range o.Line {
			w := &o.Line[i]
			age, to := o.Wall, kept
			switch {
			case w.Seen != nil:
				age = w.Seen.Wall
			case w.CutAt > 0:
				age, to = w.CutAt, cut
			case o.Kind == model.Censored || o.Kind == model.Pruned:
				to = cut
			}
			to[lw.bins.Index(uint64(max(age, 1)))] += o.Epoch.PerObservation()
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
		for i := range o.Line {
			w := &o.Line[i]
			// Whose only word is watched knows of no others.
			if w.Seen == nil || len(o.Line) == 1 {
				continue
			}
			key, weight := pairWith(o, w), o.Epoch.PerObservation()/lw.still(w)
			singles[key] += weight / w.Drawn
			for j := range o.Line {
				if v := &o.Line[j]; i != j && v.Seen != nil {
					pairs[key] += weight / (w.Both[j] * lw.still(v))
				}
			}
		}
	}
	for key, n := range singles {
		lw.words[key] = 1 + pairs[key]/n
	}
	return lw
}

func pairWith(o *record.Observation, w *record.LineWord) codePair {
	return codePair{o.Process, o.PC, w.Seen.PC}
}

// still is the probability that a word seen written was watched until then.
func (lw *lineWeights) still(w *record.LineWord) float64 {
	return lw.watched[lw.bins.Index(uint64(max(w.Seen.Wall, 1)))]
}

// of a word of the observation's line that was seen written.
func (lw *lineWeights) of(o *record.Observation, w *record.LineWord) float64 {
	return lw.scale / (w.Drawn * lw.still(w) * max(lw.words[pairWith(o, w)], 1))
}

// fewestWatched bounds the weight of what was seen when hardly any word was
// still watched.
const fewestWatched = 0.05
