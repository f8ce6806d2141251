package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

func newCompareCmd() *cobra.Command {
	var by, format string
	var n int
	var work float64
	var caches []string
	cmd := &cobra.Command{
		Use:   "compare LIVE EXACT",
		Short: "Score a sampled profile against the exact one",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return report.BadInput(fmt.Errorf("%s: name two profiles, the live one and the exact one", cmd.Name()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := report.OneOf("format", format, []string{"text", "json", "csv"}); err != nil {
				return err
			}
			if n < 1 {
				return report.BadInput(fmt.Errorf("-n %d: want 1 or more", n))
			}
			if !(work > 0 && work <= 1e9) {
				return report.BadInput(fmt.Errorf("--work %v: want more than 0 and at most a billion", work))
			}
			var p [2]*model.Profile
			for i, path := range args {
				var err error
				if p[i], err = readProfile(path); err != nil {
					return err
				}
			}
			c, err := report.NewComparison(p[0], p[1], work, by, n, caches)
			if err != nil {
				return fmt.Errorf("compare %s with %s: %w", args[0], args[1], err)
			}
			return c.Write(cmd.OutOrStdout(), format)
		},
	}
	cmd.Flags().StringVar(&by, "by", "reuses", "what pairs are weighed by: misses (of the last level), reuses, accesses, or a cache level such as l1d, l2, l3")
	cmd.Flags().IntVarP(&n, "number", "n", 10, "how many of the heaviest pairs to match")
	cmd.Flags().Float64Var(&work, "work", 1, "how many times the exact run's work the live run did")
	cmd.Flags().StringSliceVar(&caches, "cache", nil, "caches whose misses are compared by place, such as 1m or l2 (default: those of the live profile)")
	cmd.Flags().StringVar(&format, "format", "text", "text, json or csv")
	return cmd
}
