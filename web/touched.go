package web

import (
	"cmp"
	"slices"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// touched is how a place touches memory, loads and stores each by themselves, as rdx why says it; or how a data
// object is touched by all.
type touched struct {
	Place    int32   `json:"place"` // -1: of an object
	Data     string  `json:"data"`  // most of what is fetched
	Op       string  `json:"op"`
	Accesses float64 `json:"accesses"`
	Fetches  float64 `json:"fetches"`
	Stride   string  `json:"stride"` // a class of docs/explanation/patterns.md
	Step     int64   `json:"step"`   // bytes
	Kept     float64 `json:"kept"`   // share of accesses that keep to the class
	Waits    bool    `json:"waits"`  // no prefetcher follows most fetches
	// Used is how many bytes of a fetched line are touched, Written the share of fetched lines that are written to.
	Used    float64  `json:"used"`
	Written float64  `json:"written"`
	Members []string `json:"members"` // of structs, that it fetches
}

// touchGroup is what is seen as one.
type touchGroup struct {
	touched
	all     []*model.Touch
	data    map[string]float64
	waiting float64
}

type touchKey struct {
	place int32
	op    model.Op
	data  string
}

// touchesOf are those of a profile, by place and by object; in each what fetches most first.
func touchesOf(p *model.Profile, places *placeTable) []touched {
	by := map[touchKey]*touchGroup{}
	var groups []*touchGroup
	for i := range p.Touches {
		t := &p.Touches[i]
		name := ""
		if t.Data != nil {
			name = t.Data.Name
		}
		keys := []touchKey{{places.ofStack(t.Use), t.Op, ""}, {-1, 0, name}}
		if name == "" {
			keys = keys[:1]
		}
		for _, k := range keys {
			g := by[k]
			if g == nil {
				g = &touchGroup{touched: touched{Place: k.place, Op: k.op.String()}, data: map[string]float64{}}
				by[k] = g
				groups = append(groups, g)
			}
			g.add(t, name)
		}
	}
	out := make([]touched, len(groups))
	for i, g := range groups {
		out[i] = g.sum()
	}
	slices.SortStableFunc(out, func(a, b touched) int {
		return cmp.Or(cmp.Compare(b.Fetches, a.Fetches), cmp.Compare(b.Accesses, a.Accesses), cmp.Compare(a.Place, b.Place))
	})
	return out[:min(mostTouched, len(out))]
}

const (
	mostTouched = 20_000
	mostMembers = 20 // of one
)

func (g *touchGroup) add(t *model.Touch, name string) {
	g.Accesses += t.Accesses
	g.Fetches += t.Fetches
	g.Used += t.Used
	g.Written += t.Written
	if t.Waits() {
		g.waiting += t.Fetches
	}
	if m := report.Printable(report.Shorten(t.Member, longestName)); m != "" && len(g.Members) < mostMembers && !slices.Contains(g.Members, m) {
		g.Members = append(g.Members, m)
	}
	g.all = append(g.all, t)
	g.data[name] += t.Fetches + 1e-6*t.Accesses // accesses tell where nothing is fetched
}

func (g *touchGroup) sum() touched {
	if g.Fetches > 0 {
		g.Used, g.Written = g.Used/g.Fetches, g.Written/g.Fetches
		g.Waits = g.waiting > g.Fetches/2
	}
	best := -1.0
	for name, v := range g.data {
		if v > best || v == best && name < g.Data {
			g.Data, best = name, v
		}
	}
	g.Data = report.Printable(report.Shorten(g.Data, longestName))
	var class model.Stride
	class, g.Step, g.Kept = model.StrideOf(g.all)
	g.Stride = class.String()
	return g.touched
}
