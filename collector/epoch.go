package collector

import "github.com/rdx-profiler/rdx/sampler"

const (
	// epochHolds is how many holds' observations share one weight: enough for a
	// steady ratio, few enough to follow the program's phases (model notes: about
	// twenty epochs a run).
	epochHolds = 50
	// Where the kernel throttles the source, an epoch is as long as so many times it
	// was stopped, or holds its observations would be of what comes first after a
	// stop, and a few of them stand for what the others missed.
	epochStops = 10
	mostHolds  = 20 * epochHolds
)

// epoch is a stretch of one thread's run. Its observations share evenly what the
// thread did meanwhile, so that a phase in which the slots were busy, and few
// samples won one, or in which the source was throttled, counts for as much as it was.
type epoch struct {
	number   int // among the thread's, from 1
	holds    int
	weighed  bool
	cpu      uint64  // the ticks' gaps, in the source's unit
	unheld   uint64  // besides: of ticks at which nothing could hold the thread
	accepted float64 // observations, lost ones taken out
	from, to marks
	before   uint64 // stops when the epoch before began
}

// marks are what goes on of a thread while its source is stopped.
type marks struct {
	clock, lag     uint64 // of a clock that counts, or the tally in its place
	unread         bool   // it could not be read
	ran            uint64 // ns
	stops, stopped uint64 // how often the source was, and for how many ns at most
}

// marks reads them for the thread, up to now.
func (t *thread) marks(k *sampler.Kernel) marks {
	var m marks
	var err error
	if t.counter != nil {
		m.clock, m.lag, err = t.counter.Read(k)
	} else if t.tally != nil {
		m.clock, m.lag, err = t.tally.Read()
	}
	m.unread = err != nil || t.counter == nil && t.tally == nil
	if t.ticker != nil {
		// What can't be read is counted where the totals are.
		_, m.ran, _, _ = t.ticker.Count()
		m.stops, m.stopped, _, _ = t.ticker.Throttled()
	}
	return m
}

// perObservation is what one observation stands for, in the source's unit.
func (e *epoch) perObservation() float64 { return float64(e.cpu) / max(e.accepted, 1) }

// turnEpoch counts one more hold in the thread's epoch, or in a new one.
func (t *thread) turnEpoch(k *sampler.Kernel) {
	if t.epoch == nil {
		t.nextEpoch(marks{})
	} else if t.epoch.holds >= epochHolds {
		stops, _, _, _ := t.ticker.Throttled()
		if t.epoch.full(stops) {
			t.account() // up to the reading
			t.epoch.to = t.marks(k)
			t.nextEpoch(t.epoch.to)
		}
	}
	t.epoch.holds++
}

// full says whether the epoch ends, when the source has been stopped so often.
func (e *epoch) full(stops uint64) bool {
	throttled := stops > e.before
	return e.holds >= epochHolds && (!throttled || stops-e.from.stops >= epochStops || e.holds >= mostHolds)
}

// enterEpoch counts the observation in the thread's epoch.
func (t *thread) enterEpoch(o *observation) {
	if t.epoch == nil {
		t.nextEpoch(marks{})
	}
	t.epoch.accepted += o.times()
	o.epoch = t.epoch
}

// nextEpoch begins one at now.
func (t *thread) nextEpoch(now marks) {
	e := &epoch{number: 1, from: now, before: now.stops}
	if t.epoch != nil {
		e.number += t.epoch.number
		e.before = t.epoch.from.stops
	}
	t.epoch = e
}

// weigh makes cpu what the thread did, in the source's unit, whether or not the
// source saw it. A clock that counts is never stopped, nor is a tally: perCount of the
// unit goes with each of its counts; 0 if there is none. Nor is CPU time, where the source
// is timed by it. Of what is neither, unknown says for how many ns it can't be told how much
// of it there was while the source was stopped.
func (e *epoch) weigh(perCount float64, timed bool) (unknown uint64) {
	e.weighed = true
	ticked, ran, stopped := e.cpu+e.unheld, e.to.ran-e.from.ran, e.to.stopped-e.from.stopped
	switch {
	case ticked == 0:
	case perCount > 0 && !e.from.unread && !e.to.unread && e.from.lag == e.to.lag:
		e.cpu = uint64(float64(e.to.clock-e.from.clock) * perCount * float64(e.cpu) / float64(ticked))
	case stopped > 0 && timed:
		// Away from its CPU the thread does nothing, but the stop goes on. It is no longer
		// than what no tick accounts for; the rest of that fell into the kernel.
		stopped = min(stopped, max(ran, ticked)-ticked)
		e.cpu = uint64(float64(e.cpu) * float64(ran) / float64(ran-stopped))
	case stopped > 0:
		return ran
	}
	return 0
}

// weighEpochs weighs all epochs of what was seen that are not yet, where so much of the
// source's unit goes with a count of the clock or the tally. For how many ns throttling
// is not made up for is counted.
func (s *Session) weighEpochs(perCount float64) {
	for _, o := range s.seen {
		if e := o.epoch; e != nil && !e.weighed {
			s.unweighed += e.weigh(perCount, s.source.Unit() == sampler.Nanoseconds)
		}
	}
}

// openTally starts a tally of the thread if weights need one: with the clock CPU time,
// nothing else counts while a source that counts is stopped.
func (s *Session) openTally(t *thread) {
	c := s.source.Counts()
	if s.clock.Counted != nil || c == nil {
		return
	}
	var err error
	if t.tally, err = sampler.OpenTally(*c, t.tid); err != nil && !gone(err) {
		s.losses["threads of which nothing counts what a throttled source misses"]++
	}
}
