package sharing

import (
	"cmp"
	"math"
	"slices"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
)

// What threads touch may change over time: they work in phases, hand data on, or a runtime moves what works from thread to
// thread. What one thread was seen to write then says little of what it writes when another one touches it. Whether that is so
// is seen in each thread's own windows: those that follow each other are alike then, more than any two. Only what was read
// ahead of others near a hold counts for it in such a process. Phases that are shorter than the time between holds are not seen.

const (
	nearWindows = 4    // of a thread count, where only those near a hold do
	nearOfAll   = 16   // likewise of all others
	mostAlike   = 0.25 // correlation of windows that follow each other, up to which threads don't change
	surelyAlike = 3    // standard deviations, if all words were touched together, and each window stood for one
	fewTouching = 3    // windows that touch a word are too few to go by
	nearlyAll   = 0.9  // of a thread's windows touch a word: nothing changes
)

// setPhased finds the processes of which what threads touch changes over time.
func (j *Join) setPhased() {
	type sums struct{ alike, expected, most, windows float64 }
	all := make(map[threadKey]*sums)
	place := make(map[int]int) // of a hold among its thread's
	for _, windows := range j.of {
		for i, w := range windows {
			place[w.Hold] = i
		}
	}
	for key, l := range j.lines {
		for tid, segments := range l.threads {
			thread := threadKey{key.process, tid}
			n := float64(len(j.of[thread]))
			s := all[thread]
			if s == nil {
				s = &sums{windows: n}
				all[thread] = s
			}
			var touching, again [lineWords]float64
			last, before := -1, uint8(0)
			for _, seg := range segments { // in order
				words, at := uint8(0), place[seg.window.Hold]
				for _, t := range seg.touches {
					words |= 1 << t.Word
				}
				for w := range lineWords {
					touching[w] += float64(words >> w & 1)
					if at == last+1 {
						again[w] += float64(words & before >> w & 1)
					}
				}
				last, before = at, words
			}
			for w, m := range touching {
				if m >= fewTouching && m <= nearlyAll*n {
					s.alike += again[w]
					s.expected += m * (m - 1) / n
					s.most += m - 1 - m*(m-1)/n
				}
			}
		}
	}
	j.phased, j.inOrder = make(map[*target.Process]bool), make(map[*target.Process][]*record.Stretch)
	for thread, s := range all {
		if j.waitsOften(thread.process) {
			continue
		}
		if s.most > 0 && (s.alike-s.expected)/s.most > max(mostAlike, surelyAlike/math.Sqrt(s.windows)) {
			j.phased[thread.process] = true
		}
	}
	for _, w := range j.windows {
		j.inOrder[w.Process] = append(j.inOrder[w.Process], w)
	}
}

// waitsOften says whether threads of a process were often seen to wait for each other: what they touch while they wait differs from
// what they touch else, and how they take turns is told from both.
func (j *Join) waitsOften(p *target.Process) bool {
	for _, tid := range j.processes[p] {
		n, windows := 0, j.of[threadKey{p, tid}]
		for _, w := range windows {
			if j.idle[w.Hold] != nil || j.waits[w.Hold] != nil {
				n++
			}
		}
		if float64(n) >= fewWaits*float64(len(windows)) {
			return true
		}
	}
	return false
}

// near are the windows of a writer, or of everybody but the reader, that are nearest to a hold.
func (j *Join) near(p *target.Process, writer, reader, hold int) (out []*record.Stretch) {
	all, most := j.of[threadKey{p, writer}], nearWindows
	if writer == everybody {
		all, most = j.inOrder[p], nearOfAll
	}
	from, _ := slices.BinarySearchFunc(all, hold, func(w *record.Stretch, hold int) int { return cmp.Compare(w.Hold, hold) })
	to := from
	for len(out) < most && (from > 0 || to < len(all)) {
		var w *record.Stretch
		if to == len(all) || from > 0 && hold-all[from-1].Hold < all[to].Hold-hold {
			from--
			w = all[from]
		} else {
			w = all[to]
			to++
		}
		if w.TID != reader {
			out = append(out, w)
		}
	}
	return out
}

// whileTouched are those of them that are between two of the reader in both of which it touches the line: what was read ahead just
// before or after it has moved on is of another phase. All if there are none.
func (j *Join) whileTouched(p *target.Process, l *sharedLine, writer, reader, hold int) (out []*record.Stretch) {
	near := j.near(p, writer, reader, hold)
	of, touching := j.of[threadKey{p, reader}], l.threads[reader]
	touches := func(w *record.Stretch) bool {
		_, ok := slices.BinarySearchFunc(touching, w.Hold, func(s segment, hold int) int { return cmp.Compare(s.window.Hold, hold) })
		return ok
	}
	for _, w := range near {
		i, _ := slices.BinarySearchFunc(of, w.Hold, func(w *record.Stretch, hold int) int { return cmp.Compare(w.Hold, hold) })
		if (i == 0 || touches(of[i-1])) && (i == len(of) || touches(of[i])) {
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		return near
	}
	return out
}

// segmentsIn are those of some windows.
func (l *sharedLine) segmentsIn(windows []*record.Stretch) (out []segment) {
	for _, w := range windows {
		all := l.threads[w.TID]
		i, ok := slices.BinarySearchFunc(all, w.Hold, func(s segment, hold int) int { return cmp.Compare(s.window.Hold, hold) })
		if ok {
			out = append(out, all[i])
		}
	}
	return out
}

// writesIn are the stores of a segment.
func writesIn(s segment) (out []Write) {
	for i := range s.touches {
		if t := &s.touches[i]; t.Store {
			out = count(out, s.window, t)
		}
	}
	return out
}

// writesNear are those of a writer, or of everybody, near a hold; all of them if there are none near.
func (j *Join) writesNear(w *record.Stretch, l *sharedLine, writer int) (out []threadWrite) {
	for _, s := range l.segmentsIn(j.whileTouched(w.Process, l, writer, w.TID, w.Hold)) {
		for _, x := range writesIn(s) {
			out = append(out, threadWrite{s.window.TID, x})
		}
	}
	if len(out) == 0 {
		return l.writesOf(writer)
	}
	return out
}

// touchedIn are the bytes of a line that a window touches.
func (l *sharedLine) touchedIn(w *record.Stretch) (bytes uint64) {
	for _, s := range l.segmentsIn([]*record.Stretch{w}) {
		for _, t := range s.touches {
			bytes |= inLine(t.Word, t.Bytes)
		}
	}
	return bytes
}
