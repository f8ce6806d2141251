package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// A dataList is what rdx top --by data prints: the data objects, by the misses
// of their accesses.
type dataList struct {
	Profile *overview     `json:"profile"`
	By      string        `json:"by"`
	Total   float64       `json:"total"`
	All     int           `json:"objects_in_all"`
	Objects []*dataObject `json:"objects"`

	metric metric
}

type dataObject struct {
	Data         string  `json:"data"`
	Value        float64 `json:"value"`
	Share        float64 `json:"share"`
	Cumulative   float64 `json:"cumulative_share"`
	Observations int64   `json:"observations"`
	Accesses     float64 `json:"accesses"`
	Use          place   `json:"use"` // of the pair with the greatest share of it
	Reuse        place   `json:"reuse"`

	part *model.Profile // its records alone
}

// noData stands for records that say nothing of their data.
const noData = "(not recorded)"

func TopData(p *model.Profile, m metric, n int) *dataList {
	t := &dataList{Profile: Survey(p), By: m.Name, metric: m}
	byName := map[string]*dataObject{}
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind == model.Lost {
			continue
		}
		name := noData
		if r.Data != nil {
			name = r.Data.Name
			if r.Member() != "" && r.Kind != model.TrueSharing && r.Kind != model.FalseSharing {
				name += ": " + r.Member()
			}
		}
		d := byName[name]
		if d == nil {
			part := *p
			part.Records = nil
			d = &dataObject{Data: name, part: &part}
			byName[name] = d
			t.Objects = append(t.Objects, d)
		}
		v := m.Value(r)
		d.Value += v
		d.Observations += r.Observations
		d.Accesses += r.Accesses
		d.part.Records = append(d.part.Records, *r)
		t.Total += v
	}
	slices.SortFunc(t.Objects, func(a, b *dataObject) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(b.Observations, a.Observations), cmp.Compare(a.Data, b.Data))
	})
	t.All = len(t.Objects)
	t.Objects = t.Objects[:min(n, t.All)]
	sum := 0.0
	for _, d := range t.Objects {
		sum += d.Value
		if t.Total > 0 {
			d.Share, d.Cumulative = d.Value/t.Total, sum/t.Total
		}
		if q := Pairs(d.part, m.Value); len(q) > 0 {
			d.Use, d.Reuse = q[0].Use, q[0].Reuse
		}
	}
	return t
}

func (t *dataList) overviews() []*overview { return []*overview{t.Profile} }

func (t *dataList) Text() string {
	var b strings.Builder
	WriteOverview(&b, t.Profile)
	if len(t.Objects) > 0 && (t.Objects[0].Data == "heap" || t.Objects[0].Data == "anonymous memory") && t.Objects[0].Share > 0.1 {
		how := "rdx attach --heap (or run --heap) tells data by where they were allocated"
		if slices.ContainsFunc(t.Profile.Remarks, model.CommentKind(model.HeapProbed).Of) {
			how = "it was allocated before rdx was there, or by no allocator that is probed: rdx run --heap sees all from the start"
		}
		wrap(&b, "! ", fmt.Sprintf("%s leads: %s", t.Objects[0].Data, how))
	}
	fmt.Fprintf(&b, "\n%s: %s in all; %d of %d data objects\n\n", t.metric.title, t.metric.amount(t.Total), len(t.Objects), t.All)
	if t.All == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "%6s %6s %12s %5s %8s  %s\n", "share", "cum", t.By, "seen", "accesses", "data, its first pair")
	for _, d := range t.Objects {
		fmt.Fprintf(&b, "%6s %6s %12s %5d %8s  %s\n", Percent(d.Share, 1), Percent(d.Cumulative, 1), t.metric.amount(d.Value), d.Observations,
			Amount(d.Accesses), Printable(Shorten(d.Data, 60)))
		if d.Use.Function != "" {
			fmt.Fprintf(&b, "%43s%s -> %s\n", "", Shorten(d.Use.Function, 30), Shorten(d.Reuse.Function, 30))
		}
	}
	return b.String()
}

func (t *dataList) Table() [][]string {
	out := [][]string{{"data", t.By, "share", "cumulative_share", "observations", "accesses", "use_function", "reuse_function"}}
	for _, d := range t.Objects {
		out = append(out, []string{d.Data, Float(d.Value), Float(d.Share), Float(d.Cumulative), strconv.FormatInt(d.Observations, 10),
			Float(d.Accesses), d.Use.Function, d.Reuse.Function})
	}
	return out
}
