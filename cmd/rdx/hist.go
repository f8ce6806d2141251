package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/report"
)

func newHistCmd() *cobra.Command {
	var kind, format string
	var bins int
	cmd := &cobra.Command{
		Use:   "hist FILE",
		Short: "Draw the histogram of reuse times or stack distances",
		Args:  oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := report.OneOf("format", format, report.Formats); err != nil {
				return err
			}
			if err := report.OneOf("kind", kind, []string{"time", "stack", "footprint"}); err != nil {
				return err
			}
			if bins < 1 || bins > 64 {
				return report.BadInput(fmt.Errorf("--bins %d: want 1 to 64 per octave", bins))
			}
			p, err := readProfile(args[0])
			if err != nil {
				return err
			}
			if kind == "footprint" {
				c, err := report.NewFootprintCurve(p, bins)
				if err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
				return write(cmd, format, c)
			}
			c, err := report.NewChart(p, kind, bins)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return write(cmd, format, c)
		},
	}
	detailFlag(cmd)
	cmd.Flags().StringVar(&kind, "kind", "time", "time: until the reuse; stack: stack distance, the other data in between; footprint: data touched in a window of accesses")
	cmd.Flags().IntVar(&bins, "bins", 1, "bins per octave")
	cmd.Flags().StringVar(&format, "format", "text", "text, json or csv")
	return cmd
}
