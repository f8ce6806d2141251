package record

const (
	// EpochHolds is how many holds' observations share one weight: enough for a
	// steady ratio, few enough to follow the program's phases (model notes: about
	// twenty epochs a run).
	EpochHolds = 50
	// Where the kernel throttles the source, an epoch is as long as so many times it
	// was stopped, or holds its observations would be of what comes first after a
	// stop, and a few of them stand for what the others missed.
	epochStops = 10
	mostHolds  = 20 * EpochHolds
)

// Epoch is a stretch of one thread's run. Its observations share evenly what the
// thread did meanwhile, so that a phase in which the slots were busy, and few
// samples won one, or in which the source was throttled, counts for as much as it was.
type Epoch struct {
	Number   int // among the thread's, from 1
	Holds    int
	Weighed  bool
	CPU      uint64  // the ticks' periods, in the source's unit
	Unheld   uint64  // besides: of ticks at which nothing could hold the thread
	Accepted float64 // observations, lost ones taken out
	From, To Marks
	Before   uint64 // stops when the epoch before began
}

// Marks are what goes on of a thread while its source is stopped.
type Marks struct {
	Clock, Lag         uint64 // of a clock that counts, or the tally in its place
	Unread             bool   // it could not be read
	Ran                uint64 // ns
	Throttles, Stopped uint64 // how often the source was, and for how many ns at most
}

// PerObservation is what one observation stands for, in the source's unit.
func (e *Epoch) PerObservation() float64 { return float64(e.CPU) / max(e.Accepted, 1) }

// Weigh makes cpu what the thread did, in the source's unit, whether or not the
// source saw it. A clock that counts is never stopped, nor is a tally: perCount of the
// unit goes with each of its counts; 0 if there is none. Nor is CPU time, where the source
// is timed by it. Of what is neither, unknown says for how many ns it can't be told how much
// of it there was while the source was stopped.
func (e *Epoch) Weigh(perCount float64, timed bool) (unknown uint64) {
	e.Weighed = true
	ticked, ran, stopped := e.CPU+e.Unheld, e.To.Ran-e.From.Ran, e.To.Stopped-e.From.Stopped
	switch {
	case ticked == 0:
	case perCount > 0 && !e.From.Unread && !e.To.Unread && e.From.Lag == e.To.Lag:
		e.CPU = uint64(float64(e.To.Clock-e.From.Clock) * perCount * float64(e.CPU) / float64(ticked))
	case stopped > 0 && timed:
		// Away from its CPU the thread does nothing, but the stop goes on. It is no longer
		// than what no tick accounts for; the rest of that fell into the kernel.
		stopped = min(stopped, max(ran, ticked)-ticked)
		e.CPU = uint64(float64(e.CPU) * float64(ran) / float64(ran-stopped))
	case stopped > 0:
		return ran
	}
	return 0
}

// Full says whether the epoch ends, when the source has been stopped so often.
func (e *Epoch) Full(throttles uint64) bool {
	throttled := throttles > e.Before
	return e.Holds >= EpochHolds && (!throttled || throttles-e.From.Throttles >= epochStops || e.Holds >= mostHolds)
}

// Enter counts the observation in the epoch.
func (e *Epoch) Enter(o *Observation) {
	e.Accepted += o.Times()
	o.Epoch = e
}

// Next is the one that follows, which begins at now; the first of a thread follows nil.
func (e *Epoch) Next(now Marks) *Epoch {
	next := &Epoch{Number: 1, From: now, Before: now.Throttles}
	if e != nil {
		next.Number += e.Number
		next.Before = e.From.Throttles
	}
	return next
}
