package why

import (
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// Waiting is how much of the time the program waits, as the verdict has it, and each record's part: what a function waits is
// shared out to the misses that happen there, by what they cost. Where none is seen to miss, all that did not come back soon
// may have, and has it. What a function waits that has no such record either is no record's. It is nil where the profile
// does not tell how long that is.
func Waiting(p *model.Profile) *report.Waiting {
	v := verdict(p)
	if !v.Known || len(p.Caches) == 0 {
		return nil
	}
	m := missCosts(p)
	cost, late, waits := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for i := range p.Records {
		r := &p.Records[i]
		f := functionOf(missedAt(r))
		cost[f] += m.of(r)
		late[f] += cameLate(r)
	}
	for i := range p.Moments {
		x := &p.Moments[i]
		f := functionOf(x.Stack)
		waits[f] += x.Nanoseconds / (v.CPU * 1e9) * v.functions[f]
	}
	return &report.Waiting{Value: v.Memory.Value, Low: v.Memory.Low, High: v.Memory.High, Of: func(r *model.Record) float64 {
		f := functionOf(missedAt(r))
		switch {
		case cost[f] > 0:
			return m.of(r) / cost[f] * waits[f]
		case late[f] > 0:
			return cameLate(r) / late[f] * waits[f]
		}
		return 0
	}}
}

// cameLate is how many accesses a record stands for whose datum did not come back among those read ahead.
func cameLate(r *model.Record) float64 {
	if r.Kind == model.Lost || r.Kind.OfLine() || r.Exact && r.Time < leastFar {
		return 0
	}
	return r.Estimated()
}

// missedAt is the stack that waits for a record's datum: its reuse, or where none was seen the use, which stands for others.
func missedAt(r *model.Record) []*model.Location {
	if r.Kind == model.Reuse {
		return r.Reuse
	}
	return r.Use
}

// missCost is what misses cost, by place.
type missCost struct {
	costs
	misses map[*model.Record][]float64 // by the steps of the costs
	kinds  map[string][]float64        // of the costs
	serial map[string]bool
}

func missCosts(p *model.Profile) *missCost {
	e := evidenceOf(p)
	m := &missCost{costs: e.costs, misses: map[*model.Record][]float64{}, kinds: map[string][]float64{}, serial: map[string]bool{}}
	for i := range p.Records {
		m.misses[&p.Records[i]] = e.middle.Records[i].Misses
	}
	for i := range p.Moments {
		if x := &p.Moments[i]; x.Chases > x.Apart {
			m.serial[functionOf(x.Stack)] = true
		}
	}
	most := map[string]float64{}
	for i := range p.Touches {
		t := &p.Touches[i]
		at := report.PlaceOf(t.Use)
		if k := at.String(); t.Fetches > most[k] {
			most[k] = t.Fetches
			switch {
			case !t.Waits():
				m.kinds[k] = m.streamed
			case t.Manner == model.MannerChase && m.serial[at.Function]:
				m.kinds[k] = m.chased
			default:
				m.kinds[k] = m.apart
			}
		}
	}
	return m
}

// of is what a record's misses cost, in ns.
func (m *missCost) of(r *model.Record) (ns float64) {
	misses := m.misses[r]
	if r.Kind == model.Lost || r.Kind.OfLine() || len(misses)+1 != len(m.apart) {
		return 0
	}
	kind := m.kinds[report.PlaceOf(missedAt(r)).String()]
	if kind == nil {
		kind = m.apart
	}
	for k, n := range misses {
		if k+1 < len(misses) {
			n -= misses[k+1] // they find their data in the next step
		}
		ns += max(n, 0) * kind[k+1]
	}
	return ns
}
