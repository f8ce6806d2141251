package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// A metric is a value of records that pairs are sorted by.
type metric struct {
	Name, title, unit string
	Value             func(*model.Record) float64
}

// amount of it for people.
func (m metric) amount(v float64) string {
	switch m.unit {
	case "bytes":
		return Bytes(v)
	case "share":
		return Percent(v, 1)
	}
	return Amount(v)
}

// TimeMetric ranks by the time that is waited for misses, of which each record has a share of the CPU time.
func TimeMetric(waits *Waiting) metric {
	m := metric{Name: "time", title: "estimated time that misses are waited for", unit: "share"}
	if waits != nil {
		m.Value = waits.Of
	}
	return m
}

func FindMetric(p *model.Profile, by string) (metric, error) {
	ms := []metric{
		{"reuses", "reuses", "count", func(r *model.Record) float64 { return r.Reuses }},
		{"accesses", "accesses", "count", func(r *model.Record) float64 { return r.Accesses }},
		{"observations", "observations", "count", func(r *model.Record) float64 { return float64(r.Observations) }},
		{"distance", "total stack distance", "bytes", func(r *model.Record) float64 { return r.Distance }},
	}
	words := []string{"time", "traffic", "misses", "data", "reuses", "accesses", "observations", "distance", "invalidations"}
	for i, c := range p.Caches {
		ms = append(ms, metric{strings.ToLower(c.Level), fmt.Sprintf("predicted %s misses", c.Level), "count", func(r *model.Record) float64 {
			if i >= len(r.Misses) {
				return 0
			}
			return r.Misses[i]
		}})
		words = append(words, strings.ToLower(c.Level))
	}
	if by == "misses" {
		if len(p.Caches) == 0 {
			return metric{}, BadInput(fmt.Errorf("--by misses: the profile has no cache sizes; use --by reuses"))
		}
		// The first metrics come before those of the caches.
		return ms[len(ms)-len(p.Caches)+max(p.Quotable(), 0)], nil
	}
	for _, m := range ms {
		if m.Name == by {
			return m, nil
		}
	}
	return metric{}, OneOf("by", by, words)
}

// Fewest is how many observations a list needs before its shares mean
// something (model notes: never quote a ratio below about 10/n).
const Fewest = 10

// BetterBy is the flag of the largest cache for whose misses a profile has
// enough observations, else of what every profile has.
func BetterBy(p *model.Profile) string {
	by := "--by reuses or --by distance"
	for i, c := range p.Caches {
		seen := int64(0)
		for k := range p.Records {
			if r := &p.Records[k]; i < len(r.Misses) && r.Misses[i] > 0 {
				seen += r.Observations
			}
		}
		if seen >= Fewest {
			by = "--by " + strings.ToLower(c.Level)
		}
	}
	return by
}

// A topList is what rdx top prints.
type Top struct {
	Profile *overview `json:"profile"`
	By      string    `json:"by"`
	Total   float64   `json:"total"`
	// Band is that of the total, and Elsewhere what of it is no pair's; nil unless the pairs are by time.
	Band      *band    `json:"total_band,omitempty"`
	Elsewhere *float64 `json:"elsewhere,omitempty"`
	All       int      `json:"pairs_in_all"`
	Pairs     []*Pair  `json:"pairs"`

	// Levels are those of the pairs' shares.
	Levels []string `json:"levels,omitempty"`

	Metric metric    `json:"-"`
	Few    int64     `json:"-"` // observations behind the list, if they are too few
	Other  string    `json:"-"` // flag that gives a better one
	Once   OncePairs `json:"seen_once"`
	hidden string    // level whose first pair is not in the list
}

// OfAll makes the total the time that the verdict has, of which the pairs have their shares: what functions wait of which there
// are no records is elsewhere. To be called when all pairs are there.
func (t *Top) OfAll(w *Waiting) {
	sum := 0.0
	for _, q := range t.Pairs {
		sum += q.Value
		q.Share, q.Cumulative = q.Value/w.Value, sum/w.Value
	}
	elsewhere := max(w.Value-sum, 0)
	t.Total, t.Band, t.Elsewhere = w.Value, &band{w.Value, w.Low, w.High}, &elsewhere
}

func (t *Top) overviews() []*overview { return []*overview{t.Profile} }

// Columns gives the pairs their shares of each level's misses, and of the time if waits is not nil. Pairs of a sampled profile
// that were seen once come behind the others: they may be chance.
func (t *Top) Columns(p *model.Profile, waits *Waiting) {
	for _, c := range p.Caches {
		t.Levels = append(t.Levels, c.Level)
	}
	all := make([]float64, len(p.Caches))
	for i := range p.Records {
		if r := &p.Records[i]; r.Kind != model.Lost && !r.Kind.OfLine() {
			for k, m := range r.Misses {
				all[k] += m
			}
		}
	}
	for _, q := range t.Pairs {
		q.Misses = make([]float64, len(all))
		time := 0.0
		for _, r := range q.records {
			for k, m := range r.Misses {
				q.Misses[k] += m / max(all[k], 1e-9)
			}
			if waits != nil {
				time += waits.Of(r)
			}
		}
		if waits != nil {
			q.Waits = &time
		}
	}
	if p.ExactDistances {
		return
	}
	slices.SortStableFunc(t.Pairs, func(a, b *Pair) int { return once(a) - once(b) })
	sum := 0.0
	for _, q := range t.Pairs {
		t.Once.add(q)
		sum += q.Share
		q.Cumulative = sum
	}
}

// once is 1 of a pair that was seen no more often.
func once(q *Pair) int {
	if q.Observations == 1 {
		return 1
	}
	return 0
}

// OncePairs are pairs that were seen once each.
type OncePairs struct {
	Pairs int     `json:"pairs"`
	Share float64 `json:"share"`
}

func (o *OncePairs) add(q *Pair) {
	if once(q) == 1 {
		o.Pairs++
		o.Share += q.Share
	}
}

// Cut leaves the first n pairs.
func (t *Top) Cut(n int) { t.Pairs = t.Pairs[:min(n, len(t.Pairs))] }

func (t *Top) Text() string {
	var b strings.Builder
	WriteOverview(&b, t.Profile)
	shown := t.Pairs
	if t.Once.Pairs > 0 {
		shown = slices.DeleteFunc(slices.Clone(t.Pairs), func(q *Pair) bool { return once(q) == 1 })
	}
	total := t.Metric.amount(t.Total)
	if t.Band != nil {
		total += fmt.Sprintf(" (95%% band %s to %s)", t.Metric.amount(t.Band.Low), t.Metric.amount(t.Band.High))
	}
	fmt.Fprintf(&b, "\n%s: %s in all; %d of %d use -> reuse pairs\n\n", t.Metric.title, total, len(shown), t.All)
	if t.All == 0 {
		switch {
		case t.Profile.Observations == 0: // a warning has said what to do
		case t.Profile.Stack == model.StackPrivate.String():
			fmt.Fprintf(&b, "nothing to list; try %s, or --by invalidations for what threads take from each other\n", t.Other)
		default:
			fmt.Fprintf(&b, "nothing to list; try %s\n", t.Other)
		}
		return b.String()
	}
	if len(shown) > 0 {
		t.rows(&b, shown)
	}
	if n := t.Once; n.Pairs > 0 {
		was, share, of := "were seen once each", n.Share, t.Metric.title
		if n.Pairs == 1 {
			was = "was seen once"
		}
		if t.Metric.unit == "share" { // in percent of the same as the lines above
			share, of = n.Share*t.Total, "the time"
		}
		fmt.Fprintf(&b, "%s, with %s of %s, %s, which may be chance: --format csv has them\n", Plural(int64(n.Pairs), "pair"), Percent(share, 1), of, was)
	}
	if t.Elsewhere != nil && *t.Elsewhere >= 0.0005 {
		fmt.Fprintf(&b, "%s of the time is waited in functions of whose data no reuse or end was observed: profile longer\n", Percent(*t.Elsewhere, 1))
	}
	if t.Few > 0 {
		fmt.Fprintf(&b, "\nthis list rests on only %s, so shares are chance; try %s\n", Plural(t.Few, "observation"), t.Other)
	}
	if t.hidden != "" {
		fmt.Fprintf(&b, "\n%s misses come from elsewhere: --by %s\n", t.hidden, strings.ToLower(t.hidden))
	}
	return b.String()
}

// rows has the pairs, two lines each. A level that is sorted by has no column of its own.
func (t *Top) rows(b *strings.Builder, pairs []*Pair) {
	head, levels := fmt.Sprintf("%6s %6s %8s", "share", "cum", t.By), ""
	if t.Metric.unit == "share" {
		head = fmt.Sprintf("%6s %6s", t.By, "cum")
	}
	hasLevel := func(k int) bool { return !strings.EqualFold(t.Levels[k], t.By) }
	for k, l := range t.Levels {
		if hasLevel(k) {
			levels += fmt.Sprintf(" %6s", l)
		}
	}
	head += levels + fmt.Sprintf(" %5s %8s", "seen", "distance")
	fmt.Fprintf(b, "%s  use\n%*s  -> reuse\n", head, len(head), "")
	for _, q := range pairs {
		row := fmt.Sprintf("%6s %6s %8s", Percent(q.Share, 1), Percent(q.Cumulative, 1), t.Metric.amount(q.Value))
		if t.Metric.unit == "share" {
			row = fmt.Sprintf("%6s %6s", t.Metric.amount(q.Value), t.Metric.amount(q.Cumulative*t.Total))
		}
		for k := range t.Levels {
			if hasLevel(k) {
				row += fmt.Sprintf(" %6s", Percent(q.Misses[k], 1))
			}
		}
		distance, end := "-", "-> "
		if q.Distance != nil {
			distance = Bytes(*q.Distance)
		}
		if q.Kind == "invalidated" {
			end = "invalidated by "
		}
		fmt.Fprintf(b, "%s %5d %8s  %s\n%*s  %s%s\n", row, q.Observations, distance, q.Use, len(head), "", end, q.Reuse)
	}
}

// Hide looks for a cache level of p that a twentieth and more of the accesses miss, and whose first pair
// the list does not have: to be called when its pairs are final.
func (t *Top) Hide(p *model.Profile) {
	for _, c := range t.Profile.Caches {
		if c.quote != model.Quoted || c.Low < 0.05 || strings.EqualFold(c.Level, t.By) {
			continue
		}
		m, err := FindMetric(p, strings.ToLower(c.Level))
		if err != nil {
			continue
		}
		first := Pairs(p, m.Value)
		if len(first) == 0 || first[0].Observations < Fewest || slices.ContainsFunc(t.Pairs, func(q *Pair) bool { return q.Use == first[0].Use && q.Reuse == first[0].Reuse }) {
			continue
		}
		t.hidden = c.Level
		return
	}
}

func (t *Top) Table() [][]string {
	rows := [][]string{{"kind", "use_function", "use_file", "use_line", "reuse_function", "reuse_file", "reuse_line", t.By, "share", "cumulative_share",
		"observations", "median_reuse_time_accesses", "median_reuse_time_ns", "below_resolution", "median_stack_distance_bytes", "time_share"}}
	for _, l := range t.Levels {
		rows[0] = append(rows[0], strings.ToLower(l)+"_misses_share")
	}
	for _, q := range t.Pairs {
		ns := ""
		if q.Nanoseconds != nil {
			ns = Whole(*q.Nanoseconds)
		}
		rows = append(rows, []string{q.Kind, q.Use.Function, q.Use.File, strconv.Itoa(q.Use.Line), q.Reuse.Function, q.Reuse.File, strconv.Itoa(q.Reuse.Line),
			Float(q.Value), Float(q.Share), Float(q.Cumulative), strconv.FormatInt(q.Observations, 10),
			Whole(q.Time), ns, strconv.FormatBool(q.BelowResolution), FloatOr(q.Distance), FloatOr(q.Waits)})
		for _, m := range q.Misses {
			rows[len(rows)-1] = append(rows[len(rows)-1], Float(m))
		}
	}
	return rows
}
