package interleave

import (
	"math/rand/v2"
	"slices"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
)

// Merger merges holds, one after the other: what comes of them does not depend on when. It belongs to the
// goroutine that merges.
type Merger struct {
	rand      *rand.Rand
	kept      []*stream // the latest
	next      int       // of these, to give way
	spare     *stream
	others    []*stream // for the threads beside the one that was held
	from      []int     // where in these they go on
	numbers   spaceNumbers
	spaces    map[*target.Process]*spaces
	numbering numbering
	sightings
}

func NewMerger(seed uint64) *Merger {
	return &Merger{rand: rand.New(rand.NewPCG(seed, 2)), spaces: make(map[*target.Process]*spaces)}
}

// keptStreams are those of some seconds. One has some thousand touches.
const keptStreams = 32

// MergeAll merges the uses of holds with others' touches, and keeps their threads' for theirs.
func (m *Merger) MergeAll(holds []Hold, block uint64) {
	for i := range holds {
		m.mergeHold(&holds[i], block)
	}
}

func (m *Merger) mergeHold(h *Hold, block uint64) {
	held := m.spare
	if m.spare = nil; held == nil {
		held = &stream{}
	}
	m.set(held, h, block)
	company := m.company(held)
	for i := range h.uses {
		u := &h.uses[i]
		if len(company) == 0 {
			continue
		}
		m.others = m.others[:0]
		for range u.others {
			m.others = append(m.others, company[m.rand.IntN(len(company))])
		}
		u.merged = m.merge(held, u.at, u.reuse, m.others)
	}
	if len(held.touches) == 0 {
		m.spare = held
		return
	}
	if len(m.kept) < keptStreams {
		m.kept = append(m.kept, held)
		return
	}
	m.spare, m.kept[m.next] = m.kept[m.next], held
	m.next = (m.next + 1) % keptStreams
}

// company are the streams that may go with one.
func (m *Merger) company(held *stream) []*stream {
	for _, sameProcess := range []bool{true, false} {
		var out []*stream
		for _, k := range m.kept {
			if k.goesWith(held, sameProcess) {
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
func (m *Merger) merge(held *stream, at, reuse int, others []*stream) *record.Interleaving {
	m.begin()
	m.from = m.from[:0]
	for _, o := range others {
		m.from = append(m.from, m.rand.IntN(len(o.touches)))
		m.noteStored(o)
	}
	m.noteStored(held)
	datum := held.touches[at]
	out := &record.Interleaving{Distinct: 1}
	out.Common = m.note(datum, byOwner) == 0 && slices.ContainsFunc(others, func(o *stream) bool { return slices.Contains(o.distinct, datum) })
	see := func(p uint32, by uint8) {
		// What is written is each one's own.
		if before := m.note(p, by); before&by == 0 && (before&(byOwner|byOthers) == 0 || before&isStored != 0) {
			out.Distinct++
		}
	}
	theirs := int(estimate.TouchesOfOthers(m.rand, float64(reuse*len(others))))
	for last := at + reuse; at < last; out.Time++ {
		// The reuse comes after all others.
		if before := last - at - 1; theirs == 0 || m.rand.IntN(before+theirs) < before {
			if at++; at < last {
				see(held.touches[at], byOwner)
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
		if p == datum && out.Common {
			out.Foreign = true
			out.Time++
			return out
		}
		see(p, byOthers)
	}
	return out
}

func (m *Merger) noteStored(b *stream) {
	for _, n := range b.stored {
		m.note(n, isStored)
	}
}
