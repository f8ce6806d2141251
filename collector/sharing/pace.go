package sharing

import (
	"math"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
)

// A thread that is held while it waits is read ahead of after the others went on without it: what it waited for is there, and what
// is read is its next turn. But the moment was one of its waits, in which it touches little and finds nothing gone. So such
// a hold stands for a wait, and those that came in turns for turns. How long the waits are compared to the turns, and who
// had a processor, is in how many there are of each.

const (
	// transfer is how long a thread waits for a line that another has, in ns: 20 to 300. Those of further ones are under way meanwhile.
	transfer, further = 80, 15
	// slowTransfer is how long a line takes to another processor where that is slow, in ns: 70 to 130 were measured on one of
	// many cores. What a thread does until then it does with the line its own.
	slowTransfer = 130
	// plainInstructions are made in a nanosecond where nothing is waited for.
	plainInstructions = 4.5
	// pauseTouch is how long a touch takes in a wait that was never seen to go on, in ns.
	pauseTouch = 10
	// halfSeen stands for what came in none of a thread's holds.
	halfSeen = 0.5
)

// pace is how a thread goes on at the moment of a hold.
type pace struct {
	waits   bool
	touches float64 // in a nanosecond, or an instruction
	shown   float64 // those of what its window shows
}

// held are a thread's holds: those in turns, and, of those in waits that show what came then, the paces.
type held struct {
	turns, waits   int
	inWaits, shown float64
	whole          []*record.Stretch // turns
}

// Waits says whether a thread of the process was held while it waited.
func (j *Join) Waits(p *target.Process) bool { return j.waiters[p] }

// Pace is how many touches a thread makes at the moment of a hold, in the time that perTouch was told in.
func (j *Join) Pace(hold int) float64 { return j.pace[hold].touches }

// SetPaces says how fast threads are at the moments of their holds. perTouch is how long a touch in a window takes, in ns, on average;
// where it is nil each instruction is taken to take as long.
func (j *Join) SetPaces(perTouch func(hold int) float64) {
	j.pace, j.threads, j.waiters = make(map[int]pace), make(map[threadKey]*held), make(map[*target.Process]bool)
	j.perTouch = perTouch
	wait := j.waitPace(perTouch)
	for _, w := range j.windows {
		p := pace{waits: j.inWait(w), shown: j.shownPace(w, perTouch)}
		if p.touches = p.shown; p.waits {
			p.touches, j.waiters[w.Process] = wait, true
		}
		j.pace[w.Hold] = p
		key := threadKey{w.Process, w.TID}
		h := j.threads[key]
		if h == nil {
			h = &held{}
			j.threads[key] = h
		}
		switch {
		case !p.waits:
			h.turns++
		case j.idle[w.Hold] == nil:
			h.waits++
			h.inWaits += p.touches
			h.shown += p.shown
			if j.waits[w.Hold] != nil {
				h.whole = append(h.whole, w)
			}
		}
	}
}

// stays is the least chance of a line to be gone after so many instructions of a window, if it is by how others' writes follow each other with
// a chance: it must have gone to another thread and come back, in the time that these take.
func (j *Join) stays(w *record.Stretch, chance, instructions float64) float64 {
	if j.perTouch == nil || w.Length == 0 {
		return chance
	}
	ns := instructions * j.perTouch(w.Hold) * float64(len(w.Lines)) / float64(w.Length)
	return min(chance, ns/(2*slowTransfer))
}

// shownPace is that of what a window shows, up to a wait.
func (j *Join) shownPace(w *record.Stretch, perTouch func(hold int) float64) float64 {
	x := j.waits[w.Hold]
	switch {
	case x != nil:
		one := float64(x.begins) / float64(max(x.touches, 1)) // instructions
		if perTouch != nil {
			t := j.turns[threadKey{w.Process, w.TID}]
			one = one/plainInstructions + (transfer*min(t.handed, 1)+further*max(t.handed-1, 0))/t.touches
		}
		return 1 / one
	case perTouch != nil:
		return 1 / perTouch(w.Hold)
	}
	return float64(len(w.Lines)) / float64(max(w.Length, 1))
}

// waitPace is how many touches a wait makes in a time, on average of those seen.
func (j *Join) waitPace(perTouch func(hold int) float64) float64 {
	sum, n := 0.0, 0.0
	for _, waits := range []map[int]*wait{j.idle, j.waits} {
		for hold, x := range waits {
			one := x.each
			if perTouch != nil {
				one = perTouch(hold)
			}
			by := float64(x.tail) / float64(x.tail+x.touches)
			sum, n = sum+by*one, n+by
		}
	}
	switch {
	case n > 0:
		return n / sum
	case perTouch != nil:
		return 1. / pauseTouch
	}
	return 1. / 3
}

// inWait says whether a hold came while its thread waited: for a lock, which it looks at first, or its turn.
func (j *Join) inWait(w *record.Stretch) bool {
	if j.idle[w.Hold] != nil {
		return true
	}
	if x := j.waits[w.Hold]; x != nil {
		return x.whole
	}
	first, least := -1, int32(math.MaxInt32)
	for i := range w.Lines {
		switch t := &w.Lines[i]; {
		case t.At < least:
			first, least = i, t.At
		case t.At == least && t.Store:
			first = i
		}
	}
	if first < 0 || w.Lines[first].Store {
		return false
	}
	t := &w.Lines[first]
	key := lineKey{w.Process, t.Line}
	return j.locks[wordKey{key, t.Word}] && j.lines[key].writtenByOthers(w.TID)
}

// showing is the window that shows what a hold stands for, and by how much of the hold's touches: a turn that was seen from its
// beginning, of the same thread, where it came in one; nothing where it came in a wait.
func (j *Join) showing(w *record.Stretch) (shows *record.Stretch, by float64) {
	key := threadKey{w.Process, w.TID}
	h := j.threads[key]
	switch {
	case !j.pace[w.Hold].waits && j.waits[w.Hold] != nil && j.turns[key].whole:
		return h.whole[w.Hold%len(h.whole)], 1
	case !j.pace[w.Hold].waits:
		return w, 1
	case h.turns == 0 && j.idle[w.Hold] == nil:
		return w, halfSeen * h.shown / float64(h.waits) / h.inWaits
	}
	return nil, 0
}
