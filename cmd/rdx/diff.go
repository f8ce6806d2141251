package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/why"
)

func newDiffCmd() *cobra.Command {
	var f curveFlags
	var by, format string
	var n int
	cmd := &cobra.Command{
		Use:   "diff BEFORE AFTER",
		Short: "Compare two profiles: miss ratios and use -> reuse pairs",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return report.BadInput(fmt.Errorf("%s: name two profiles, the one before and the one after", cmd.Name()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := report.OneOf("format", format, report.Formats); err != nil {
				return err
			}
			if n < 1 {
				return report.BadInput(fmt.Errorf("-n %d: want 1 or more", n))
			}
			options, err := f.options()
			if err != nil {
				return err
			}
			var p [2]*model.Profile
			for i, path := range args {
				if p[i], err = readProfile(path); err != nil {
					return err
				}
			}
			d, err := report.NewDiff(p[0], p[1], f.sizes, options, by)
			if err != nil {
				return fmt.Errorf("%s and %s: %w", args[0], args[1], err)
			}
			var waits [2]*report.Waiting
			for i := range p {
				waits[i] = why.Waiting(p[i])
			}
			d.AddWaits(waits)
			d.Pairs = d.Pairs[:min(n, d.All)]
			return report.Write(cmd.OutOrStdout(), format, d)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&by, "by", "misses", "what pairs are compared by: misses (of the largest cache for which they are more than chance), reuses, accesses, or a cache level such as l1d, l2, l3")
	cmd.Flags().IntVarP(&n, "number", "n", 10, "how many pairs to show")
	cmd.Flags().StringVar(&format, "format", "text", "text, json or csv")
	return cmd
}
