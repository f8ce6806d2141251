package collector

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// Threads of a program touch the same tables, constants and pointers to functions: what one
// brings between another's use and reuse is in part what that has touched itself, and some of its
// reuses come sooner by the other's. A watchpoint does not tell, for a trap takes a thousand times as long
// as such reuses, and a word that is touched all the time silences it. So what was read ahead of both threads, in holds of
// each in which both ran, is merged in an order in which neither waits for the other.
//
// That is wrong of data that they take turns at, under a lock: these are written by one at least.
// What either was seen to write is taken to be each one's own here, and left to watchpoints.

// besides are what was read ahead of threads that ran beside others. It is merged aside, for the tracing thread
// has others to let go.
type besides struct {
	// Of the tracing thread:
	held    *thread // in the last hold, if others ran then; else nil
	pending []besideUse
	waiting []heldBeside
	spare   []heldBeside // whose memory is used again
	late    int          // observations of holds for which too many were waiting

	merged, sooner, without int // observations

	merger // of who merges
}

// heldBeside is a hold in which others ran, too.
type heldBeside struct {
	process *process
	regions []region // of its memory, as of then; never changed
	tid     int
	nth     int // of the process's threads
	touches []ahead.Touch
	uses    []besideUse
}

// besideUse is an observation's use whose reuse was read ahead.
type besideUse struct {
	o      *observation
	at     int // its touch
	reuse  int // after so many more
	others int // threads that ran

	merged *merged // nil without company
}

// mostBeside bounds the holds that wait to be merged: they are handed over by a few. Each has up to
// some thousand touches of 16 bytes.
const mostBeside = 64

func newBesides(seed uint64) besides {
	return besides{merger: merger{rand: rand.New(rand.NewPCG(seed, 2))}}
}

// keepBeside has what was read ahead in the last hold merged, if others ran.
func (s *Session) keepBeside() {
	b := &s.beside
	t := b.held
	if b.held = nil; t == nil || s.cfg.Stack == PrivateStack {
		return
	}
	if len(b.waiting) >= mostBeside {
		b.late += len(b.pending)
		return
	}
	var h heldBeside
	if last := len(b.spare) - 1; last >= 0 {
		h, b.spare = b.spare[last], b.spare[:last]
	}
	h.process, h.regions, h.tid, h.nth = t.process, t.process.regions, t.tid, t.nth
	h.touches = s.locate.Touched(h.touches[:0])
	h.uses, b.pending = b.pending, h.uses[:0]
	b.waiting = append(b.waiting, h)
}

// take hands the waiting holds over to be merged.
func (b *besides) take() []heldBeside {
	taken := b.waiting
	b.waiting = nil
	return taken
}

// back takes what was handed over.
func (b *besides) back(taken []heldBeside) {
	for _, h := range taken {
		for _, u := range h.uses {
			switch {
			case u.merged == nil:
				b.without++
				continue
			case u.merged.foreign:
				b.sooner++
			}
			u.o.beside = u.merged
			b.merged++
		}
		clear(h.uses) // their observations
		b.spare = append(b.spare, heldBeside{touches: h.touches, uses: h.uses})
	}
}

// merged is a reuse that was read ahead, with the touches of others.
type merged struct {
	time     int  // touches of all from the use to the next, this one among them
	distinct int  // blocks from the use on, its own among them
	foreign  bool // that is another thread's
	// common is whether others touch the block, too, and none writes it: then this tells more of it than a watchpoint.
	common bool
}

// merger merges holds, one after the other: what comes of them does not depend on when.
type merger struct {
	rand    *rand.Rand
	kept    []*stream // the latest
	next    int       // of these, to give way
	spare   *stream
	others  []*stream // for the threads beside the one that was held
	from    []int     // where in these they go on
	numbers spaceNumbers
	places  places
	sightings
}

// keptStreams are those of some seconds. One has some thousand touches.
const keptStreams = 32

// mergeAll merges the uses of holds with others' touches, and keeps their threads' for theirs.
func (m *merger) mergeAll(holds []heldBeside, block uint64) {
	for i := range holds {
		m.mergeHold(&holds[i], block)
	}
}

func (m *merger) mergeHold(h *heldBeside, block uint64) {
	own := m.spare
	if m.spare = nil; own == nil {
		own = &stream{}
	}
	m.set(own, h, block)
	company := m.company(own)
	for i := range h.uses {
		u := &h.uses[i]
		if len(company) == 0 {
			continue
		}
		m.others = m.others[:0]
		for range u.others {
			m.others = append(m.others, company[m.rand.IntN(len(company))])
		}
		u.merged = m.merge(own, u.at, u.reuse, m.others)
	}
	if len(own.touches) == 0 {
		m.spare = own
		return
	}
	if len(m.kept) < keptStreams {
		m.kept = append(m.kept, own)
		return
	}
	m.spare, m.kept[m.next] = m.kept[m.next], own
	m.next = (m.next + 1) % keptStreams
}

// company are the streams that may go with one.
func (m *merger) company(own *stream) []*stream {
	for _, sameProcess := range []bool{true, false} {
		var out []*stream
		for _, k := range m.kept {
			if k.goesWith(own, sameProcess) {
				out = append(out, k)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// What is known of a place.
const (
	byOwner  = 1 << iota // touched since the use
	byOthers             // likewise
	isStored             // by any of the streams at all
)

// merge is what becomes of a use, touch number at of own, whose reuse comes after so many touches, among those of
// others, which are as fast and begin anywhere.
func (m *merger) merge(own *stream, at, reuse int, others []*stream) *merged {
	m.begin()
	m.from = m.from[:0]
	for _, o := range others {
		m.from = append(m.from, m.rand.IntN(len(o.touches)))
		m.noteStored(o)
	}
	m.noteStored(own)
	datum := own.touches[at]
	out := &merged{distinct: 1}
	out.common = m.note(datum, byOwner) == 0 && slices.ContainsFunc(others, func(o *stream) bool { return slices.Contains(o.places, datum) })
	see := func(p uint32, by uint8) {
		// What is written is each one's own.
		if before := m.note(p, by); before&by == 0 && (before&(byOwner|byOthers) == 0 || before&isStored != 0) {
			out.distinct++
		}
	}
	theirs := int(touchesBeside(m.rand, float64(reuse*len(others))))
	for last := at + reuse; at < last; out.time++ {
		// The reuse comes after all others.
		if before := last - at - 1; theirs == 0 || m.rand.IntN(before+theirs) < before {
			if at++; at < last {
				see(own.touches[at], byOwner)
			}
			continue
		}
		theirs--
		i := m.rand.IntN(len(others))
		touches := others[i].touches
		p := touches[m.from[i]]
		if m.from[i]++; m.from[i] == len(touches) {
			m.from[i] = 0
		}
		if p == datum && out.common {
			out.foreign = true
			out.time++
			return out
		}
		see(p, byOthers)
	}
	return out
}

func (m *merger) noteStored(b *stream) {
	for _, n := range b.stored {
		m.note(n, isStored)
	}
}

// mergeLast merges what is left when the session is over.
func (s *Session) mergeLast() {
	b := &s.beside
	left := b.take()
	b.mergeAll(left, uint64(s.block()))
	b.back(left)
}

// mergeComments say what was assumed.
func (s *Session) mergeComments(p *model.Profile) {
	b := &s.beside
	if n := b.merged + b.without; n > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("of %d reuses in a shared stack that were read ahead of a thread with others beside it %d were merged with what was read ahead of these, of which what none writes is taken to be the same: of %d another one's touch comes first; of the rest others' data are taken to be their own", n, b.merged, b.sooner))
	}
	if b.late > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("%d more were not, as they came faster than they can be merged: others' data are taken to be their own", b.late))
	}
}
