package sharing

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
)

// Threads may both touch a line and yet never at the same time: they swap their data, or hand them on. Or they touch it
// together, more than by chance. What was read ahead of each at different times shows neither. So holds come in pairs, soon after
// each other, and what windows of a pair tell is compared with what windows of other times do. Where a thread's windows differ by
// chance alone, as a write falls into one or does not, there are no such phases.

const (
	// pairWithin is how long after each other the holds of a pair begin at most.
	pairWithin = 25 * time.Millisecond
	// mostOther windows of other times are compared with each, and mostCompared are.
	mostOther, mostCompared = 8, 96
	// surelyOther is by how many standard errors what pairs tell must differ to go by them alone.
	surelyOther = 2.5
	// byChance is up to which share of what windows differ by it may be chance.
	byChance = 0.3
	// stillAtIt is within how many instructions a line comes back for it to matter what its thread is at now: later, it may be at
	// anything, as threads are that each go through the same array again and again.
	stillAtIt = 1 << 16
	// parts of a window are told apart, to tell phases from writes that come by chance.
	parts = 8
)

// Concurrence is by how much more an instruction's lines are taken than if threads went on independently.
type Concurrence struct {
	Times float64
	Error float64 // standard error of it
}

// independent is of threads that have no phases that were seen.
var independent = Concurrence{Times: 1}

// tellings add up what windows tell of each other.
type tellings struct {
	paired, other float64 // what is taken by windows of pairs, and by those of other times, of windows that have both
	variance      float64 // of the first, by how much others differ from each other
	spread, extra float64 // variance of in how many parts others write, and of these what isn't by chance
	mean, squares float64 // what is taken by others, of all windows, and its variance
	n, pairs      float64 // windows
}

// setConcurrence compares the windows of threads that don't wait for each other.
func (j *Join) setConcurrence() {
	j.concurrence, j.concurrenceOf = make(map[*target.Process]Concurrence), make(map[codeKey]Concurrence)
	for p, tids := range j.processes {
		if len(tids) < 2 || j.waitsOften(p) {
			continue
		}
		windows := j.inOrder[p]
		all, byPC := &tellings{}, make(map[uint64]*tellings)
		for _, w := range evenly(windows, mostCompared) {
			j.compare(w, windows, all, byPC)
		}
		whole := all.concurrence(independent)
		j.concurrence[p] = whole
		for pc, t := range byPC {
			j.concurrenceOf[codeKey{p, pc}] = t.concurrence(whole)
		}
	}
}

// compare adds what the others' windows tell of one.
func (j *Join) compare(w *record.Stretch, windows []*record.Stretch, all *tellings, byPC map[uint64]*tellings) {
	var paired, other []*record.Stretch
	for _, v := range windows {
		if v.TID != w.TID && (v.At-w.At).Abs() <= pairWithin {
			paired = append(paired, v)
		}
	}
	if j.phased[w.Process] { // then only windows near it count
		windows = j.near(w.Process, everybody, w.TID, w.Hold)
	}
	for _, v := range windows {
		if v.TID != w.TID && (v.At-w.At).Abs() > pairWithin {
			other = append(other, v)
		}
	}
	if len(other) < 2 {
		return
	}
	ofPaired, ofOther := j.meetAll(w, paired), j.meetAll(w, evenly(other, mostOther))
	pcs := make(map[uint64]bool)
	for _, m := range slices.Concat(ofPaired, ofOther) {
		for pc := range m.byPC {
			pcs[pc] = true
		}
	}
	all.add(ofPaired, ofOther, func(m *met) float64 { return m.taken })
	for pc := range pcs {
		if byPC[pc] == nil {
			byPC[pc] = &tellings{}
		}
		byPC[pc].add(ofPaired, ofOther, func(m *met) float64 { return m.byPC[pc] })
	}
}

// evenly are at most so many windows, evenly spread over all.
func evenly(all []*record.Stretch, most int) []*record.Stretch {
	if len(all) <= most {
		return all
	}
	out := make([]*record.Stretch, most)
	for i := range out {
		out[i] = all[i*len(all)/most]
	}
	return out
}

func (t *tellings) add(paired, other []met, taken func(*met) float64) {
	takenBy, written := make([]float64, len(other)), make([]float64, len(other))
	for i := range other {
		takenBy[i], written[i] = taken(&other[i]), float64(other[i].written)
	}
	mean, variance := stat.MeanVariance(takenBy, nil)
	meanWritten, spread := stat.MeanVariance(written, nil)
	t.spread += spread
	t.extra += spread - meanWritten*(1-meanWritten/parts)
	t.n++
	t.mean += mean
	t.squares += variance
	if len(paired) == 0 {
		return
	}
	t.pairs++
	for i := range paired {
		t.paired += taken(&paired[i]) / float64(len(paired))
	}
	t.other += mean
	t.variance += 2 * variance / float64(len(paired)) // a pair is of two windows that tell the same
}

// concurrence is what was added up, where it was expected to be as by before.
func (t *tellings) concurrence(before Concurrence) Concurrence {
	phases := t.extra / t.spread
	if !(phases > byChance) || t.mean == 0 {
		return before
	}
	prior := math.Sqrt(phases*t.squares*t.n) / t.mean // of single windows, by phases
	prior = math.Hypot(prior, before.Error)
	if t.pairs == 0 || t.other == 0 {
		return Concurrence{before.Times, prior}
	}
	times, err := t.paired/t.other, math.Sqrt(t.variance)/t.other
	switch sure := surelyOther * err; {
	case times < before.Times-sure:
		// They keep out of each other's way. Where they meet all the same one may have moved on between the holds of a pair.
		e := math.Hypot(times, err)
		if times < sure {
			times = 0
		}
		return Concurrence{times, e}
	case times > before.Times+sure:
		return Concurrence{times, err}
	}
	by := prior * prior / (prior*prior + err*err)
	return Concurrence{before.Times + by*(times-before.Times), prior * math.Sqrt(1-by)}
}

// met is what another thread's window tells of one.
type met struct {
	taken   float64 // of its classified touches, the share that finds its line written if the other went on as in that window
	byPC    map[uint64]float64
	written int // parts of the other's window in which it writes such lines
}

// meetAll is what each of some windows tells of one.
func (j *Join) meetAll(w *record.Stretch, others []*record.Stretch) (out []met) {
	for _, v := range others {
		out = append(out, j.meet(w, v))
	}
	return out
}

// meet looks at two windows.
func (j *Join) meet(w, v *record.Stretch) (m met) {
	m.byPC = make(map[uint64]float64)
	if w.Classified == 0 || v.Length == 0 {
		return m
	}
	var seen uint
	of := []*record.Stretch{v}
	for touches := range runs(w) {
		l := j.lines[lineKey{w.Process, touches[0].Line}]
		if l == nil || len(l.writes[v.TID]) == 0 || !touches[0].First {
			continue
		}
		segments := l.segmentsIn(of)
		c := newChance(of, segments, func(t record.LineTouch) bool { return t.Store })
		if c == none {
			continue
		}
		for _, t := range segments[0].touches {
			if t.Store {
				seen |= 1 << (int(t.At) * parts / v.Length)
			}
		}
		for i := range touches {
			t := &touches[i]
			if !t.First {
				break
			}
			next := int32(w.Length)
			if i+1 < len(touches) {
				next = touches[i+1].At
			} else if w.Length > stillAtIt {
				break
			}
			x := c.in(float64(next-t.At)) / float64(w.Classified)
			m.taken += x
			m.byPC[w.PCs[t.PC]] += x
		}
	}
	m.written = bits.OnesCount(seen)
	return m
}

// concurrenceAt is of an instruction of a process.
func (j *Join) concurrenceAt(p *target.Process, pc uint64) Concurrence {
	if t, ok := j.concurrenceOf[codeKey{p, pc}]; ok {
		return t
	}
	if t, ok := j.concurrence[p]; ok {
		return t
	}
	return independent
}
