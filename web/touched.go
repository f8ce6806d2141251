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
	touchKey
	all []*model.Touch
}

type touchKey struct {
	place int32
	op    model.Op
	data  string
}

// touchesOf are those of a profile, by place and by object; in each what fetches most first.
func touchesOf(p *model.Profile, table *placeTable) []touched {
	by := map[touchKey]*touchGroup{}
	var groups []*touchGroup
	for i := range p.Touches {
		t := &p.Touches[i]
		keys := []touchKey{{table.ofStack(t.Use), t.Op, ""}, {-1, 0, dataName(t.Data)}}
		if keys[1].data == "" {
			keys = keys[:1]
		}
		for _, k := range keys {
			g := by[k]
			if g == nil {
				g = &touchGroup{touchKey: k}
				by[k] = g
				groups = append(groups, g)
			}
			g.all = append(g.all, t)
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

func (g *touchGroup) sum() touched {
	s := model.SumTouches(g.all, dataName)
	out := touched{Place: g.place, Op: g.op.String(), Data: report.Printable(report.Shorten(s.Data, longestName)), Accesses: s.Accesses, Fetches: s.Fetches,
		Stride: s.Stride.String(), Step: s.Step, Kept: s.Kept, Waits: s.Waits, Used: s.Used, Written: s.Written}
	for _, m := range s.Members {
		if m = report.Printable(report.Shorten(m, longestName)); len(out.Members) < mostMembers && !slices.Contains(out.Members, m) {
			out.Members = append(out.Members, m)
		}
	}
	return out
}

// dataName is "" where it is not known what was touched.
func dataName(d *model.Data) string {
	if d == nil {
		return ""
	}
	return d.Name
}
