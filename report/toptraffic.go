package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// A trafficList is what rdx top --by traffic prints: what each place, and each data object, brings into the caches, in bytes
// a second of CPU time.
type trafficList struct {
	Profile *overview      `json:"profile"`
	Levels  []string       `json:"levels"` // into which
	Total   []float64      `json:"total"`
	Most    []float64      `json:"at_most"` // by the bands of miss ratios and access rate; Total where that is known
	ByPlace []*trafficPart `json:"places"`
	Data    []*trafficPart `json:"data"`
	All     [2]int         `json:"in_all"`
}

type trafficPart struct {
	Name   string    `json:"name"`
	Fills  []float64 `json:"fill_bytes_per_second"` // by level
	Share  float64   `json:"share"`                 // of what comes into the last
	Band   band      `json:"last"`                  // of that
	Writes float64   `json:"written_share"`         // of the lines, by what was read ahead; they go back some time
	Seen   int64     `json:"observations"`

	records          []*model.Record
	fetched, written float64
}

// NewTrafficList has the first n places and objects.
func NewTrafficList(p *model.Profile, n int) (*trafficList, error) {
	seconds := float64(p.CountOf(model.CPUSampled)) / 1e9
	if len(p.Caches) == 0 || p.Block <= 0 || !(seconds > 0) {
		return nil, BadInput(fmt.Errorf("--by traffic: the profile has no cache sizes, or no CPU time, that bytes a second could be told of"))
	}
	t := &trafficList{Profile: Survey(p), Total: make([]float64, len(p.Caches))}
	for _, c := range p.Caches {
		t.Levels = append(t.Levels, c.Level)
	}
	each := float64(p.Block) / seconds
	byPlace, byData := map[string]*trafficPart{}, map[string]*trafficPart{}
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind == model.Lost || r.Kind.OfLine() || len(r.Misses) != len(p.Caches) || !(r.Misses[0] > 0) {
			continue
		}
		stack := r.Use
		if r.Kind == model.Reuse {
			stack = r.Reuse
		}
		for _, q := range []*trafficPart{partOf(byPlace, PlaceOf(stack).String(), len(p.Caches)), partOf(byData, dataNamed(r.Data), len(p.Caches))} {
			q.records = append(q.records, r)
			q.Seen += r.Observations
			for k, m := range r.Misses {
				q.Fills[k] += m * each
			}
		}
		for k, m := range r.Misses {
			t.Total[k] += m * each
		}
	}
	for i := range p.Touches {
		x := &p.Touches[i]
		for _, q := range []*trafficPart{byPlace[PlaceOf(x.Use).String()], byData[dataNamed(x.Data)]} {
			if q != nil {
				q.fetched, q.written = q.fetched+x.Fetches, q.written+x.Written
			}
		}
	}
	t.bound(p, each)
	t.All = [2]int{len(byPlace), len(byData)}
	t.ByPlace, t.Data = t.largest(p, byPlace, n, each), t.largest(p, byData, n, each)
	return t, nil
}

// bound finds what may come in at most, where the miss ratio is no more than a bound.
func (t *trafficList) bound(p *model.Profile, each float64) {
	fast := 1.0
	if c := &p.Clock; c.RateHigh > c.Rate && c.Rate > 0 {
		fast = c.RateHigh / c.Rate
	}
	t.Most = slices.Clone(t.Total)
	for k, c := range t.Profile.Caches {
		if c.Low < c.High && c.quote != model.Quoted {
			t.Most[k] = c.High * t.Profile.Accesses * each * fast
		}
	}
}

func partOf(all map[string]*trafficPart, name string, levels int) *trafficPart {
	q := all[name]
	if q == nil {
		q = &trafficPart{Name: name, Fills: make([]float64, levels)}
		all[name] = q
	}
	return q
}

func dataNamed(d *model.Data) string {
	if d == nil || d.Name == "" {
		return noData
	}
	return d.Name
}

// largest are the first n by what comes into the last cache.
func (t *trafficList) largest(p *model.Profile, all map[string]*trafficPart, n int, each float64) (out []*trafficPart) {
	last := len(t.Total) - 1
	for _, q := range all {
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b *trafficPart) int {
		return cmp.Or(cmp.Compare(b.Fills[last], a.Fills[last]), cmp.Compare(b.Fills[0], a.Fills[0]), cmp.Compare(a.Name, b.Name))
	})
	out = out[:min(n, len(out))]
	holds, value := p.Holds(), func(r *model.Record) float64 { return r.Misses[last] }
	for _, q := range out {
		if t.Total[last] > 0 {
			q.Share = q.Fills[last] / t.Total[last]
		}
		e := p.PerAccess(q.records, value, t.Profile.Accesses, holds, .05)
		by := t.Profile.Accesses * each
		q.Band = band{e.Value * by, e.Low * by, e.High * by}
		if q.fetched > 0 {
			q.Writes = q.written / q.fetched
		}
	}
	return out
}

func (t *trafficList) overviews() []*overview { return []*overview{t.Profile} }

func (t *trafficList) Text() string {
	var b strings.Builder
	WriteOverview(&b, t.Profile)
	var total []string
	for k, l := range t.Levels {
		most := ""
		if t.Most[k] != t.Total[k] {
			most = "at most "
		}
		total = append(total, fmt.Sprintf("%s %s%s/s", l, most, Bytes(t.Most[k])))
	}
	fmt.Fprintf(&b, "\npredicted to come in, a second of CPU time: %s\n", strings.Join(total, ", "))
	for i, part := range [][]*trafficPart{t.ByPlace, t.Data} {
		what := [2]string{"places", "data objects"}[i]
		fmt.Fprintf(&b, "\n%d of %d %s\n%6s", len(part), t.All[i], what, "share")
		for _, l := range t.Levels {
			fmt.Fprintf(&b, " %8s", l)
		}
		fmt.Fprintf(&b, " %19s %7s %5s\n", "95 % band of "+t.Levels[len(t.Levels)-1], "written", "seen")
		for _, q := range part {
			fmt.Fprintf(&b, "%6s", Percent(q.Share, 1))
			for _, v := range q.Fills {
				fmt.Fprintf(&b, " %8s", Bytes(v))
			}
			fmt.Fprintf(&b, " %19s %7s %5d  %s\n", Bytes(q.Band.Low)+" to "+Bytes(q.Band.High), Percent(q.Writes, 1), q.Seen, Printable(Shorten(q.Name, 60)))
		}
	}
	return b.String()
}

// Table has a row a place and a data object.
func (t *trafficList) Table() [][]string {
	head := []string{"of", "name"}
	for _, l := range t.Levels {
		head = append(head, strings.ToLower(l)+"_fill_bytes_per_second")
	}
	rows := [][]string{append(head, "share", "last_low", "last_high", "written_share", "observations")}
	for i, part := range [][]*trafficPart{t.ByPlace, t.Data} {
		for _, q := range part {
			row := []string{[2]string{"place", "data"}[i], q.Name}
			for _, v := range q.Fills {
				row = append(row, Float(v))
			}
			rows = append(rows, append(row, Float(q.Share), Float(q.Band.Low), Float(q.Band.High), Float(q.Writes), fmt.Sprint(q.Seen)))
		}
	}
	return rows
}
