package collector

import (
	"math"
	"slices"
	"time"

	"github.com/rdx-profiler/rdx/sampler"
)

// Without a PMU nothing counts accesses. But reading ahead of a held thread
// tells exactly how many lie between two of them, and two watchpoints tell
// how long the thread takes from the one to the other: their ratio is the
// access rate of that stretch of code. But all that can be read ahead lies in the
// first millisecond after a hold, in which caches, branch history and address
// translations are cold: the rate found is a lower bound, several times too low
// on virtual machines. So it is measured only where the user asks for that.

const (
	// stretchLead is passed over first: after a hold the caches are colder,
	// and accesses slower for a while.
	stretchLead = 8192
	// stretchLength in accesses: some microseconds, well above what two traps
	// resolve.
	stretchLength = 2048
	// stretchShare of the time of all holds goes into reading stretches.
	stretchShare    = 0.3
	fewestStretches = 8
	// Times below so many standard deviations of the clock are noise.
	stretchSigmas = 4
	// localPrior is how many stretches the mean counts for against those of a
	// place.
	localPrior = 5
	// localFor is for how long, in nanoseconds, a thread is likely to stay at
	// the rate of the place it was sampled at.
	localFor = 100_000
	// Places are pages of code.
	pageShift = 12
)

// stretch is a run of accesses being timed.
type stretch struct {
	process  *process
	pc       uint64
	accesses int
	last     int // slot that watches the end
	from     *sampler.Trap
	done     bool
}

type place struct {
	process *process
	page    uint64
}

type rateSum struct{ sum, squares, n float64 }

func (r *rateSum) add(v float64) {
	r.sum += v
	r.squares += v * v
	r.n++
}

func (r *rateSum) mean() float64 { return r.sum / r.n }

// rates are the access rates measured, in accesses per nanosecond. Stretches
// begin at random moments of CPU time, so that their mean is the mean over
// time: what turns a long time into accesses.
type rates struct {
	fixed    float64 // if not measured
	source   string
	all      rateSum
	values   []float64
	places   map[place]*rateSum
	tried    int
	unread   int // holds from which no stretch could be read
	unending int // stretches of which an end was not seen
	noise    int // stretches too short to be timed
	held     time.Duration
}

func (r *rates) add(st *stretch, ns, sigma float64) {
	if ns < stretchSigmas*sigma || ns <= 0 {
		r.noise++
		return
	}
	// The mean of 1/T is too high by the noise of T; to second order:
	rate := float64(st.accesses) / ns / (1 + sigma*sigma/(ns*ns))
	r.all.add(rate)
	r.values = append(r.values, rate)
	key := place{st.process, st.pc >> pageShift}
	if r.places == nil {
		r.places = make(map[place]*rateSum)
	}
	if r.places[key] == nil {
		r.places[key] = new(rateSum)
	}
	r.places[key].add(rate)
}

// settle decides on the rate, in accesses per unit of the clock.
func (r *rates) settle(flag float64, clock sampler.Clock) {
	switch {
	case clock.Unit == sampler.Accesses:
		r.fixed, r.source = 1, "counted"
	case flag > 0:
		r.fixed, r.source = flag, "flag"
	case clock.Unit == sampler.Instructions:
		r.fixed, r.source = defaultPerInstruction, "default"
	case r.all.n >= fewestStretches:
		r.source = "measured"
	default:
		r.fixed, r.source = DefaultAccessRate, "default"
	}
}

// mean over the session's CPU time.
func (r *rates) mean() float64 {
	if r.fixed > 0 {
		return r.fixed
	}
	return r.all.mean()
}

// relativeError is the standard error of the mean, as a share of it.
func (r *rates) relativeError() float64 {
	m := r.all.mean()
	variance := max(r.all.squares/r.all.n-m*m, 0)
	return math.Sqrt(variance/r.all.n) / m
}

// quantile of the stretches' rates; there must be one.
func (r *rates) quantile(q float64) float64 {
	slices.Sort(r.values)
	return r.values[int(q*float64(len(r.values)-1))]
}

// at is the rate of the code about pc: its own stretches' mean, drawn to the
// overall one the fewer there are.
func (r *rates) at(p *process, pc uint64) float64 {
	m := r.mean()
	if own := r.places[place{p, pc >> pageShift}]; r.fixed == 0 && own != nil {
		return (own.sum + localPrior*m) / (own.n + localPrior)
	}
	return m
}

// accesses in ns nanoseconds that begin at pc: at the place's rate for as long
// as the code is likely to stay there, at the mean rate beyond.
func (r *rates) accesses(p *process, pc uint64, ns float64) float64 {
	w := 1 / (1 + ns/localFor)
	return ns * (w*r.at(p, pc) + (1-w)*r.mean())
}

// wantStretch says whether this hold should time a stretch.
func (s *Session) wantStretch() bool {
	if !s.cfg.MeasureRate || s.burst == 0 || s.cfg.AccessRate > 0 || s.cfg.Slots < 2 || s.clock.Counted != nil {
		return false
	}
	// Where threads share slots, and wait for a CPU after a hold, most
	// stretches are cut off by the next sample.
	if s.groups() && float64(s.rates.tried) > stretchShare*float64(s.held.last.n) {
		return false
	}
	return s.rates.held < time.Duration(stretchShare*float64(s.held.sum))
}

// armStretch reads a stretch ahead and watches both its ends. What their two
// slots watched is cut off, as by any newer sample.
func (s *Session) armStretch(t *thread) bool {
	start := sampler.Monotonic()
	s.rates.tried++
	defer func() { s.rates.held += sampler.Monotonic() - start }()
	found, ok := s.locate.Stretch(t.process.pid, t.tid, stretchLead, stretchLength)
	if !ok {
		s.rates.unread++
		return false
	}
	if s.halves {
		s.retire(t, 0)
	}
	first := int(t.shared.HoldSlot)
	slots := s.cfg.Slots
	if g := t.process.group; g != nil {
		slots = int(g.shared.Num)
	}
	last := (first + 1) % slots
	st := &stretch{process: t.process, pc: found.PC, accesses: found.Accesses, last: last}
	// The end is armed as if its use had been seen: it is stamped early, the
	// beginning late, as the two traps of a pair are. The beginning is armed
	// for one trap more than it needs, so that, as in a pair, it is not the
	// last one and does not take the watchpoint down within the stretch.
	if failed := s.arm(t, last, found.To, sampler.SlotUsed, found.ToSkip, 1+found.ToSkip, (*sampler.Kernel).Arm); failed != "" {
		s.lose(failed)
		return true
	}
	t.slots[last].stretch = st
	if failed := s.arm(t, first, found.From, sampler.SlotArmed, found.FromSkip, 2+found.FromSkip, (*sampler.Kernel).Arm); failed != "" {
		s.lose(failed)
		return true
	}
	t.slots[first].stretch = st
	return true
}

// timeStretch takes one of the two traps of a stretch.
func (s *Session) timeStretch(st *stretch, trap *sampler.Trap) {
	if trap.Kind == sampler.TrapUse {
		from := *trap
		st.from = &from
		return
	}
	if st.from == nil || st.done || int(trap.Slot) != st.last {
		return // the beginning touched again
	}
	st.done = true
	ns, _ := s.elapsed(trap.Clock-st.from.Clock, float64(trap.Traps-st.from.Traps))
	s.rates.add(st, ns, s.calibration.Resolution()/resolutionSigmas)
}

// resolutionSigmas: from p10 to p90 of a normal law.
const resolutionSigmas = 2.56

// end counts a stretch that is taken down unfinished, once.
func (st *stretch) end(s *Session) {
	if !st.done {
		st.done = true
		s.rates.unending++
	}
}
