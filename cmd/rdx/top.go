package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/why"
)

func newTopCmd() *cobra.Command {
	var by, format string
	var n int
	var share float64
	var cache string
	cmd := &cobra.Command{
		Use:   "top FILE",
		Short: "List use -> reuse pairs by the time and the misses they cost",
		Args:  oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := report.OneOf("format", format, report.Formats); err != nil {
				return err
			}
			if n < 1 {
				return report.BadInput(fmt.Errorf("-n %d: want 1 or more", n))
			}
			if by == "invalidations" {
				return topInvalidations(cmd, args[0], n, format)
			}
			p, err := readProfile(args[0])
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("cover") || cmd.Flags().Changed("cache") {
				if cache == "" && len(p.Caches) > 0 {
					cache = strings.ToLower(p.Caches[max(p.Quotable(), 0)].Level)
				}
				if cache == "" {
					return report.BadInput(fmt.Errorf("--cover: the profile has no caches: name one too, such as --cache 1m"))
				}
				for _, other := range []string{"by", "number"} {
					if cmd.Flags().Changed(other) {
						return report.BadInput(fmt.Errorf("--cover and --%s do not go together", other))
					}
				}
				c, err := report.Cover(p, share, cache)
				if err != nil {
					return err
				}
				return write(cmd, format, c)
			}
			r, err := topBy(p, by, n, cmd.Flags().Changed("by"))
			if err != nil {
				return err
			}
			return write(cmd, format, r)
		},
	}
	detailFlag(cmd)
	cmd.Flags().StringVar(&by, "by", "time", "what to sort by: time (that is waited), traffic (bytes a second, by place and by data), misses (of the largest cache for which they are more than chance), reuses, accesses, observations, distance, invalidations (writer -> reader pairs of threads), or a cache level such as l1d, l2, l3; data lists data objects instead of pairs, by misses")
	cmd.Flags().IntVarP(&n, "number", "n", 10, "how many pairs to show")
	cmd.Flags().StringVar(&format, "format", "text", "text, json or csv")
	cmd.Flags().Float64Var(&share, "cover", 90, "list the fewest places that account for this percentage of the misses of --cache")
	cmd.Flags().StringVar(&cache, "cache", "", "of --cover: a size such as 1m, or a level of the profile such as l2; by default the largest one whose misses are more than chance")
	return cmd
}

// topBy is the list of a profile by a metric, which the user may have asked for.
func topBy(p *model.Profile, by string, n int, asked bool) (report.Report, error) {
	waits := why.Waiting(p)
	switch {
	case by == "traffic":
		return report.NewTrafficList(p, n)
	case by == "time" && waits == nil && asked:
		return nil, report.BadInput(fmt.Errorf("--by time: the profile does not tell where time goes: %s; use --by misses", why.Analyze(p).Verdict.Why))
	case by == "time" && waits == nil:
		by = "misses"
	case by == "data":
		m, err := report.FindMetric(p, "misses")
		if err != nil {
			return nil, err
		}
		return report.TopData(p, m, n), nil
	}
	m := report.TimeMetric(waits)
	if by != "time" {
		var err error
		if m, err = report.FindMetric(p, by); err != nil {
			return nil, err
		}
	}
	t := &report.Top{Profile: report.Survey(p), By: m.Name, Pairs: report.Pairs(p, m.Value), Metric: m}
	t.All = len(t.Pairs)
	seen := int64(0)
	for _, q := range t.Pairs {
		t.Total += q.Value
		seen += q.Observations
	}
	if seen < report.Fewest {
		t.Few, t.Other = seen, report.BetterBy(p)
	}
	if by == "time" {
		t.OfAll(waits)
	}
	t.Columns(p, waits)
	t.Cut(n)
	if by == "misses" || by == "time" {
		t.Hide(p)
	}
	return t, nil
}

func topInvalidations(cmd *cobra.Command, path string, n int, format string) error {
	p, err := loadProfile(path)
	if err != nil {
		return err
	}
	l, err := report.NewInvalidationList(p, n)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return write(cmd, format, l)
}

// oneFile is the argument check of commands that read one profile.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return report.BadInput(fmt.Errorf("%s: name one profile, such as rdx.pb.gz", cmd.Name()))
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
	p, err := report.Ready(p, stack)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}
