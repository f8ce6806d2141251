package ahead

import (
	"math"

	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/interp"
)

const (
	// beyond the last stamp it is followed by so much of the way, lest it comes to the
	// same place again.
	beyond = 1.1
	// muchFaster is how many times as fast as it was met to be a thread may be, for it to be followed no farther.
	muchFaster = 2
	// mostOthers registers may be others than a stamp's: they hold what was read late, and had been written since.
	mostOthers = 3
	// steady is how many times as fast one stamp's way may be as another's where these tell only together.
	steady = 1.4
)

// meetings are where a replay came to stamps.
//
// A thread was at a stamp where its general registers are the same, and what lies near where they point to. Data that were read
// late may have been written since, so that it goes by where most is the same: all; all registers; all but one; all but two or
// three, if then all stamps of the way say that it was about as fast. What is the same more than once, at different numbers of
// accesses, is not known.
type meetings struct {
	usual float64 // instructions a nanosecond, of other ways; 0 if that is not known
	fast  float64 // where no data are waited for; 0 likewise
	all   []meeting
	which []int // of all, by the number of the machine's waypoint
}

// likeness is by how much a place is like a stamp: the smaller, the more.
type likeness int

const (
	same likeness = iota
	// sameRegisters: other things lie near them.
	sameRegisters
	sameButOne
	// sameButMore: two, and so on to mostOthers.
	sameButMore
	likenesses = int(sameButOne) + mostOthers
)

type meeting struct {
	waypoint interp.Waypoint
	stamp    *sampler.Stamp
	at       [likenesses]place
	twin     bool // another stamp is the same
}

// place is where a way was.
type place struct {
	met                    bool
	accesses, instructions int
	several                bool // at other numbers of accesses, too
}

func newMeetings(stamps []sampler.Stamp) *meetings {
	m := new(meetings)
	for i := range stamps {
		w := stamps[i].Waypoint()
		w.Slack = mostOthers
		m.all = append(m.all, meeting{waypoint: w, stamp: &stamps[i]})
	}
	for i := range m.all {
		for j := range m.all {
			if i != j && m.all[i].waypoint == m.all[j].waypoint && stamps[i].Near == stamps[j].Near {
				m.all[i].twin = true
			}
		}
	}
	return m
}

// open are the waypoints that may still be met.
func (m *meetings) open() []interp.Waypoint {
	var out []interp.Waypoint
	m.which = m.which[:0]
	for i := range m.all {
		if e := &m.all[i]; !e.twin && !e.at[same].several {
			m.which = append(m.which, i)
			out = append(out, e.waypoint)
		}
	}
	return out
}

// at notes where the machine is, of whose registers so many are not those of each open waypoint there, and says whether others are
// open now. load reads what lies near the registers.
func (m *meetings) at(others func(waypoint int) (n int, here bool), accesses, instructions int, load func(addr uint64, b []byte) bool) (changed bool) {
	for waypoint, i := range m.which {
		e := &m.all[i]
		n, here := others(waypoint)
		if !here || n > e.waypoint.Slack {
			continue
		}
		by := sameRegisters + likeness(n)
		if n == 0 && nearStamp(e.stamp, load) {
			by = same
		}
		if e.meet(by, accesses, instructions) {
			changed = true
		}
	}
	return changed
}

// nearStamp says whether the memory that registers point to is what the stamp has. What
// can't be read is zero.
func nearStamp(s *sampler.Stamp, load func(addr uint64, b []byte) bool) bool {
	var b [len(s.Near[0])]byte
	for i, addr := range s.Pointers() {
		if !load(addr, b[:]) {
			clear(b[:])
		}
		if b != s.Near[i] {
			return false
		}
	}
	return true
}

// meet notes a place, and says whether what is still of interest is another now: what is less like the stamp than this is not, nor
// what is as much, if there were two.
func (e *meeting) meet(by likeness, accesses, instructions int) (changed bool) {
	p := &e.at[by]
	if !p.met {
		*p = place{met: true, accesses: accesses, instructions: instructions}
	} else if p.accesses != accesses {
		changed = by == same && !p.several
		p.several = true
	}
	most := by - sameRegisters
	if p.several {
		most--
	}
	if most = max(most, 0); int(most) < e.waypoint.Slack {
		e.waypoint.Slack, changed = int(most), true
	}
	return changed
}

// likest is the place that is the most like the stamp, if it is but one.
func (e *meeting) likest() (p place, by likeness, ok bool) {
	for by := range e.at {
		if p := e.at[by]; p.met && !e.twin {
			return p, likeness(by), !p.several
		}
	}
	return place{}, 0, false
}

// speed is how many instructions a nanosecond the way to the stamp had, if it was made at p.
func (e *meeting) speed(p place) float64 { return float64(p.instructions) / float64(e.stamp.Clock) }

// madeAt is where a stamp was made, if that is known.
func (m *meetings) madeAt(i int) (p place, ok bool) {
	p, by, ok := m.all[i].likest()
	return p, ok && (by < sameButMore || m.steady())
}

// steady says whether the way to each of the stamps was about as fast.
func (m *meetings) steady() bool {
	slowest, fastest := math.Inf(1), 0.0
	for i := range m.all {
		p, _, ok := m.all[i].likest()
		if !ok {
			return false
		}
		speed := m.all[i].speed(p)
		slowest, fastest = min(slowest, speed), max(fastest, speed)
	}
	return len(m.all) > 1 && fastest <= steady*slowest
}

// far is after how many instructions the last stamp must have been met, if those
// that were tell anything: code becomes faster in the course of it, not slower by
// much.
func (m *meetings) far() int {
	last := &m.all[len(m.all)-1]
	clock := float64(last.stamp.Clock)
	perNano := 0.0
	for i := range m.all {
		if e := &m.all[i]; e.at[same].met && !e.at[same].several {
			perNano = max(perNano, e.speed(e.at[same]))
		}
	}
	switch {
	case last.at[same].met || last.twin:
		if perNano < m.fast/muchFaster {
			perNano = m.fast
		}
		return int(max(beyond*perNano*clock, 1))
	case perNano > 0:
		return int(min(3*perNano, perNS) * clock)
	case m.usual > 0:
		return int(min(6*m.usual, perNS) * clock)
	}
	return int(perNS * clock)
}

// perNS is how many instructions a nanosecond had until the stamp before which it had
// most, 0 if it is not known of any.
func (m *meetings) perNS() (most float64) {
	for i := range m.all {
		if p, ok := m.madeAt(i); ok {
			most = max(most, m.all[i].speed(p))
		}
	}
	return most
}

// accesses is how many had been made at each stamp, -1 where that is not known. In
// order they must be.
func (m *meetings) accesses() []int {
	out := make([]int, len(m.all))
	for i := range m.all {
		if p, ok := m.madeAt(i); ok {
			out[i] = p.accesses
		} else {
			out[i] = -1
		}
	}
	return out
}
