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
	if m.unit == "bytes" {
		return Bytes(v)
	}
	return Amount(v)
}

func FindMetric(p *model.Profile, by string) (metric, error) {
	ms := []metric{
		{"reuses", "reuses", "count", func(r *model.Record) float64 { return r.Reuses }},
		{"accesses", "accesses", "count", func(r *model.Record) float64 { return r.Accesses }},
		{"observations", "observations", "count", func(r *model.Record) float64 { return float64(r.Observations) }},
		{"distance", "total stack distance", "bytes", func(r *model.Record) float64 { return r.Distance }},
	}
	words := []string{"misses", "data", "reuses", "accesses", "observations", "distance", "invalidations"}
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
	All     int       `json:"pairs_in_all"`
	Pairs   []*Pair   `json:"pairs"`

	Metric metric `json:"-"`
	Few    int64  `json:"-"` // observations behind the list, if they are too few
	Other  string `json:"-"` // flag that gives a better one
	hidden string // level whose first pair is not in the list
}

func (t *Top) overviews() []*overview { return []*overview{t.Profile} }

func (t *Top) Text() string {
	var b strings.Builder
	WriteOverview(&b, t.Profile)
	fmt.Fprintf(&b, "\n%s: %s in all; %d of %d use -> reuse pairs\n\n", t.Metric.title, t.Metric.amount(t.Total), len(t.Pairs), t.All)
	if t.All == 0 {
		fmt.Fprintf(&b, "nothing to list; try %s\n", t.Other)
		return b.String()
	}
	fmt.Fprintf(&b, "%6s %6s %8s %5s %8s %8s %8s  %s\n", "", "", "", "", "median", "median", "median", "use")
	fmt.Fprintf(&b, "%6s %6s %8s %5s %8s %8s %8s  %s\n", "share", "cum", t.By, "seen", "accesses", "time", "distance", "-> reuse")
	for _, q := range t.Pairs {
		bound := "" // what the median is a bound of
		switch {
		case q.BelowResolution:
			bound = "<"
		case q.Kind == "censored" || q.Kind == "pruned":
			bound = ">"
		}
		accesses, native, distance := "-", "-", "-"
		if q.Kind != "cold" {
			accesses = bound + Amount(float64(q.Time))
		}
		if q.Nanoseconds != nil {
			native = bound + Nanoseconds(float64(*q.Nanoseconds))
		}
		if q.Distance != nil {
			distance = Bytes(*q.Distance)
		}
		fmt.Fprintf(&b, "%6s %6s %8s %5d %8s %8s %8s  %s\n", Percent(q.Share, 1), Percent(q.Cumulative, 1), t.Metric.amount(q.Value), q.Observations,
			accesses, native, distance, q.Use)
		end := "-> "
		if q.Kind == "invalidated" {
			end = "invalidated by "
		}
		fmt.Fprintf(&b, "%57s%s%s\n", "", end, q.Reuse)
	}
	if t.Few > 0 {
		fmt.Fprintf(&b, "\nonly %d observations stand behind this list, so shares are chance; try %s\n", t.Few, t.Other)
	}
	if t.hidden != "" {
		fmt.Fprintf(&b, "\n%s misses come from elsewhere: --by %s\n", t.hidden, strings.ToLower(t.hidden))
	}
	return b.String()
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
		"observations", "median_reuse_time_accesses", "median_reuse_time_ns", "below_resolution", "median_stack_distance_bytes"}}
	for _, q := range t.Pairs {
		ns := ""
		if q.Nanoseconds != nil {
			ns = Whole(*q.Nanoseconds)
		}
		rows = append(rows, []string{q.Kind, q.Use.Function, q.Use.File, strconv.Itoa(q.Use.Line), q.Reuse.Function, q.Reuse.File, strconv.Itoa(q.Reuse.Line),
			Float(q.Value), Float(q.Share), Float(q.Cumulative), strconv.FormatInt(q.Observations, 10),
			Whole(q.Time), ns, strconv.FormatBool(q.BelowResolution), FloatOr(q.Distance)})
	}
	return rows
}
