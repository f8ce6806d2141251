package estimate

import (
	"math"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
)

// slotShare is what an epoch's observations have of touches, of those that found a
// slot, and of those that did not, nor a reuse as far as was read ahead.
type slotShare struct{ seen, passed float64 }

// each is what one that was watched stands for.
func (w slotShare) each() float64 {
	if w.seen == 0 {
		return 1
	}
	return 1 + w.passed/w.seen
}

// shareKey: of both stacks, each has observations of its own.
type shareKey struct {
	epoch *record.Epoch
	stack model.StackKind
}

func (s *stage) shareKey(o *record.Observation) shareKey { return shareKey{o.Epoch, o.Stack} }

// watched is each epoch's and stack's slotShare. Those watched stand also for
// those that found no slot: for these it is only known that there is no reuse
// as far as was read ahead, and what comes after goes with the program's phases.
func (s *stage) watched() map[shareKey]slotShare {
	shares := make(map[shareKey]slotShare)
	for _, o := range s.Seen {
		if o.State != record.Done {
			continue
		}
		key := s.shareKey(o)
		w := shares[key]
		if o.NoSlot {
			w.passed += o.Touches()
		} else if o.Counted == 0 {
			w.seen += o.Touches()
		}
		shares[key] = w
	}
	return shares
}

// SetTime gives a record its time in accesses and in the clock's unit; none to what can have no reuse any more.
func (s *stage) SetTime(r *model.Record, o *record.Observation, byWall PerWall) {
	switch {
	case o.Kind == model.Cold:
		return
	case o.Stack == model.StackShared:
		s.setSharedTime(r, o, byWall)
		return
	case o.Kind == model.Invalidated || o.ByWall:
		// By another thread's clock, and at most what this one's has to say.
		r.Native = uint64(math.Round(o.Wall * byWall.native))
		if o.Age > 0 {
			r.Native = min(r.Native, uint64(o.Age))
		}
		r.Time = max(uint64(math.Round(s.touchesIn(float64(r.Native)))), 1)
		if o.ByWall {
			r.Time = max(r.Time, uint64(o.After)+1) // it was read ahead that there is no reuse so soon
			return
		}
		r.BelowResolution = o.Wall < s.Calibration.Resolution()
		return
	}
	if o.Counted > 0 && (o.Kind == model.Reuse || s.Stepped) || o.NoSlot {
		r.Exact = true
		r.Time, r.Hot = uint64(o.Counted), o.Hot
		r.Distinct = uint64(o.Distinct)
		r.Native = uint64(math.Round(float64(o.Counted) / s.touchesOf(o, 1)))
		return
	}
	timed := uint64(math.Round(s.timedTouches(o, o.Native))) + uint64(o.Lead)
	// It was read ahead that there is no reuse so soon.
	after := uint64(o.After)
	least := after + 1
	r.Native = uint64(math.Round(o.Native + float64(o.Lead)/s.touchesOf(o, 1)))
	r.Time = max(timed, least)
	r.BelowResolution = o.BelowResolution && timed > least
	if o.After > 0 {
		r.After, r.Distinct = after, uint64(o.Distinct)
	}
	if o.Half {
		r.Half, r.After, r.Pair = true, after, o.Pair
		r.PairTime = max(uint64(math.Round(s.timedTouches(o, o.PairNative))), least)
	}
}

// locationTable makes one model.Location of each address of a process.
type locationTable map[locationKey]*model.Location

type locationKey struct {
	process *target.Process
	address uint64
}

func (lt locationTable) stack(p *target.Process, addresses []uint64) []*model.Location {
	out := make([]*model.Location, len(addresses))
	for i, a := range addresses {
		key := locationKey{p, a}
		l := lt[key]
		if l == nil {
			l = &model.Location{Address: a}
			if m := p.Find(a); m != nil {
				m.Identify()
				l.Mapping = &m.Mapping
			}
			lt[key] = l
		}
		out[i] = l
	}
	return out
}
