package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
)

func newTopCmd() *cobra.Command {
	var by, format string
	var n int
	var share float64
	var cache string
	cmd := &cobra.Command{
		Use:   "top FILE",
		Short: "List use -> reuse pairs by the misses they are predicted to cause",
		Long: `top shows where locality is lost: for each pair of a place that used data and
the place that used it next, how many accesses of that kind are predicted to miss
a cache, how long the reuse took and how much other data went by.

A reuse in brackets was not seen: [cold] is the first access to the datum, or the
last, as its thread or process ended, [censored] one that was watched to the end
without a reuse.

--by invalidations lists what other threads do to data in use, from a profile
recorded with --stack private or both: who wrote the datum before its user came
back to it (true sharing), and who wrote another word of its line (false sharing,
scaled up by the share of the line that was watched).

With --cover it lists the places where misses happen instead: the fewest that
account for so many percent of all that are predicted for a cache.`,
		Example: `  rdx top rdx.pb.gz
  rdx top --by l1d -n 30 rdx.pb.gz
  rdx top --cover 90 --cache 1m rdx.pb.gz
  rdx top --by data rdx.pb.gz
  rdx top --by invalidations xz.pb.gz
  rdx top --by distance --format csv rdx.pb.gz > pairs.csv`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("format", format, reportFormats); err != nil {
				return err
			}
			if n < 1 {
				return usageError{fmt.Errorf("-n %d: want 1 or more", n)}
			}
			if by == "invalidations" {
				return topInvalidations(cmd.OutOrStdout(), args[0], n, format)
			}
			p, err := readProfile(args[0])
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("cover") || cmd.Flags().Changed("cache") {
				if cache == "" {
					return usageError{fmt.Errorf("--cover: name a cache too, such as --cache 1m or --cache l2")}
				}
				for _, other := range []string{"by", "number"} {
					if cmd.Flags().Changed(other) {
						return usageError{fmt.Errorf("--cover and --%s do not go together", other)}
					}
				}
				c, err := cover(p, share, cache)
				if err != nil {
					return err
				}
				return writeReport(cmd.OutOrStdout(), format, c)
			}
			if by == "data" {
				m, err := findMetric(p, "misses")
				if err != nil {
					return err
				}
				return writeReport(cmd.OutOrStdout(), format, topData(p, m, n))
			}
			m, err := findMetric(p, by)
			if err != nil {
				return err
			}
			t := &topList{Profile: survey(p), By: m.name, Pairs: pairs(p, m.value), metric: m}
			t.All = len(t.Pairs)
			seen := int64(0)
			for _, q := range t.Pairs {
				t.Total += q.Value
				seen += q.Observations
			}
			if seen < fewest {
				t.few, t.other = seen, betterBy(p)
			}
			t.Pairs = t.Pairs[:min(n, t.All)]
			return writeReport(cmd.OutOrStdout(), format, t)
		},
	}
	cmd.Flags().StringVar(&by, "by", "misses", "what to sort by: misses (of the largest cache for which they are more than chance), reuses, accesses, observations, distance, invalidations (writer -> reader pairs of threads), or a cache level such as l1d, l2, l3; data lists data objects instead of pairs, by misses")
	cmd.Flags().IntVarP(&n, "number", "n", 10, "how many pairs to show")
	cmd.Flags().StringVar(&format, "format", "text", "text, json or csv")
	cmd.Flags().Float64Var(&share, "cover", 90, "list the fewest places that account for this percentage of the misses of --cache")
	cmd.Flags().StringVar(&cache, "cache", "", "of --cover: a size such as 1m, or a level of the profile such as l2")
	return cmd
}

func topInvalidations(w io.Writer, path string, n int, format string) error {
	p, err := loadProfile(path)
	if err != nil {
		return err
	}
	l, err := newInvalidationList(p, n)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return writeReport(w, format, l)
}

// oneFile is the argument check of commands that read one profile.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s: name one profile, such as rdx.pb.gz", cmd.Name())}
	}
	return nil
}

// readProfile reads a profile and derives what its writer has not. Of one that
// observed several stacks it is the private part, if there is one.
func readProfile(path string) (*model.Profile, error) { return readOnStack(path, "") }

// readOnStack is readProfile for one kind of stack, "" for any.
func readOnStack(path, stack string) (*model.Profile, error) {
	p, err := loadProfile(path)
	if err != nil {
		return nil, err
	}
	return onStackOf(p, path, stack)
}

// onStackOf is readOnStack of a profile that was read.
func onStackOf(p *model.Profile, path, stack string) (*model.Profile, error) {
	p, err := onStack(p, stack)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	seen, reuses := 0.0, 0.0
	for i := range p.Records {
		if r := &p.Records[i]; r.Kind == model.Reuse {
			seen += r.Accesses
			reuses += r.Reuses
		}
	}
	if seen > 0 && reuses == 0 {
		if err := p.Derive(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return p, nil
}

// A metric is a value of records that pairs are sorted by.
type metric struct {
	name, title, unit string
	value             func(*model.Record) float64
}

// amount of it for people.
func (m metric) amount(v float64) string {
	if m.unit == "bytes" {
		return siBytes(v)
	}
	return siCount(v)
}

func findMetric(p *model.Profile, by string) (metric, error) {
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
			return metric{}, usageError{fmt.Errorf("--by misses: the profile has no cache sizes; use --by reuses")}
		}
		// The first metrics come before those of the caches.
		return ms[len(ms)-len(p.Caches)+max(p.Quotable(), 0)], nil
	}
	for _, m := range ms {
		if m.name == by {
			return m, nil
		}
	}
	return metric{}, oneOf("by", by, words)
}

// fewest is how many observations a list needs before its shares mean
// something (model notes: never quote a ratio below about 10/n).
const fewest = 10

// betterBy is the flag of the largest cache for whose misses a profile has
// enough observations, else of what every profile has.
func betterBy(p *model.Profile) string {
	by := "--by reuses or --by distance"
	for i, c := range p.Caches {
		seen := int64(0)
		for k := range p.Records {
			if r := &p.Records[k]; i < len(r.Misses) && r.Misses[i] > 0 {
				seen += r.Observations
			}
		}
		if seen >= fewest {
			by = "--by " + strings.ToLower(c.Level)
		}
	}
	return by
}

// A topList is what rdx top prints.
type topList struct {
	Profile *overview `json:"profile"`
	By      string    `json:"by"`
	Total   float64   `json:"total"`
	All     int       `json:"pairs_in_all"`
	Pairs   []*pair   `json:"pairs"`

	metric metric
	few    int64  // observations behind the list, if they are too few
	other  string // flag that gives a better one
}

func (t *topList) text() string {
	var b strings.Builder
	writeOverview(&b, t.Profile)
	fmt.Fprintf(&b, "\n%s: %s in all; %d of %d use -> reuse pairs\n\n", t.metric.title, t.metric.amount(t.Total), len(t.Pairs), t.All)
	if t.All == 0 {
		fmt.Fprintf(&b, "nothing to list; try %s\n", t.other)
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
			accesses = bound + siCount(float64(q.Time))
		}
		if q.Nanoseconds != nil {
			native = bound + siNanoseconds(float64(*q.Nanoseconds))
		}
		if q.Distance != nil {
			distance = siBytes(*q.Distance)
		}
		fmt.Fprintf(&b, "%6s %6s %8s %5d %8s %8s %8s  %s\n", percent(q.Share, 1), percent(q.Cumulative, 1), t.metric.amount(q.Value), q.Observations,
			accesses, native, distance, q.Use)
		end := "-> "
		if q.Kind == "invalidated" {
			end = "invalidated by "
		}
		fmt.Fprintf(&b, "%57s%s%s\n", "", end, q.Reuse)
	}
	if t.few > 0 {
		fmt.Fprintf(&b, "\nonly %d observations stand behind this list, so shares are chance; try %s\n", t.few, t.other)
	}
	return b.String()
}

func (t *topList) rows() [][]string {
	rows := [][]string{{"kind", "use_function", "use_file", "use_line", "reuse_function", "reuse_file", "reuse_line", t.By, "share", "cumulative_share",
		"observations", "median_reuse_time_accesses", "median_reuse_time_ns", "below_resolution", "median_stack_distance_bytes"}}
	for _, q := range t.Pairs {
		ns := ""
		if q.Nanoseconds != nil {
			ns = whole(*q.Nanoseconds)
		}
		rows = append(rows, []string{q.Kind, q.Use.Function, q.Use.File, strconv.Itoa(q.Use.Line), q.Reuse.Function, q.Reuse.File, strconv.Itoa(q.Reuse.Line),
			number(q.Value), number(q.Share), number(q.Cumulative), strconv.FormatInt(q.Observations, 10),
			whole(q.Time), ns, strconv.FormatBool(q.BelowResolution), numberOr(q.Distance)})
	}
	return rows
}
