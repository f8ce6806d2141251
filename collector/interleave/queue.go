package interleave

import (
	"fmt"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// Queue are what was read ahead of threads that ran beside others, and wait to be merged with these. It
// belongs to the tracing thread, which has others to let go.
type Queue struct {
	pending []Use
	waiting []Hold
	spare   []Hold // whose memory is used again
	late    int    // observations of holds for which too many were waiting

	merged, sooner, without int // observations
}

// Hold is a hold in which others ran, too.
type Hold struct {
	process *target.Process
	regions []target.Region // of its memory, as of then; never changed
	tid     int
	nth     int // of the process's threads
	touches []ahead.Touch
	uses    []Use
}

// Use is an observation's use whose reuse was read ahead.
type Use struct {
	o      *record.Observation
	at     int // its touch
	reuse  int // after so many more
	others int // threads that ran

	merged *record.Interleaving // nil without company
}

// mostWaiting bounds the holds that wait to be merged: they are handed over by a few. Each has up to
// some thousand touches of 16 bytes.
const mostWaiting = 64

// Begin is called in each hold.
func (q *Queue) Begin() { q.pending = q.pending[:0] }

// Add takes an observation of the hold whose use is the touch at so many, while other threads ran.
func (q *Queue) Add(o *record.Observation, at, others int) {
	q.pending = append(q.pending, Use{o: o, at: at, reuse: o.Soon, others: others})
}

// Keep has what was added merged: of thread tid, the nth of its process, whose touches touched writes to a slice.
func (q *Queue) Keep(p *target.Process, tid, nth int, touched func([]ahead.Touch) []ahead.Touch) {
	if len(q.waiting) >= mostWaiting {
		q.late += len(q.pending)
		return
	}
	var h Hold
	if last := len(q.spare) - 1; last >= 0 {
		h, q.spare = q.spare[last], q.spare[:last]
	}
	h.process, h.regions, h.tid, h.nth = p, p.Regions, tid, nth
	h.touches = touched(h.touches[:0])
	h.uses, q.pending = q.pending, h.uses[:0]
	q.waiting = append(q.waiting, h)
}

// Take hands the waiting holds over to be merged.
func (q *Queue) Take() []Hold {
	taken := q.waiting
	q.waiting = nil
	return taken
}

// Return has what was taken, and nobody has begun with, wait again, before what came since.
func (q *Queue) Return(taken []Hold) { q.waiting = append(taken, q.waiting...) }

// Done takes back what was merged.
func (q *Queue) Done(taken []Hold) {
	for _, h := range taken {
		for _, u := range h.uses {
			switch {
			case u.merged == nil:
				q.without++
				continue
			case u.merged.Foreign:
				q.sooner++
			}
			u.o.Merged = u.merged
			q.merged++
		}
		clear(h.uses) // their observations
		q.spare = append(q.spare, Hold{touches: h.touches, uses: h.uses})
	}
}

// Comments say what was assumed.
func (q *Queue) Comments() (out []string) {
	if n := q.merged + q.without; n > 0 {
		out = append(out, fmt.Sprintf("of %d reuses in a shared stack that were read ahead of a thread with others beside it %d were merged with what was read ahead of these, of which what none writes is taken to be the same: of %d another one's touch comes first; of the rest others' data are taken to be their own", n, q.merged, q.sooner))
	}
	if q.late > 0 {
		out = append(out, fmt.Sprintf("%d more were not, as they came faster than they can be merged: others' data are taken to be their own", q.late))
	}
	return out
}
