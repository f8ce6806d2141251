package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
)

func newFleetTopCmd() *cobra.Command {
	var f fleetFlags
	var by, label, format string
	var n int
	cmd := &cobra.Command{
		Use:   "top",
		Short: "List use -> reuse pairs of a service over all machines, by predicted misses",
		Long: `top shows where a service loses its locality on all its machines together: use -> reuse
pairs, and the places with most misses, each as a share of all accesses with a band that
holds the true share 95 times in 100. With --by-label it lists the values of a label
instead, such as services, versions or hosts.`,
		Example: `  rdx fleet top --server http://127.0.0.1:4040 --service checkout --since 1h
  rdx fleet top --server http://127.0.0.1:4040 --by-label service_name`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("format", format, reportFormats); err != nil {
				return err
			}
			if n < 1 {
				return usageError{fmt.Errorf("-n %d: want 1 or more", n)}
			}
			c, q, err := f.open()
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd)
			defer stop()
			if label != "" {
				l := &fleetLabels{Label: label, By: by}
				if err := parts(ctx, c, q, label, func(value string, p *model.Profile) error { return l.add(value, p) }); err != nil {
					return err
				}
				l.sort(n)
				return writeReport(cmd.OutOrStdout(), format, l)
			}
			p, err := one(ctx, c, q)
			if err != nil {
				return err
			}
			t, err := newFleetTop(p, by, n)
			if err != nil {
				return err
			}
			hosts, err := c.Values(ctx, q, "host")
			if err != nil {
				return fmt.Errorf("fleet: %w", err)
			}
			t.Hosts = len(hosts)
			return writeReport(cmd.OutOrStdout(), format, t)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&by, "by", "misses", "what to sort by: misses (of the largest cache for which they are more than chance), reuses, accesses, or a cache level such as l1d, l2, l3")
	cmd.Flags().StringVar(&label, "by-label", "", "list the values of this label instead of pairs")
	cmd.Flags().IntVarP(&n, "number", "n", 10, "how many to show")
	cmd.Flags().StringVar(&format, "format", "text", "text, json or csv")
	return cmd
}

// A fleetTop is what rdx fleet top prints.
type fleetTop struct {
	Profile *overview    `json:"profile"`
	Hosts   int          `json:"hosts"`
	By      string       `json:"by"`
	Total   band         `json:"share_of_accesses"`
	All     int          `json:"pairs_in_all"`
	Pairs   []fleetPair  `json:"pairs"`
	Places  []fleetPlace `json:"places"`

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

func newFleetTop(p *model.Profile, by string, n int) (*fleetTop, error) {
	m, err := findMetric(p, by)
	if err != nil {
		return nil, err
	}
	if m.unit != "count" || m.name == "observations" {
		return nil, usageError{fmt.Errorf("--by %s is no share of the accesses: use misses, reuses, accesses or a cache level", by)}
	}
	t := &fleetTop{Profile: survey(p), By: m.name, metric: m}
	share := func(records []*model.Record) band {
		return band(p.PerAccess(records, m.value, t.Profile.Accesses, p.Holds(), .05))
	}
	found := pairs(p, m.value)
	t.All = len(found)
	var all []*model.Record
	places := map[place]*fleetPlace{}
	for i, q := range found {
		all = append(all, q.records...)
		at := q.Reuse
		if q.Kind != model.Reuse.String() && q.Kind != model.Invalidated.String() {
			at = q.Use
		}
		if places[at] == nil {
			places[at] = &fleetPlace{Place: at}
		}
		places[at].records = append(places[at].records, q.records...)
		places[at].value += q.Value
		places[at].Observations += q.Observations
		if i < n {
			t.Pairs = append(t.Pairs, fleetPair{q.Use, q.Reuse, q.Kind, q.Observations, share(q.records), q.Distance})
		}
	}
	t.Total = share(all)
	var sorted []*fleetPlace
	for _, l := range places {
		sorted = append(sorted, l)
	}
	slices.SortFunc(sorted, func(a, b *fleetPlace) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.Place.Function, b.Place.Function), cmp.Compare(a.Place.Line, b.Place.Line))
	})
	for _, l := range sorted[:min(n, len(sorted))] {
		l.Share = share(l.records)
		t.Places = append(t.Places, *l)
	}
	return t, nil
}

// String is a share of the accesses, in percent.
func (b band) String() string {
	return fmt.Sprintf("%7.3f [%6.3f, %6.3f]", 100*b.Value, 100*b.Low, 100*b.High)
}

func (t *fleetTop) text() string {
	var b strings.Builder
	writeOverview(&b, t.Profile)
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
			distance = siBytes(*q.Distance)
		}
		fmt.Fprintf(&b, "%s %6d %9s  %s\n%43s-> %s\n", q.Share, q.Observations, distance, q.Use, "", q.Reuse)
	}
	fmt.Fprintf(&b, "\n%-24s %6s %9s  %s\n", "% of accesses", "seen", "", "place")
	for _, l := range t.Places {
		fmt.Fprintf(&b, "%s %6d %9s  %s\n", l.Share, l.Observations, "", l.Place)
	}
	return b.String()
}

func (t *fleetTop) rows() [][]string {
	rows := [][]string{{"what", "use_function", "use_file", "use_line", "reuse_function", "reuse_file", "reuse_line", "share", "low", "high", "observations", "median_stack_distance_bytes"}}
	line := func(p place) []string { return []string{p.Function, p.File, strconv.Itoa(p.Line)} }
	for _, q := range t.Pairs {
		rows = append(rows, slices.Concat([]string{q.Kind}, line(q.Use), line(q.Reuse),
			[]string{number(q.Share.Value), number(q.Share.Low), number(q.Share.High), strconv.FormatInt(q.Observations, 10), numberOr(q.Distance)}))
	}
	for _, l := range t.Places {
		rows = append(rows, slices.Concat([]string{"place"}, line(l.Place), []string{"", "", ""},
			[]string{number(l.Share.Value), number(l.Share.Low), number(l.Share.High), strconv.FormatInt(l.Observations, 10), ""}))
	}
	return rows
}

// fleetLabels is what rdx fleet top --by-label prints.
type fleetLabels struct {
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

func (l *fleetLabels) add(value string, p *model.Profile) error {
	t, err := newFleetTop(p, l.By, 1)
	if err != nil {
		return err
	}
	v := fleetValue{Value: value, Metric: t.By, Observations: t.Profile.Observations, Accesses: t.Profile.Accesses, Ratio: t.Total, Amount: t.Total.Value * t.Profile.Accesses}
	l.total += v.Amount
	l.Values = append(l.Values, v)
	return nil
}

func (l *fleetLabels) sort(n int) {
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

func (l *fleetLabels) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%7s %9s %9s %-24s %6s %-7s %s\n", "part", "accesses", l.By, "% of accesses", "seen", "of", l.Label)
	for _, v := range l.Values {
		fmt.Fprintf(&b, "%7s %9s %9s %s %6d %-7s %s\n", percent(v.Part, 1), siCount(v.Accesses), siCount(v.Amount), v.Ratio, v.Observations, v.Metric, printable(v.Value))
	}
	return b.String()
}

func (l *fleetLabels) rows() [][]string {
	rows := [][]string{{l.Label, "metric", "accesses", "amount", "share_of_accesses", "low", "high", "share_of_all_values", "observations"}}
	for _, v := range l.Values {
		rows = append(rows, []string{v.Value, v.Metric, number(v.Accesses), number(v.Amount), number(v.Ratio.Value), number(v.Ratio.Low), number(v.Ratio.High), number(v.Part), strconv.FormatInt(v.Observations, 10)})
	}
	return rows
}
