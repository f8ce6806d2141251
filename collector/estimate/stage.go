package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/rdx-profiler/rdx/collector/callstack"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/sharing"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
)

// Input is what a session has seen, as plain data.
type Input struct {
	Seen   []*record.Observation
	Stacks *callstack.Table
	Seed   uint64

	Clock        sampler.Clock
	Calibration  sampler.TwoTrap
	Unit         string // of the source
	Totals       Totals
	Unweighed    uint64  // ns, so far, in which it can't be told what a throttled source missed
	AccessRate   float64 // as given by the user, 0: not
	Probes       Probes
	MeasuresRate bool         // probes are made
	Ran          uint64       // CPU time of the target, ns
	Modes        target.Modes // of that

	Resident  int64              // most memory that the target had, bytes
	Touched   int64              // and can have had in all, one after the other; 0: not known
	Block     int                // that counts as one datum, in bytes
	Stepped   bool               // bursts are made by steps
	Shared    bool               // some observations are of a shared stack
	PerHold   int                // observations wanted of a hold
	Held      uint64             // how often threads were held
	Holds     []record.Hold      // of which accesses were read ahead
	Laps      []record.Lap       // of these holds
	StoodFor  float64            // observations of these, in whose place another of the hold is watched
	Conflicts pipeline.Conflicts // of lines that compete for few sets, on this machine

	Overlaps Overlaps
	Windows  []*record.Stretch // what was read ahead of threads that may write each other's data
}

// stage makes a profile of a session. It belongs to one goroutine.
type stage struct {
	Input
	Rates     Rates
	rand      *rand.Rand
	foot      *footprints // of threads, if there is a shared stack
	unsmeared int
	blind     int64 // observations whose word others may have written unseen
	noSlot    int   // samples in whose place others of the time are watched
	join      *sharing.Join
	foretold  *foretold // nil where no model tells how fast the code is
	bare      bool      // without call stacks, data and how memory is touched

	readAhead int     // accesses
	touched   int     // blocks that these overlap, added up
	plainNS   float64 // of an access that does not wait, where holds are weighed by how long they do
	waitNS    float64 // and how much longer one that is open takes
}

func NewStage(in Input) *stage { return newStage(in, sharing.New(in.Windows)) }

// newStage is NewStage with the windows joined before.
func newStage(in Input, join *sharing.Join) *stage {
	s := &stage{Input: in, Rates: Rates{Probes: in.Probes}, rand: rand.New(rand.NewPCG(in.Seed, 3)), join: join}
	for i := range in.Holds {
		s.readAhead += in.Holds[i].Accesses
		s.touched += in.Holds[i].Touches
	}
	return s
}

// Fill adds to the profile what was observed: observations become records, with what each stands
// for, addresses locations.
func Fill(p *model.Profile, in Input) {
	s := NewStage(in)
	s.foretold = s.findForetold(p)
	s.fill(p)
}

// fill adds what was observed.
func (s *stage) fill(p *model.Profile) {
	dropped := s.fillRecords(p)
	p.AddCount(model.LostBecause.Of(model.NotInAllThreads), uint64(s.blind))
	p.AddCount(model.ReusesLeftOut, uint64(dropped))
	p.AddCount(model.NoSlot, uint64(math.Round(float64(s.noSlot)+s.StoodFor)))
	p.AddCount(model.SourceUnweighed, s.Unweighed)
	p.AddCount(model.Unsmeared, uint64(s.unsmeared))
	s.rateCounts(p)
	s.overlapComment(p)
}

// fillRecords adds the records and what turns their times into accesses, and says how many observations are left out
// as others stand for them.
func (s *stage) fillRecords(p *model.Profile) (dropped int) {
	perSource := s.settleRates() // accesses
	p.Period = (s.Totals.Ticked - s.Totals.Unheld) * perSource / s.Rates.Mean() / float64(max(s.Held, 1))
	p.Clock = s.ClockModel()
	p.Block = s.Block
	s.setPaces(p)
	s.unsmear()
	dropped = s.addRecords(p, perSource)
	p.SetDesignEffect()
	s.boundRate(p)
	p.JoinEpochs()
	return dropped
}

// boundRate has the resident memory bound the rate.
func (s *stage) boundRate(p *model.Profile) {
	p.Resident, p.Touched = s.Resident, s.Touched
	if s.Rates.torn { // what goes by a reuse follows from what holds stand for, which is not known then
		return
	}
	factor, err := p.BoundRate()
	switch {
	case err != nil: // of a profile without an estimate nothing is bounded
		p.Resident, p.Touched = 0, 0
		p.Comments = append(p.Comments, fmt.Sprintf("access rate: not bounded by the resident memory: %v", err))
	case factor < 1:
		if s.Unit != sampler.Accesses { // what holds stand for is time at that rate, too
			p.Rescale(factor)
		}
		p.Comments = append(p.Comments, fmt.Sprintf("access rate: bounded by the resident memory, %d bytes: at %.3g per ns reuses would have more data between them", p.Resident, p.Clock.Rate/factor))
	}
}

// settleRates decides on the access rate, weighs the observations, and says how many accesses go with a unit
// of the source.
func (s *stage) settleRates() (perSource float64) {
	s.fitLocal()
	if s.Clock.Counted == nil {
		if s.Rates.possible = s.possibleRates(); s.foretold != nil {
			s.Rates.possible, s.Rates.modelled, s.Rates.alike = s.foretold.reach(), true, s.foretold.alike()
		}
	}
	s.Rates.modes = s.newModes(s.Rates.roughly(s.AccessRate))
	s.Rates.possible.low /= s.Rates.modes.cold()
	s.Rates.Settle(s.AccessRate, s.Clock)
	s.weighByCode()
	s.weighByOverlap()
	s.weighByWaits()
	perSource = s.sourceRate(s.Totals)
	perCount := s.Totals.PerTally()
	if s.Clock.Counted != nil {
		perCount = s.Rates.Mean() / perSource
	}
	s.Unweighed += WeighEpochs(s.Seen, perCount, s.Unit == sampler.Nanoseconds)
	return perSource
}

// addRecords makes the records, and says how many observations are left out as others stand for them.
func (s *stage) addRecords(p *model.Profile, perSource float64) (dropped int) {
	watched := s.watched()
	m := recorder{stage: s, seenAt: s.stacksByLeaf(), locations: make(locationTable), data: make(dataTable), byWall: s.accessesPerWall(s.Totals), lines: s.lineWeights(), perSource: perSource, firstHold: s.rand.Uint64() >> 2}
	if s.bare {
		m.locations, m.data = nil, nil
	}
	checks := s.checkWeights()
	if s.Shared {
		s.foot = s.footprints()
	}
	stands := func(o *record.Observation) float64 {
		weight := o.Weight() * checks.of(o)
		if o.Counted == 0 {
			weight *= watched[s.shareKey(o)].each()
		}
		return weight
	}
	for _, o := range s.Seen {
		if o.State != record.Done {
			continue // counted as lost where it was lost
		}
		if o.NoSlot && watched[s.shareKey(o)].seen > 0 {
			s.noSlot++
			continue
		}
		if weight := stands(o); weight > 0 {
			m.add(p, o, weight)
		}
	}
	if !s.bare {
		s.addTouches(p, &m)
		m.addTaken(p)
	}
	return checks.dropped
}

// holdNumber is a hold's number among those of all profiles, 0 if it has none.
func (m *recorder) holdNumber(hold int) uint64 {
	if hold == 0 {
		return 0
	}
	return m.firstHold + uint64(hold)
}

// recorder turns observations into records.
type recorder struct {
	*stage
	locations locationTable
	data      dataTable
	byWall    PerWall
	lines     *lineWeights
	perSource float64 // accesses
	firstHold uint64  // what holds are counted from, by chance
	seenAt    map[leafKey]int
	beyond    map[codeKey]*beyond
}

// stack is that of a number in Stacks.
func (m *recorder) stack(p *target.Process, n int) []*model.Location {
	if m.bare {
		return nil // it may not be unwound yet
	}
	return m.locations.stack(p, m.Stacks.Stack(n))
}

// add takes an observation that stands for so much, in the source's unit.
func (m *recorder) add(p *model.Profile, o *record.Observation, weight float64) {
	r := model.Record{
		Kind:    o.Kind,
		Use:     m.stack(o.Process, o.UseStack),
		Op:      o.Op,
		TID:     o.TID,
		Data:    m.data.of(m.Stacks, o, m.locations),
		Epoch:   o.Epoch.Number,
		Cluster: model.Cluster{Hold: m.holdNumber(o.Hold), Open: o.Open},
		Weight:  model.Weight{Observations: 1, Accesses: weight * m.perSource},
	}
	r.Stack = o.Stack
	if o.EndTID != 0 {
		r.SetWords(model.Words{EndTID: o.EndTID, Address: o.Word, Written: o.Word})
	}
	m.SetTime(&r, o, m.byWall)
	r.DataSource = o.Source
	if o.Latency > 0 {
		p.Latencies = append(p.Latencies, model.Latency{Use: r.Use, Op: r.Op, TID: r.TID, DataSource: o.Source, Cycles: float64(o.Latency) * r.Accesses})
	}
	if o.Kind == model.Reuse || o.Kind == model.Invalidated {
		r.Reuse = m.stack(o.Process, o.ReuseStack)
	}
	if !m.divide(p, o, &r) {
		m.blind += int64(max(math.Round(o.Times()), 1))
		return
	}
	p.Records = append(p.Records, r)
}
