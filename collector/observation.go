package collector

import (
	"math"

	"github.com/rdx-profiler/rdx/collector/callstack"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// observations are what has been observed so far. It belongs to the tracing thread.
type observations struct {
	account *account

	seen     []*record.Observation
	stacks   callstack.Queue
	pairs    int
	timed    uint64         // uses whose time could be read
	unplaced []*observation // whose data's mapping is not known yet
}

// place has the data of an observation found, when its thread runs.
func (s *observations) place(o *observation) { s.unplaced = append(s.unplaced, o) }

// keep keeps what a use was, whatever becomes of it.
func (s *observations) keep(o *observation) { s.seen = append(s.seen, &o.Observation) }

// paired counts a reuse that was seen.
func (s *observations) paired() { s.pairs++ }

// timeRead counts a use of which the clock could be read.
func (s *observations) timeRead() { s.timed++ }

// observation is one use, from its arming on: what will be kept of it, and what is needed to
// tell its end.
type observation struct {
	record.Observation

	lap      ahead.Lap        // of an Observation.Lap
	next     uint64           // where the instruction leads, as the trap will report
	use      *unwind.Snapshot // from the hold, until the use was seen
	useClock uint64
	lag      uint64 // of the clock at the use
	traps    uint32
	spent    uint64 // ns in traps' programs until the use

	dataBy   int  // Process.Readings at which its data is given up if no mapping has it
	searched bool // for data and block
	placed   bool // its data's mapping is known
}

// loseObserved counts an observation as lost, once, and all that it stands for.
func (s *account) loseObserved(o *record.Observation, why model.Reason) {
	if o.State == record.Void {
		return
	}
	o.State = record.Void
	if o.Lap != nil {
		s.count(model.LapsLost.Of(why), 1)
		return
	}
	s.losses[model.LostBecause.Of(why)] += int64(max(math.Round(o.Times()), 1))
	if o.Epoch != nil { // it had been entered
		o.Epoch.Accepted -= o.Times()
	}
}

// outlived makes an observation that was cut off, as its thread or its memory is
// gone, one that is known to have no reuse. Of half a line it is not known of the other half.
func (s *account) outlived(o *record.Observation) {
	if o.State == record.Done && o.Kind == model.Censored && !o.Half {
		o.Kind = model.Cold
		s.outlivedN++
	}
}

// censor ends the observation at an age in the clock's unit.
func (o *observation) censor(age uint64, s *timing) {
	o.State = record.Done
	o.Kind = model.Censored
	o.Native, _ = s.elapsed(age, 1)
}
