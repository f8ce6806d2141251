package why

import (
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// RecordTime gives each record the share of the CPU time that its misses are waited for: what a function waits is shared out
// to the misses that happen there, by what they cost. It is nil where the profile does not tell how long that is.
func RecordTime(p *model.Profile) func(*model.Record) float64 {
	v := verdict(p)
	if !v.Known || len(p.Caches) == 0 {
		return nil
	}
	m := missCosts(p)
	cost, waits := map[string]float64{}, map[string]float64{}
	for i := range p.Records {
		r := &p.Records[i]
		cost[functionOf(missedAt(r))] += m.of(r)
	}
	for i := range p.Moments {
		x := &p.Moments[i]
		f := functionOf(x.Stack)
		waits[f] += x.Nanoseconds / (v.CPU * 1e9) * v.functions[f]
	}
	return func(r *model.Record) float64 {
		f := functionOf(missedAt(r))
		if !(cost[f] > 0) {
			return 0
		}
		return m.of(r) / cost[f] * waits[f]
	}
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
	kinds  map[string][]float64 // of the costs
	serial map[string]bool
}

func missCosts(p *model.Profile) *missCost {
	m := &missCost{costs: costsOf(p), kinds: map[string][]float64{}, serial: map[string]bool{}}
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
	if r.Kind == model.Lost || r.Kind.OfLine() || len(r.Misses)+1 != len(m.apart) {
		return 0
	}
	kind := m.kinds[report.PlaceOf(missedAt(r)).String()]
	if kind == nil {
		kind = m.apart
	}
	for k, n := range r.Misses {
		if k+1 < len(r.Misses) {
			n -= r.Misses[k+1] // they find their data in the next cache
		}
		ns += max(n, 0) * kind[k+1]
	}
	return ns
}
