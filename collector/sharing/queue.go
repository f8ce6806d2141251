package sharing

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

const (
	lineBytes  = sampler.LineSize
	wordBytes  = sampler.WordSize
	lineWords  = lineBytes / wordBytes
	mostPCs    = math.MaxUint16
	queueLimit = 64  // holds that wait at most, as they are handed over by a few
	keptMost   = 512 // windows, of 50 KB each
)

// Queue are the holds that wait to become windows. It belongs to the tracing thread, which has others to let go.
type Queue struct {
	waiting []Hold
	spare   [][]ahead.Touch
	late    int // holds that came faster
}

// Hold is what was read ahead of a thread, by words.
type Hold struct {
	record.Stretch
	touches    []ahead.Touch
	classified int // touches
}

// Keep takes a hold, of which so many touches are classified. touched writes them all to a slice.
func (q *Queue) Keep(w record.Stretch, classified int, touched func([]ahead.Touch) []ahead.Touch) {
	if len(q.waiting) >= queueLimit {
		q.late++
		return
	}
	var touches []ahead.Touch
	if last := len(q.spare) - 1; last >= 0 {
		touches, q.spare = q.spare[last], q.spare[:last]
	}
	q.waiting = append(q.waiting, Hold{Stretch: w, classified: classified, touches: touched(touches[:0])})
}

// Take hands the waiting holds over.
func (q *Queue) Take() []Hold {
	taken := q.waiting
	q.waiting = nil
	return taken
}

// Return has what was taken, and nobody has begun with, wait again, before what came since.
func (q *Queue) Return(taken []Hold) { q.waiting = append(taken, q.waiting...) }

// Done takes the memory of holds back.
func (q *Queue) Done(taken []Hold) {
	for _, h := range taken {
		q.spare = append(q.spare, h.touches)
	}
}

// Late is how many holds came faster than they are made to windows.
func (q *Queue) Late() int { return q.late }

// Windows keeps a random sample of a session's holds. It belongs to the goroutine that works aside.
type Windows struct {
	rand *rand.Rand
	kept []*record.Stretch
	seen int
}

func NewWindows(seed uint64) *Windows {
	return &Windows{rand: rand.New(rand.NewPCG(seed, 5))}
}

// Add makes windows of holds.
func (w *Windows) Add(holds []Hold) {
	for i := range holds {
		h := &holds[i]
		if len(h.touches) == 0 {
			continue
		}
		w.seen++
		if len(w.kept) < keptMost {
			w.kept = append(w.kept, h.window())
		} else if n := w.rand.IntN(w.seen); n < keptMost {
			w.kept[n] = h.window()
		}
	}
}

// Kept are the windows.
func (w *Windows) Kept() []*record.Stretch { return w.kept }

// window sorts a hold's touches by line.
func (h *Hold) window() *record.Stretch {
	w := h.Stretch
	numbers := make(map[uint64]uint16)
	w.Lines = make([]record.LineTouch, 0, len(h.touches))
	for i, t := range h.touches {
		pc, ok := numbers[t.PC]
		if !ok {
			if len(w.PCs) == mostPCs {
				continue
			}
			pc = uint16(len(w.PCs))
			numbers[t.PC] = pc
			w.PCs = append(w.PCs, t.PC)
		}
		w.Lines = append(w.Lines, record.LineTouch{Line: t.Block / lineWords, At: t.Inst, PC: pc, Word: uint8(t.Block % lineWords), Bytes: t.Bytes, Store: t.Store, First: i < h.classified})
		w.Length = max(w.Length, int(t.Inst)+1)
	}
	w.Classified = h.classified
	slices.SortStableFunc(w.Lines, func(a, b record.LineTouch) int { return cmp.Compare(a.Line, b.Line) })
	return &w
}
