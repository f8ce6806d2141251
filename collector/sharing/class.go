package sharing

import (
	"maps"
	"math"
	"slices"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
)

// class is what is known of the lines that an instruction touches and that don't come back as far as was read ahead, all
// together: of each of many there may be a write or none in the other threads' windows, but of all of them it is
// known how often others write one, and by how much lines differ.
type class struct {
	touches, apart float64 // in all windows, and in those beside which nobody ran
	mean, squares  float64 // writes in a window's time, added up by touch, and their squares
	chance         float64 // of these, what chance alone adds to the squares
	length         float64 // of windows, in instructions, added up by touch
	writes         map[classWrite]float64
	written        float64
	most           []classWrite // of writes, see foremost
}

// classWrite is one who writes such lines.
type classWrite struct {
	tid         int
	pc          uint64
	word, bytes uint8
}

// mostApart is in how much of a class nobody may run beside for it to be told by chance.
const mostApart = 0.3

// classify fills in the classes.
func (j *Join) classify() {
	j.classes = make(map[codeKey]*class)
	for _, w := range j.windows {
		writers, ok := j.writers(w)
		for touches := range runs(w) {
			t := &touches[len(touches)-1]
			if !t.First || !ok {
				continue
			}
			key := codeKey{w.Process, w.PCs[t.PC]}
			c := j.classes[key]
			if c == nil {
				c = &class{writes: make(map[classWrite]float64)}
				j.classes[key] = c
			}
			c.add(j, w, j.lines[lineKey{w.Process, t.Line}], writers)
		}
	}
}

// codeKey is an instruction of a process.
type codeKey struct {
	process *target.Process
	pc      uint64
}

func (c *class) add(j *Join, w *record.Stretch, l *sharedLine, writers []writer) {
	c.touches++
	c.length += float64(w.Length)
	if len(writers) == 0 {
		c.apart++
	}
	if l == nil {
		return
	}
	rate, noise := 0.0, 0.0
	add := func(tid int, segments []segment, writes []Write, by float64) {
		n := float64(writing(segments))
		rate += n * by
		noise += n * by * by
		for _, wr := range writes {
			c.writes[classWrite{tid, wr.PC, wr.Word, wr.Bytes}] += float64(wr.count) * by
			c.written += float64(wr.count) * by
		}
	}
	for _, x := range writers {
		if j.phased[w.Process] {
			near := j.near(w.Process, x.tid, w.TID, w.Hold)
			for _, s := range l.segmentsIn(near) {
				add(s.window.TID, []segment{s}, writesIn(s), x.share*x.threads/float64(len(near)))
			}
			continue
		}
		for _, tid := range l.tids() {
			if tid != x.tid && (x.tid != everybody || tid == w.TID) {
				continue
			}
			windows := float64(len(j.of[threadKey{w.Process, tid}]))
			if x.tid == everybody {
				windows = j.others(w)
			}
			add(tid, l.threads[tid], l.writes[tid], x.share*x.threads/windows)
		}
	}
	c.mean += rate
	c.squares += rate * rate
	c.chance += noise
}

// others is how many windows there are of the threads beside a window's.
func (j *Join) others(w *record.Stretch) float64 {
	return float64(j.read[w.Process] - len(j.of[threadKey{w.Process, w.TID}]))
}

// tids are the threads that were seen to touch the line, in order.
func (l *sharedLine) tids() []int {
	if len(l.sorted) != len(l.threads) {
		l.sorted = slices.Sorted(maps.Keys(l.threads))
	}
	return l.sorted
}

// writing is in how many of a thread's windows it writes the line.
func (l *sharedLine) writing(tid int) (n int) { return writing(l.threads[tid]) }

func writing(segments []segment) (n int) {
	for _, s := range segments {
		for _, t := range s.touches {
			if t.Store {
				n++
				break
			}
		}
	}
	return n
}

// usable says whether it can be told by chance.
func (c *class) usable() bool {
	return c != nil && c.written > 0 && c.apart <= mostApart*c.touches
}

// in is the chance that others write a line of the class within so many instructions, if they do so at random, of lines that
// differ by a gamma distribution, and at most, if they do so in steady rounds.
func (c *class) in(span float64) (chance, most float64) {
	mean := c.mean / c.touches
	writes := mean * span * c.touches / c.length
	excess := c.squares/c.touches - c.chance/c.touches - mean*mean
	if excess <= 0 {
		return -math.Expm1(-writes), min(writes, 1)
	}
	shape := mean * mean / excess
	chance = -math.Expm1(-shape * math.Log1p(writes/shape))
	return chance, max(chance, min(writes, 1))
}
