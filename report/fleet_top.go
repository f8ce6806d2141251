package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// A fleetTop is what rdx fleet top prints.
type FleetTop struct {
	Profile *overview    `json:"profile"`
	Hosts   int          `json:"hosts"`
	By      string       `json:"by"`
	Total   band         `json:"share_of_accesses"`
	All     int          `json:"pairs_in_all"`
	Pairs   []fleetPair  `json:"pairs"`
	ByPlace []fleetPlace `json:"places"`

	metric metric
}

type fleetPair struct {
	Use          place    `json:"use"`
	Reuse        place    `json:"reuse"`
	Kind         string   `json:"kind"`
	Observations int64    `json:"observations"`
	Share        band     `json:"share_of_accesses"`
	Distance     *float64 `json:"median_stack_distance_bytes"`
}

// fleetPlace is where data are missed: at the reuse, or if that was not seen at the use.
type fleetPlace struct {
	Place        place `json:"place"`
	Observations int64 `json:"observations"`
	Share        band  `json:"share_of_accesses"`

	records []*model.Record
	value   float64
}

func NewFleetTop(p *model.Profile, by string, n int) (*FleetTop, error) {
	m, err := FindMetric(p, by)
	if err != nil {
		return nil, err
	}
	if m.unit != "count" || m.Name == "observations" {
		return nil, BadInput(fmt.Errorf("--by %s is no share of the accesses: use misses, reuses, accesses or a cache level", by))
	}
	t := &FleetTop{Profile: Survey(p), By: m.Name, metric: m}
	share := func(records []*model.Record) band {
		return band(p.PerAccess(records, m.Value, t.Profile.Accesses, p.Holds(), .05))
	}
	found := Pairs(p, m.Value)
	t.All = len(found)
	var all []*model.Record
	byPlace := map[place]*fleetPlace{}
	for i, q := range found {
		all = append(all, q.records...)
		at := q.Reuse
		if q.Kind != model.Reuse.String() && q.Kind != model.Invalidated.String() {
			at = q.Use
		}
		if byPlace[at] == nil {
			byPlace[at] = &fleetPlace{Place: at}
		}
		byPlace[at].records = append(byPlace[at].records, q.records...)
		byPlace[at].value += q.Value
		byPlace[at].Observations += q.Observations
		if i < n {
			t.Pairs = append(t.Pairs, fleetPair{q.Use, q.Reuse, q.Kind, q.Observations, share(q.records), q.Distance})
		}
	}
	t.Total = share(all)
	var sorted []*fleetPlace
	for _, l := range byPlace {
		sorted = append(sorted, l)
	}
	slices.SortFunc(sorted, func(a, b *fleetPlace) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.Place.Function, b.Place.Function), cmp.Compare(a.Place.Line, b.Place.Line))
	})
	for _, l := range sorted[:min(n, len(sorted))] {
		l.Share = share(l.records)
		t.ByPlace = append(t.ByPlace, *l)
	}
	return t, nil
}

// String is a share of the accesses, in percent.
func (b band) String() string {
	return fmt.Sprintf("%7.3f [%6.3f, %6.3f]", 100*b.Value, 100*b.Low, 100*b.High)
}

func (t *FleetTop) overviews() []*overview { return []*overview{t.Profile} }

func (t *FleetTop) Text() string {
	var b strings.Builder
	WriteOverview(&b, t.Profile)
	wrap(&b, "hosts", strconv.Itoa(t.Hosts))
	fmt.Fprintf(&b, "\n%s: %s %% of accesses; %d of %d use -> reuse pairs\n\n", t.metric.title, strings.TrimSpace(t.Total.String()), len(t.Pairs), t.All)
	if t.All == 0 {
		b.WriteString("nothing to list; try --by reuses\n")
		return b.String()
	}
	fmt.Fprintf(&b, "%-24s %6s %9s  %s\n", "% of accesses", "seen", "distance", "use -> reuse")
	for _, q := range t.Pairs {
		distance := "-"
		if q.Distance != nil {
			distance = Bytes(*q.Distance)
		}
		fmt.Fprintf(&b, "%s %6d %9s  %s\n%43s-> %s\n", q.Share, q.Observations, distance, q.Use, "", q.Reuse)
	}
	fmt.Fprintf(&b, "\n%-24s %6s %9s  %s\n", "% of accesses", "seen", "", "place")
	for _, l := range t.ByPlace {
		fmt.Fprintf(&b, "%s %6d %9s  %s\n", l.Share, l.Observations, "", l.Place)
	}
	return b.String()
}

func (t *FleetTop) Table() [][]string {
	rows := [][]string{{"what", "use_function", "use_file", "use_line", "reuse_function", "reuse_file", "reuse_line", "share", "low", "high", "observations", "median_stack_distance_bytes"}}
	line := func(p place) []string { return []string{p.Function, p.File, strconv.Itoa(p.Line)} }
	for _, q := range t.Pairs {
		rows = append(rows, slices.Concat([]string{q.Kind}, line(q.Use), line(q.Reuse),
			[]string{Float(q.Share.Value), Float(q.Share.Low), Float(q.Share.High), strconv.FormatInt(q.Observations, 10), FloatOr(q.Distance)}))
	}
	for _, l := range t.ByPlace {
		rows = append(rows, slices.Concat([]string{"place"}, line(l.Place), []string{"", "", ""},
			[]string{Float(l.Share.Value), Float(l.Share.Low), Float(l.Share.High), strconv.FormatInt(l.Observations, 10), ""}))
	}
	return rows
}

// FleetLabels is what rdx fleet top --by-label prints.
type FleetLabels struct {
	Label  string       `json:"label"`
	By     string       `json:"by"`
	Values []fleetValue `json:"values"`

	total float64
}

type fleetValue struct {
	Value        string  `json:"value"`
	Metric       string  `json:"metric"`
	Observations int64   `json:"observations"`
	Accesses     float64 `json:"accesses"`
	Amount       float64 `json:"amount"`
	Ratio        band    `json:"share_of_accesses"`
	Part         float64 `json:"share_of_all_values"`
}

func (l *FleetLabels) Add(value string, p *model.Profile) error {
	t, err := NewFleetTop(p, l.By, 1)
	if err != nil {
		return err
	}
	v := fleetValue{Value: value, Metric: t.By, Observations: t.Profile.Observations, Accesses: t.Profile.Accesses, Ratio: t.Total, Amount: t.Total.Value * t.Profile.Accesses}
	l.total += v.Amount
	l.Values = append(l.Values, v)
	return nil
}

func (l *FleetLabels) Sort(n int) {
	slices.SortFunc(l.Values, func(a, b fleetValue) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), cmp.Compare(a.Value, b.Value))
	})
	for i := range l.Values {
		if l.total > 0 {
			l.Values[i].Part = l.Values[i].Amount / l.total
		}
	}
	l.Values = l.Values[:min(n, len(l.Values))]
}

func (l *FleetLabels) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%7s %9s %9s %-24s %6s %-7s %s\n", "part", "accesses", l.By, "% of accesses", "seen", "of", l.Label)
	for _, v := range l.Values {
		fmt.Fprintf(&b, "%7s %9s %9s %s %6d %-7s %s\n", Percent(v.Part, 1), Amount(v.Accesses), Amount(v.Amount), v.Ratio, v.Observations, v.Metric, Printable(v.Value))
	}
	return b.String()
}

func (l *FleetLabels) Table() [][]string {
	rows := [][]string{{l.Label, "metric", "accesses", "amount", "share_of_accesses", "low", "high", "share_of_all_values", "observations"}}
	for _, v := range l.Values {
		rows = append(rows, []string{v.Value, v.Metric, Float(v.Accesses), Float(v.Amount), Float(v.Ratio.Value), Float(v.Ratio.Low), Float(v.Ratio.High), Float(v.Part), strconv.FormatInt(v.Observations, 10)})
	}
	return rows
}
